"""What a random policy finds out before a run: the range of returns, and how the numbers of a vector enter it."""

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from uppertail.environments.base import Environment, EnvironmentBuilder, VectorBuilder, discounted_steps
from uppertail.environments.gymnasium.vector import step_host
from uppertail.environments.packages import NOT_FINITE, EnvironmentFailedError, begin_host
from uppertail.environments.repeated import build_repeated
from uppertail.types import PyTree, ReturnRange

MEASURED_EPISODES, MEASURED_STEPS = 20, 5_000  # measuring returns ends after so many episodes or steps
WIDER = 2.0  # how far beyond the measured returns others are expected at most, in widths of the measured range

TRIED_STEPS = 2_000  # after which numbers of a vector are judged
RIDGE, FLOOR = 0.1, 1e-4  # of the regression on numbers from 0 to 1, and of its variance, in units of each goal
LEAST_FREE, LARGEST_ERROR = 50, 0.35  # transitions of each action that its regression leaves free; standard error
SIGNIFICANT = 3.0  # standard deviations above the mean of a chi-squared sum
SHOWN = 8  # numbers that a note names
REPEATED = 0.5  # share of the later observations that must have come before

SPARSE = 0.05  # share of the range of returns within which all random episodes stay if reward is sparse
SPARSE_NOTE = (
    "All episodes of a random policy returned nearly the same, so nearest neighbors learn (--learner LeastSquares "
    "fits all data instead)."
)
KEPT = "The numbers {} of observations are left out: they {} (--env.left_out '[]' keeps them)."

SAME = 1e-3  # share of the span of a number by which it may differ from the count of steps

MOVED, LONGEST = 0.9, 8  # standard deviations by which an action may change the numbers; its longest, in steps


class Steps(NamedTuple):
    """Steps of a random policy, episode after episode; the last one may be incomplete."""

    observation: Array | np.ndarray
    action: Int[Array | np.ndarray, " steps"]
    reward: Float[Array | np.ndarray, " steps"]
    terminated: Bool[Array | np.ndarray, " steps"]
    truncated: Bool[Array | np.ndarray, " steps"]
    next_observation: Array | np.ndarray


class Choice(NamedTuple):
    """What a random policy found out before a run.

    Args:
        builder: the environment's, with what was left open of how numbers enter.
        nearest: whether nearest neighbors learn, because the user asked for them or reward is sparse.
        notes: sentences for the user.
    """

    builder: VectorBuilder
    nearest: bool = False
    notes: tuple[str, ...] = ()


def measure_returns(builder: EnvironmentBuilder, discount: float) -> ReturnRange:
    """An estimate of the range of returns from episodes of a random policy, the same for every run.

    It reaches to the returns of the lowest and of the highest reward at every step of the time limit, but at most
    `WIDER` widths beyond the measured range. EnvironmentFailedError if an environment fails.
    """
    steps = _steps(builder, 0, "its returns were measured by a random policy (--env.returns avoids this),")
    ends = np.flatnonzero(steps.terminated | steps.truncated)
    episodes = np.split(np.asarray(steps.reward), ends + 1)[:MEASURED_EPISODES]
    returns = np.concatenate([[0.0], *(_discounted(rewards, discount) for rewards in episodes)])
    rewards = np.concatenate([[0.0], *episodes])
    horizon = discounted_steps(_time_limit(builder, steps, ends) or math.inf, discount)
    width = returns.max() - returns.min()
    lowest, highest = (each * horizon if each else 0.0 for each in (rewards.min(), rewards.max()))
    low, high = max(lowest, returns.min() - WIDER * width), min(highest, returns.max() + WIDER * width)
    return ReturnRange(float(low), float(high), known=False)


def choose_features(
    builder: VectorBuilder,
    discount: float,
    before: Mapping[str, Any] | None = None,
    nearest: bool | None = None,
) -> Choice:
    """The builder of an environment that shows numbers, with what the user left open of how they enter.

    Numbers that tell nothing of what follows are left out. If the others repeat exactly, each vector of them is a
    state; else each action is taken for as many steps as it needs to make a difference. `before` has the settings of
    an earlier run of the same environment, which are used again. `nearest` says whether nearest neighbors learn; None:
    they do if the others do not repeat and reward is sparse. They leave out numbers that count steps, too, because
    observations of different steps would never be near. EnvironmentFailedError if an environment fails.
    """
    if builder.left_out is not None or builder.radius is not None:
        return Choice(builder, bool(nearest))
    if before:
        left_out = before["left_out"] and tuple(before["left_out"])
        features = before["features"] if builder.features == "auto" else builder.features
        repeats = builder.action_repeat or before.get("action_repeat")
        builder = builder.with_settings(left_out=left_out, features=features, action_repeat=repeats)
        return Choice(builder, bool(nearest))
    steps = _steps(builder, TRIED_STEPS, "stepped by a random policy (--env.left_out '[]' avoids this),")
    left_out, notes = tuple(irrelevant_numbers(steps).tolist()), []
    if left_out:
        notes.append(KEPT.format(_listed(left_out), "told nothing of what came next in steps of a random policy"))
    features, repeats = builder.features, builder.action_repeat
    if features == "auto" and not nearest and repeat(np.delete(np.asarray(steps.observation), left_out, axis=1)):
        features = "hashed"
    is_open = features in ("auto", "random")
    if nearest is None and is_open and builder.known_returns is not None:
        nearest = is_sparse(steps, builder.known_returns, discount**builder.repeats)
        notes += [SPARSE_NOTE] * nearest
    if nearest:
        counted = np.union1d(left_out, counts := clocks(steps)).astype(int)
        if counts.size and len(counted) < steps.observation.shape[1]:
            left_out = tuple(counted.tolist())
            notes.append(KEPT.format(_listed(tuple(counts.tolist())), "count the steps of an episode"))
    if repeats is None and is_open and builder.can_repeat:
        repeats = steps_of_an_action(steps, left_out)
    builder = builder.with_settings(left_out=left_out or None, features=features, action_repeat=repeats)
    return Choice(builder, bool(nearest), tuple(notes))


