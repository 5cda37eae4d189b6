"""The learned return distributions of the uniform policy, compared with the exact ones."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from experiments.paper.calibration import cramer
from experiments.paper.snapshots import Snapshot
from uppertail.distributions import ReturnDistribution
from uppertail.environments import FiniteMDP
from uppertail.exact import exact_returns, uniform_policy
from uppertail.types import PyTree


def against_exact(at: Snapshot, seed: int, draws: int) -> list[dict[str, Any]]:
    """One row for each state that the policy can reach, and each action.

    Args:
        at: a run that learned the returns of the uniform policy.
        seed: the seed of that run, counted from 0.
        draws: how many draws from a learned distribution measure its distance from the exact one.
    """
    mdp, family, z = at.environment(seed), at.agent.family, at.returns(seed)
    exact = exact_returns(mdp, uniform_policy(mdp), float(at.agent.discount))
    mean, std = (np.asarray(jax.vmap(jax.vmap(moment))(z)) for moment in (family.mean, family.std))
    drawn = _draws(family, z, draws)
    reachable = reachable_states(mdp)
    return [
        {
            "seed": seed,
            "state": state,
            "action": action,
            "exact_mean": truth.mean,
            "exact_std": truth.std,
            "exact_error": truth.error,
            "mean": float(mean[state, action]),
            "std": float(std[state, action]),
            "wasserstein": truth.wasserstein(drawn[state, action]),
            "cramer": cramer(truth, drawn[state, action]),
        }
        for (state, action), truth in exact.items()
        if state in reachable
    ]


def _draws(family: ReturnDistribution[Any], z: PyTree, count: int) -> Float[np.ndarray, "states actions draws"]:
    """Draws from every learned distribution."""
    shape = jax.tree.leaves(z)[0].shape[:2]
    keys = jax.random.split(jax.random.key(0), (*shape, count))
    draw = jax.vmap(family.sample, in_axes=(0, None))
    return np.asarray(jax.jit(jax.vmap(jax.vmap(draw)))(keys, z), np.float64)


def reachable_states(mdp: FiniteMDP) -> set[int]:
    """The states in which the policy acts, starting where episodes start."""
    follows = np.asarray((mdp.probability > 0) & ~mdp.terminated)
    next_state = np.asarray(mdp.next_state)
    reached, to_visit = set(), np.asarray(mdp.start_state)[np.asarray(mdp.start_probability) > 0].tolist()
    while to_visit:
        state = to_visit.pop()
        if state not in reached:
            reached.add(state)
            to_visit += next_state[state][follows[state]].tolist()
    return reached
