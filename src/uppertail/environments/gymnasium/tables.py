"""Gymnasium environments that show their whole table, as finite MDPs; and why a table cannot stand for one."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces, wrappers
from jaxtyping import Bool, Float

from uppertail.environments.finite import FiniteMDP, sum_to_1
from uppertail.environments.gymnasium.action_masks import mask_of
from uppertail.environments.gymnasium.masked import METHOD, Masked, Unmasked
from uppertail.environments.gymnasium.wrapping import time_limit, wrappers_of
from uppertail.environments.packages import LARGEST, described

NO_LIMIT = 2**31 - 1  # the time limit of an environment that has none
CHECKED_STEPS, CHECKED_STARTS = 500, 20  # random steps, and first states, that are compared with the table
Masks = Bool[np.ndarray, "states actions"] | None

ROUNDING = 1e-6  # how far from 1 the sum of probabilities may be
MUST = "must be 0 or more, and sum to 1"

NEUTRAL_WRAPPERS = (
    Unmasked,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.TimeLimit,
)
"""Wrappers that change neither rewards nor observations nor where an action leads; a table keeps its masks."""


def read_table(env: gymnasium.Env[Any, Any]) -> tuple[FiniteMDP | None, str | None]:
    """The environment as a finite MDP; None and why, if it shows a table that cannot replace it; or None twice.

    The table is `P[state][action] = [(probability, next_state, reward, terminated), ...]`, and beside it the
    environment has `initial_state_distrib` and, if it gives action masks, the function `action_mask` of a state.
    """
    try:
        bare: Any = env.unwrapped
        if not isinstance(getattr(bare, "P", None), dict):
            return None, None
        for wrapper in wrappers_of(env):
            if isinstance(wrapper, Masked):
                return None, f"its table does not have what its {METHOD}() says"
            if type(wrapper) not in NEUTRAL_WRAPPERS:
                return None, f"its wrapper {type(wrapper).__name__} may change what the table says"
        entries, starts, masks = _entries(bare), np.asarray(bare.initial_state_distrib, float), _masks(bare)
        wrong = _wrong_numbers(bare, entries, starts) or _wrong_masks(masks, entries, starts)
        wrong = wrong or _wrong_steps(bare, starts, masks)
        return (None, wrong) if wrong else (_table(entries, starts, time_limit(env), masks), None)
    except Exception as error:  # the environment's own code may raise anything, and its table may have any form
        return None, f"its table cannot be followed ({described(error)})"


def _entries(bare: Any) -> Float[np.ndarray, "states actions outcomes 4"]:
    """The table's numbers; all are 0 for an outcome that is missing beside another action's."""
    table: dict[int, dict[int, list[Any]]] = bare.P
    outcomes = max(len(each) for row in table.values() for each in row.values())
    entries = np.zeros((len(table), len(table[0]), outcomes, 4))
    for state, action in np.ndindex(*entries.shape[:2]):
        entries[state, action, : len(table[state][action])] = table[state][action] or 0.0
    return entries


def _masks(bare: Any) -> Masks:
    """Which actions are allowed in each state; None where its infos do not say."""
    if mask_of(bare.reset(seed=0)[1], len(bare.P[0])) is None:
        return None
    return np.stack([np.asarray(bare.action_mask(state)).astype(bool) for state in range(len(bare.P))])


def _table(
    entries: Float[np.ndarray, "states actions outcomes 4"], start: np.ndarray, limit: int | None, masks: Masks
) -> FiniteMDP:
    probability, next_state, reward, terminated = np.moveaxis(entries, -1, 0)
    starts = np.flatnonzero(start)
    with jax.ensure_compile_time_eval():  # it is kept, also if a program is being compiled now
        return FiniteMDP(
            next_state=jnp.asarray(next_state, jnp.int32),
            reward=jnp.asarray(reward, jnp.float32),
            terminated=jnp.asarray(terminated, bool),
            probability=jnp.asarray(probability, jnp.float32),
            start_state=jnp.asarray(starts, jnp.int32),
            start_probability=jnp.asarray(start[starts], jnp.float32),
            time_limit=limit or NO_LIMIT,
            action_mask=None if masks is None else jnp.asarray(masks),
        )


def _wrong_numbers(bare: Any, entries: Float[np.ndarray, "states actions outcomes 4"], starts: Any) -> str | None:
    for space, count in zip((bare.observation_space, bare.action_space), entries.shape[:2], strict=True):
        if not isinstance(space, spaces.Discrete) or (space.n, space.start) != (count, 0):
            return f"its table is one of {count} states or actions, and its space {space}"
    if not np.isfinite(entries).all():
        return "its table holds numbers that are not finite"
    if (np.abs(entries[..., 2]) > LARGEST).any():
        return f"its table holds rewards beyond {LARGEST:g}"
    for state, action in np.argwhere(~sum_to_1(entries[..., 0], ROUNDING)).tolist():
        return f"the probabilities of its table from state {state} by action {action} {MUST}"
    strange = ~np.isin(entries[..., 1], np.arange(len(entries)))
    for state, action, _ in np.argwhere(strange).tolist():
        return f"its table leads from state {state} by action {action} to what is no state of it"
    if starts.shape != (len(entries),) or not sum_to_1(starts, ROUNDING):
        return f"the probabilities of its states in `initial_state_distrib` {MUST}"
    if getattr(bare, "fickle_passenger", False):
        return "its passengers are fickle, which the table does not show"
    return None


def _wrong_masks(masks: Masks, entries: Float[np.ndarray, "states actions outcomes 4"], starts: Any) -> str | None:
    """Checks that there is an allowed action in each state in which an episode may start or go on."""
    if masks is None:
        return None
    if masks.shape != entries.shape[:2]:
        return f"its action_mask has the shape {masks.shape[1:]}, and its table {entries.shape[1]} actions"
    goes_on = masks[:, :, None] & (entries[..., 0] > 0) & (entries[..., 3] == 0)
    there = {*np.flatnonzero(starts).tolist(), *entries[..., 1][goes_on].astype(int).tolist()}
    without = sorted(there - {*np.flatnonzero(masks.any(axis=1)).tolist()})
    return f"its action_mask allows no action in state {without[0]}" if without else None


def _wrong_steps(bare: Any, starts: Float[np.ndarray, " states"], masks: Masks) -> str | None:
    """Checks that episodes start where they should, and that random steps and masks are those of the table."""
    if not all(starts[int(bare.reset(seed=seed)[0])] > 0 for seed in range(CHECKED_STARTS)):
        return "its episodes start where `initial_state_distrib` says that none does"
    random, (state, info) = np.random.default_rng(0), bare.reset(seed=0)
    for _ in range(CHECKED_STEPS):
        if masks is not None and not np.array_equal(mask_of(info, masks.shape[1]), masks[int(state)]):  # pyright: ignore
            return "its masks of allowed actions are not those of its states"
        allowed = range(len(bare.P[0])) if masks is None else np.flatnonzero(masks[int(state)])
        action = int(allowed[random.integers(len(allowed))])
        after, reward, terminated, truncated, info = bare.step(action)
        outcomes = [tuple(outcome[1:]) for outcome in bare.P[int(state)][action] if outcome[0] > 0]
        if (int(after), reward, terminated) not in outcomes:
            return "its steps are not those of the table"
        if truncated:
            return "it truncates episodes by itself, which the table does not show"
        state, info = bare.reset() if terminated else (after, info)
    return None