def _listed(places: tuple[int, ...]) -> str:
    return ", ".join(map(str, places[:SHOWN])) + ", ..." * (len(places) > SHOWN)


def is_sparse(steps: Steps, returns: ReturnRange, discount: float) -> bool:
    """Whether the discounted returns of whole random episodes lie within a small share of the range of returns."""
    ends = np.flatnonzero(steps.terminated | steps.truncated)
    episodes = np.split(np.asarray(steps.reward, np.float64), ends + 1)[: len(ends)]
    found = [float(_discounted(rewards, discount)[-1]) for rewards in episodes]
    return len(found) > 1 and bool(np.ptp(found) < SPARSE * (returns.high - returns.low))


def irrelevant_numbers(steps: Steps) -> Int[np.ndarray, " left_out"]:
    """The places of numbers that tell nothing of the next observation, the reward, or whether the episode terminates.

    For each action, ridge regression predicts all of these from the observation. A number is irrelevant if its
    weights, divided by their standard errors, are no larger than chance makes them, and if none of these errors is so
    large that an effect would have been missed. A number that keeps its value predicts itself, so it is relevant.
    There are none if all numbers would be irrelevant, since a run needs at least one.
    """
    here, after = np.asarray(steps.observation, np.float64), np.asarray(steps.next_observation, np.float64)
    low, high = np.minimum(here.min(axis=0), after.min(axis=0)), np.maximum(here.max(axis=0), after.max(axis=0))
    inputs = (here - low) / np.where(high > low, high - low, 1.0)
    goals = np.column_stack([after, steps.reward, steps.terminated]).astype(np.float64)
    spread = goals.std(axis=0)
    goals = goals[:, spread > 0] / spread[spread > 0]
    effect, unclear = np.zeros(inputs.shape[1]), np.zeros(inputs.shape[1], bool)
    actions = np.unique(steps.action)
    for action in actions:
        own = np.asarray(steps.action) == action
        x, y = (each[own] - each[own].mean(axis=0) for each in (inputs, goals))
        varies = np.ptp(x, axis=0) > 0
        unclear |= ~varies
        x = x[:, varies]
        if len(x) - x.shape[1] < LEAST_FREE:
            return np.zeros(0, np.int64)
        gram = x.T @ x
        inverse = np.linalg.inv(gram + RIDGE * np.eye(x.shape[1]))
        weights = inverse @ x.T @ y
        noise = np.sum((y - x @ weights) ** 2, axis=0) / (len(x) - 1 - np.sum(inverse * gram)) + FLOOR
        variance = np.diag(inverse @ gram @ inverse)[:, None] * noise
        effect[varies] += np.sum(weights**2 / variance, axis=1)
        unclear[varies] |= np.sqrt(variance.max(axis=1, initial=0.0)) > LARGEST_ERROR
    terms = len(actions) * goals.shape[1]
    irrelevant = ~unclear & (effect < terms + SIGNIFICANT * math.sqrt(2 * terms))
    return np.flatnonzero(irrelevant & ~irrelevant.all())


def clocks(steps: Steps) -> Int[np.ndarray, " clocks"]:
    """The places of numbers that count the steps of an episode, which change by the same number from step to step.

    None if these are all numbers.
    """
    shown = np.asarray(steps.observation, np.float64)
    ends = np.flatnonzero(steps.terminated | steps.truncated)
    number = np.arange(len(shown))
    number = number - np.concatenate([[0], ends + 1])[np.searchsorted(ends, number)]
    inputs = np.column_stack([number, np.ones(len(shown))])
    errors = np.abs(shown - inputs @ np.linalg.lstsq(inputs, shown)[0]).max(axis=0)
    spread = np.ptp(shown, axis=0)
    counts = (spread > 0) & (errors < SAME * spread)
    return np.flatnonzero(counts & ~counts.all())


