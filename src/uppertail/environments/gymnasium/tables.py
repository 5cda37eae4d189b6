"""Gymnasium environments that show their whole table, as finite MDPs; and why a table cannot stand for one."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces, wrappers

from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium.wrapping import wrappers_of
from uppertail.environments.packages import described

NO_LIMIT = 2**31 - 1  # the time limit of an environment that has none
CHECKED_STEPS, CHECKED_STARTS = 500, 20  # random steps, and first states, that are compared with the table
ROUNDING = 1e-6  # how far from 1 the sum of probabilities may be

NEUTRAL_WRAPPERS = (
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.TimeLimit,
)
"""Wrappers that change neither rewards nor observations nor where an action leads."""


def has_table(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether the environment has a table at all, whatever is wrapped around it."""
    try:
        return isinstance(getattr(env.unwrapped, "P", None), dict)
    except Exception:  # the environment's own code may raise anything
        return False


def from_table(bare: Any, time_limit: int | None) -> FiniteMDP:
    """A FiniteMDP from the table `P[state][action] = [(probability, next_state, reward, terminated), ...]`.

    The environment is without its wrappers, and has `initial_state_distrib`, too.
    """
    table: dict[int, dict[int, list[Any]]] = bare.P
    start = np.asarray(bare.initial_state_distrib)
    outcomes = max(len(each) for row in table.values() for each in row.values())
    entries = np.zeros((len(table), len(table[0]), outcomes, 4))
    for state, action in np.ndindex(*entries.shape[:2]):
        entries[state, action, : len(table[state][action])] = table[state][action]
    probability, next_state, reward, terminated = np.moveaxis(entries, -1, 0)
    starts = np.flatnonzero(start)
    return FiniteMDP(
        next_state=jnp.asarray(next_state, jnp.int32),
        reward=jnp.asarray(reward, jnp.float32),
        terminated=jnp.asarray(terminated, bool),
        probability=jnp.asarray(probability, jnp.float32),
        start_state=jnp.asarray(starts, jnp.int32),
        start_probability=jnp.asarray(start[starts], jnp.float32),
        time_limit=time_limit or NO_LIMIT,
    )


def table_error(env: gymnasium.Env[Any, Any]) -> str | None:
    """Why an environment that has a table cannot be replaced by it; None if it can."""
    for wrapper in wrappers_of(env):
        if type(wrapper) not in NEUTRAL_WRAPPERS:
            return f"its wrapper {type(wrapper).__name__} may change what the table says"
    bare = env.unwrapped
    try:
        return _of_table(bare) or _of_starts(bare) or _of_steps(bare)
    except Exception as error:  # the environment's own code may raise anything, and its table may have any form
        return f"its table cannot be followed ({described(error)})"


def _of_table(env: Any) -> str | None:
    table, observed, actions = env.P, env.observation_space, env.action_space
    if not isinstance(observed, spaces.Discrete) or sorted(table) != list(range(len(table))):
        return "its table is not one of states 0, 1, 2 and so on"
    if len(table) != observed.n or int(observed.start) != 0:
        return "its table has other states than its observation space"
    if not isinstance(actions, spaces.Discrete) or any(sorted(row) != [*range(actions.n)] for row in table.values()):
        return "its table is not one of actions 0, 1, 2 and so on"
    outcomes = [tuple(map(float, outcome)) for row in table.values() for each in row.values() for outcome in each]
    if any(len(outcome) != 4 or not np.isfinite(outcome).all() for outcome in outcomes):
        return "its table is not one of (probability, next state, reward, terminated)"
    for state, row in table.items():
        for action, each in row.items():
            where = f"from state {state} by action {action}"
            if wrong := _of_probabilities([float(outcome[0]) for outcome in each]):
                return f"the probabilities of its table {where} {wrong}"
            if strange := [outcome[1] for outcome in each if outcome[1] not in table]:
                return f"its table leads {where} to {strange[0]}, which is no state of it"
    if getattr(env, "initial_state_distrib", None) is None:
        return "it does not say where it starts (`initial_state_distrib`)"
    if getattr(env, "fickle_passenger", False):
        return "its passengers are fickle, which the table does not show"
    return None


def _of_probabilities(numbers: Sequence[float]) -> str | None:
    """What is wrong with numbers that should be the probabilities of all outcomes; None: nothing."""
    if min(numbers, default=0.0) < 0:
        return "are not all 0 or more"
    return None if abs(sum(numbers) - 1) <= ROUNDING else f"sum to {sum(numbers):.6g}, not to 1"


def _of_starts(env: Any) -> str | None:
    starts = np.asarray(env.initial_state_distrib, float)
    if wrong := _of_probabilities(starts.reshape(-1).tolist()):
        return f"the probabilities of `initial_state_distrib` {wrong}"
    first = [int(env.reset(seed=seed)[0]) for seed in range(CHECKED_STARTS)]
    if starts.shape != (len(env.P),) or not (starts[first] > 0).all():
        return "its episodes start where `initial_state_distrib` says that none does"
    return None


def _of_steps(env: Any) -> str | None:
    """Checks that random steps are outcomes of the table."""
    random, state = np.random.default_rng(0), env.reset(seed=0)[0]
    for _ in range(CHECKED_STEPS):
        action = int(random.integers(len(env.P[0])))
        after, reward, terminated, truncated, _ = env.step(action)
        outcomes = [tuple(outcome[1:]) for outcome in env.P[int(state)][action] if outcome[0] > 0]
        if (int(after), reward, terminated) not in outcomes:
            return "its steps are not those of the table"
        if truncated:
            return "it truncates episodes by itself, which the table does not show"
        state = env.reset()[0] if terminated else after
    return None
