"""Gymnasium environments that show their whole table, as finite MDPs."""

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces, wrappers

from uppertail.encodings import STATE_ENCODINGS, Encoding, StateEncoding
from uppertail.environments.finite import FiniteMDP

NO_LIMIT = 2**31 - 1
"""The time limit of an environment that has none."""

CHECKED_STEPS = 500
"""Random steps by which a table is held against its environment."""

NEUTRAL_WRAPPERS = (
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.TimeLimit,
)
"""Wrappers that change neither rewards nor observations nor where an action leads."""


def has_table(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether the environment has a table at all, whatever is wrapped around it."""
    return isinstance(getattr(env.unwrapped, "P", None), dict)


def objection(env: gymnasium.Env[Any, Any]) -> str | None:
    """Why an environment that has a table cannot be replaced by it; None if it can."""
    while env is not env.unwrapped:
        if type(env) not in NEUTRAL_WRAPPERS:
            return f"its wrapper {type(env).__name__} may change what the table says"
        env = env.env  # pyright: ignore[reportAttributeAccessIssue]
    table, bare = getattr(env, "P", {}), env
    if not isinstance(bare.observation_space, spaces.Discrete) or sorted(table) != list(range(len(table))):
        return "its table is not one of states 0, 1, 2, ..."
    if len(table) != bare.observation_space.n or int(bare.observation_space.start) != 0:
        return "its table has other states than its observation space"
    if getattr(bare, "initial_state_distrib", None) is None:
        return "it does not say where it starts (`initial_state_distrib`)"
    if getattr(bare, "fickle_passenger", False):
        return "its passengers are fickle, which the table does not show"
    return None if _agrees(bare) else "its steps are not those of the table"


def from_environment(env: gymnasium.Env[Any, Any], states: StateEncoding, time_limit: int | None) -> FiniteMDP:
    """The FiniteMDP of an environment that has a table, and to which there is no objection."""
    bare: Any = env.unwrapped
    encoding = STATE_ENCODINGS[states](len(bare.P))
    return from_table(bare.P, bare.initial_state_distrib, time_limit or NO_LIMIT, encoding)


def from_table(table: dict[int, dict[int, list[Any]]], start: Any, time_limit: int, encoding: Encoding) -> FiniteMDP:
    """A FiniteMDP from a Gymnasium table `P[state][action] = [(probability, next_state, reward, terminated), ...]`.

    Args:
        table: the environment's `unwrapped.P`.
        start: probability that an episode starts in each state.
        time_limit: steps after which an episode is truncated.
        encoding: how a state enters the network.
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
        encoding=encoding,
    )


def _agrees(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether random steps of the environment are outcomes of its table."""
    table: Any = getattr(env, "P", {})
    random = np.random.default_rng(0)
    state, _ = env.reset(seed=0)
    for _ in range(CHECKED_STEPS):
        action = int(random.integers(len(table[0])))
        after, reward, terminated, _, _ = env.step(action)
        outcomes = [tuple(outcome[1:]) for outcome in table[int(state)][action] if outcome[0] > 0]
        if (int(after), reward, terminated) not in outcomes:
            return False
        state = env.reset()[0] if terminated else after
    return True