def repeat(observations: Float[np.ndarray, "steps numbers"]) -> bool:
    """Whether at least half of the observations in the later half came before."""
    first, later = np.array_split(observations, 2)
    before = {row.tobytes() for row in first}
    return bool(np.mean([row.tobytes() in before for row in later]) >= REPEATED)


def steps_of_an_action(steps: Steps, left_out: tuple[int, ...]) -> int:
    """How many steps change the numbers that count by about `MOVED` standard deviations, at most `LONGEST`.

    If steps change little, the actions of one state differ by less than the error of a fit, and values have to pass
    through many states. A number's change is its root mean square, and that of the observation the mean of all.
    """
    here, after = (
        np.delete(np.asarray(each, np.float64), left_out, axis=1)
        for each in (steps.observation, steps.next_observation)
    )
    spread = here.std(axis=0)
    varies = spread > 0
    change = np.sqrt(np.mean((after - here)[:, varies] ** 2, axis=0)) / spread[varies]
    share = change.mean() if varies.any() else math.inf
    return max(1, round(MOVED / max(share, MOVED / LONGEST)))


def _steps(builder: EnvironmentBuilder, least: int, moment: str) -> Steps:
    """Enough steps to measure returns by, and at least as many as asked for; in compiled environments always 5,000.

    If none are asked for, observations are left out: thousands of images may not fit into memory.
    """
    return _compiled_steps(builder, least, moment) if builder.compiles else _host_steps(builder, least, moment)


def _host_steps(builder: Any, least: int, moment: str) -> Steps:
    """Steps in an environment that Python steps."""
    environment, random = builder.open(0, 1), np.random.default_rng(0)

    def where() -> str:
        return f"The environment, while {moment}"

    rows: list[Steps] = []
    ends = [0]
    try:
        observation = begin_host(environment.reset, where)
        while len(rows) < least or (
            len(ends) <= MEASURED_EPISODES
            and (len(rows) < MEASURED_STEPS or ends[-1] < len(rows) < ends[-1] + MEASURED_STEPS)
        ):
            action = random.integers(builder.num_actions, size=environment.num_envs)
            now = step_host(environment, action, where)
            if now.real[0]:
                here, after = (observation, now.next_observation) if least else (np.zeros((1, 0)), np.zeros((1, 0)))
                step = here, action, now.reward, now.terminated, now.truncated, after
                rows.append(Steps(*(each[0] for each in step)))
            if now.terminated[0] or now.truncated[0]:
                ends.append(len(rows))
            observation = now.observation
    finally:
        environment.close()
    steps = Steps(*map(np.stack, zip(*rows, strict=True)))
    return steps._replace(reward=steps.reward.astype(float))  # sums of 64 bits


def _compiled_steps(builder: EnvironmentBuilder, least: int, moment: str) -> Steps:
    """Steps in a compiled environment."""
    key = jax.random.key(0)
    walked = _walk(build_repeated(builder, key), key, jax.random.split(key, MEASURED_STEPS), bool(least))
    steps = jax.tree.map(np.asarray, walked)
    if not (finite := np.isfinite(steps.reward)).all():
        where = f"The environment, while {moment}"
        raise EnvironmentFailedError(NOT_FINITE.format(where, steps.reward[~finite][0]))
    return steps


@functools.partial(jax.jit, static_argnames="observed")
def _walk(environment: Environment, key: PRNGKeyArray, keys: Key[Array, " steps"], observed: bool) -> Steps:
    """The steps of a random policy, one for each key; observations are left out unless they are asked for."""

    def step(carry: tuple[PyTree, Array], key: Key[Array, ""]) -> tuple[tuple[PyTree, Array], Steps]:
        state, observation = carry
        action_key, step_key, reset_key = jax.random.split(key, 3)
        action = jax.random.randint(action_key, (), 0, environment.num_actions)
        state, now = environment.step(step_key, state, action)
        here, after = (observation, now.observation) if observed else (jnp.zeros(0), jnp.zeros(0))
        made = Steps(here, action, now.reward, now.terminated, now.truncated, after)
        fresh, first = environment.reset(reset_key)
        ended = now.terminated | now.truncated
        begun = jax.tree.map(
            lambda new, old: jnp.where(ended, new, old), (fresh, first.observation), (state, now.observation)
        )
        return begun, made

    state, first = environment.reset(key)
    return jax.lax.scan(step, (state, first.observation), keys)[1]


def _time_limit(builder: Any, steps: Steps, ends: Int[np.ndarray, " episodes"]) -> int | None:
    """Steps after which episodes are truncated; that of a compiled environment is taken from those that were."""
    if not builder.compiles:
        return builder.time_limit
    lengths = np.diff(ends, prepend=-1)[np.asarray(steps.truncated)[ends]]
    return int(lengths.max()) if lengths.size else None


def _discounted(rewards: np.ndarray, discount: float) -> Float[np.ndarray, " steps"]:
    """The return from each step of an episode on."""
    returns = itertools.accumulate(rewards[::-1], lambda later, reward: reward + discount * later, initial=0.0)
    return np.array([*returns])
