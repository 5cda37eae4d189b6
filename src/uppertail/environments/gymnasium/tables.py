"""Gymnasium environments that show their whole table, as finite MDPs."""

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np

from uppertail.environments.finite import FiniteMDP

NO_LIMIT = 2**31 - 1
"""The time limit of an environment that has none."""


def has_table(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether the environment has a table at all, whatever is wrapped around it."""
    try:
        return isinstance(getattr(env.unwrapped, "P", None), dict)
    except Exception:  # the environment's own code may raise anything
        return False


def from_environment(env: gymnasium.Env[Any, Any], time_limit: int | None) -> FiniteMDP:
    """The FiniteMDP of an environment that has a table, and to which there is no objection."""
    bare: Any = env.unwrapped
    return from_table(bare.P, bare.initial_state_distrib, time_limit or NO_LIMIT)


def from_table(table: dict[int, dict[int, list[Any]]], start: Any, time_limit: int) -> FiniteMDP:
    """A FiniteMDP from a Gymnasium table `P[state][action] = [(probability, next_state, reward, terminated), ...]`.

    Args:
        table: the environment's `unwrapped.P`.
        start: probability that an episode starts in each state.
        time_limit: steps after which an episode is truncated.
    """
    num_states, num_actions = len(table), len(table[0])
    outcomes = max(len(table[s][a]) for s in range(num_states) for a in range(num_actions))
    entries = np.zeros((num_states, num_actions, outcomes, 4))
    for s in range(num_states):
        for a in range(num_actions):
            for outcome, entry in enumerate(table[s][a]):
                entries[s, a, outcome] = entry
    probability, next_state, reward, terminated = np.moveaxis(entries, -1, 0)
    return FiniteMDP(
        next_state=jnp.asarray(next_state, jnp.int32),
        reward=jnp.asarray(reward, jnp.float32),
        terminated=jnp.asarray(terminated, bool),
        probability=jnp.asarray(probability, jnp.float32),
        start_state=jnp.asarray(np.flatnonzero(start), jnp.int32),
        start_probability=jnp.asarray(np.asarray(start)[np.flatnonzero(start)], jnp.float32),
        time_limit=time_limit,
    )
