"""Mean undiscounted returns within an environment's time limit, by dynamic programming over the steps that are left."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from uppertail.environments import FiniteMDP


def mean_return(mdp: FiniteMDP, policy: Float[np.ndarray, "states actions"]) -> float:
    """Mean undiscounted return of an episode under a stationary policy; noise on the rewards does not change it.

    Args:
        mdp: tables of one environment.
        policy: probability of each action in each state.
    """
    return _backward(mdp, lambda q: np.sum(policy * q, axis=1))


def best_return(mdp: FiniteMDP) -> float:
    """The highest mean of any policy, including policies that know how many steps are left."""
    return _backward(mdp, lambda q: np.max(q, axis=1))


def greedy_policy(q: Float[np.ndarray, "states actions"]) -> Float[np.ndarray, "states actions"]:
    """The policy that takes the action of the highest value, the first of equal ones."""
    return np.eye(q.shape[1])[np.argmax(q, axis=1)]


def _backward(mdp: FiniteMDP, value_of: Callable[[np.ndarray], np.ndarray]) -> float:
    """The value of the start, by backward induction from the last step."""
    probability = np.asarray(mdp.probability, np.float64)
    probability = probability / probability.sum(axis=2, keepdims=True)
    reward, next_state = np.asarray(mdp.reward, np.float64), np.asarray(mdp.next_state)
    goes_on = ~np.asarray(mdp.terminated)
    value = np.zeros(mdp.num_states)
    for _ in range(mdp.time_limit):
        value = value_of(np.sum(probability * (reward + np.where(goes_on, value[next_state], 0.0)), axis=2))
    start = np.asarray(mdp.start_probability, np.float64)
    return float(start / start.sum() @ value[np.asarray(mdp.start_state)])
