"""What the drawings need of a finite MDP's tables: deterministic transitions, and the walk along a Chain."""

from typing import NamedTuple

import numpy as np

from uppertail.environments import FiniteMDP
from uppertail.errors import InputError


class Transition(NamedTuple):
    """Where an action leads, None where the episode ends, and its reward."""

    next_state: int | None
    reward: float


def transitions(mdp: FiniteMDP) -> dict[tuple[int, int], Transition]:
    """The transition of every state and action.

    Raises:
        InputError: one of them is stochastic, or the rewards are noisy.
    """
    if mdp.reward_std is not None:
        raise InputError(
            "The rewards of this environment are noisy (reward_std), but only deterministic MDPs are drawn."
        )
    probability = np.asarray(mdp.probability)
    next_state, reward, terminated = (np.asarray(table) for table in (mdp.next_state, mdp.reward, mdp.terminated))
    drawn = {}
    for state, action in np.ndindex(mdp.num_states, mdp.num_actions):
        possible = np.flatnonzero(probability[state, action])
        if possible.size != 1:
            raise InputError(
                f"Action {action} of state {state} has {possible.size} outcomes, but only deterministic MDPs are drawn."
            )
        where = (state, action, int(possible[0]))
        drawn[state, action] = Transition(None if terminated[where] else int(next_state[where]), float(reward[where]))
    return drawn


def start(mdp: FiniteMDP) -> int:
    """The state in which episodes start, the most probable one where there are several."""
    return int(np.asarray(mdp.start_state)[np.argmax(np.asarray(mdp.start_probability))])


def chain_walk(mdp: FiniteMDP) -> list[tuple[int, int]]:
    """States of a Chain in order, each with its correct action: the one that goes on, or pays most in the last.

    Raises:
        InputError: it is no Chain, since several actions go on or a state comes back.
    """
    edges = transitions(mdp)
    state, walk = start(mdp), []
    while True:
        of_state = {action: edges[state, action] for action in range(mdp.num_actions)}
        onward = [action for action, edge in of_state.items() if edge.next_state is not None]
        correct = onward[0] if onward else max(of_state, key=lambda action: of_state[action].reward)
        walk.append((state, correct))
        following = of_state[correct].next_state
        if following is None:
            return walk
        if len(onward) > 1 or following in dict(walk):
            raise InputError(f"This is no Chain: see state {state}, where exactly one action must lead to a new state.")
        state = following
