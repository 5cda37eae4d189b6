"""Steps of a random policy before a run, and the range of returns that they show."""

import functools
import itertools
import math
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from uppertail.compiling import jitted
from uppertail.environments.base import Environment, EnvironmentBuilder, discounted_steps
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium.vector import HostEnvironments, step_host
from uppertail.environments.packages import NOT_FINITE, EnvironmentFailedError, begin_host
from uppertail.environments.repeated import build_repeated
from uppertail.masks import ActionMask
from uppertail.types import PyTree, ReturnRange

MEASURED_EPISODES, MEASURED_STEPS = 20, 5_000  # a random policy ends after so many episodes or steps
WIDER = 2.0  # how far beyond the measured returns others are expected at most, in widths of the measured range
OBSERVED_STEPS = 2_000  # the fewest, where observations are looked at, or nothing but 0 was paid so far
SILENT = 5.0  # seconds after which a line says what takes so long; the next one comes after twice as many

WHERE = "The environment, stepped by a random policy before the run,"
Say = Callable[[str], object]


class Patience:
    """Says how far something is once it has taken a while, and again each time it has taken twice as long."""

    def __init__(self, say: Say) -> None:
        self.say, self.began, self.line = say, time.monotonic(), SILENT

    def __call__(self, so_far: Callable[[float], str]) -> None:
        """`so_far` tells what was done in so many seconds."""
        if (passed := time.monotonic() - self.began) > self.line:
            self.line *= 2
            self.say(so_far(passed))


Walker = tuple[PyTree, Array, ActionMask]
"""State of an episode in progress, what it shows, and which actions are allowed."""


class RandomPlay(NamedTuple):
    """What a random policy earned in whole episodes.

    Attributes:
        returns: not discounted.
        mean_length: of an episode, in steps.
        going_on: the mean reward of a step, over actions that did not terminate; 0: all did.
        idle: the share of actions that changed nothing in what is observed; 1: observations were not looked at.
    """

    returns: Float[np.ndarray, " episodes"]
    mean_length: float
    going_on: float
    idle: float = 1.0


class Steps(NamedTuple):
    """Steps of a random policy, episode after episode; the last one may be incomplete."""

    observation: Array | np.ndarray
    action: Int[Array | np.ndarray, " steps"]
    reward: Float[Array | np.ndarray, " steps"]
    terminated: Bool[Array | np.ndarray, " steps"]
    truncated: Bool[Array | np.ndarray, " steps"]
    next_observation: Array | np.ndarray

    @property
    def ends(self) -> Int[np.ndarray, " episodes"]:
        """The last step of each whole episode."""
        return np.flatnonzero(self.terminated | self.truncated)

    @property
    def begins(self) -> Int[np.ndarray, " episodes"]:
        """The first step of each episode, of one that is not whole, too."""
        begins = np.append(0, self.ends + 1)
        return begins[begins < len(self.reward)]

    @property
    def episodes(self) -> list[Float[np.ndarray, " steps"]]:
        """The rewards of each episode; the last one is not whole, and may be empty."""
        return np.split(np.asarray(self.reward), self.ends + 1)

    @property
    def returns(self) -> Float[np.ndarray, " episodes"]:
        """The returns of whole episodes, not discounted."""
        return np.array([rewards.sum() for rewards in self.episodes[:-1]])

    def played(self, repeats: int) -> RandomPlay:
        """What they earned, where each action lasts so many steps."""
        goes_on = ~np.asarray(self.terminated)
        paid = float(np.asarray(self.reward)[goes_on].mean()) if goes_on.any() else 0.0
        same = (np.asarray(self.observation) == np.asarray(self.next_observation)).reshape(len(self.reward), -1)
        idle = float(np.mean(same.all(axis=1) & goes_on)) if same.shape[1] else 1.0
        return RandomPlay(self.returns, len(self.reward) * repeats / len(self.begins), paid / repeats, idle)


def random_steps(builder: EnvironmentBuilder, observed: bool = False, say: Say = warnings.warn) -> Steps:
    """Steps in an environment, the same for every run, enough to measure returns by; compiled ones always 5,000.

    Observations are left out unless they are asked for: thousands of images may not fit into memory. `say` is called
    with a line if the steps take long. EnvironmentFailedError if the environment fails.
    """
    return _compiled_steps(builder, observed) if builder.compiles else _host_steps(builder, observed, say)


def measured_range(builder: EnvironmentBuilder, steps: Steps, discount: float, wider: float = WIDER) -> ReturnRange:
    """An estimate of the range of discounted returns from steps of a random policy.

    It reaches to the returns of the lowest and of the highest reward at every step of the time limit, but at most
    so many widths beyond the measured range.
    """
    returns = np.concatenate([[0.0], *(discounted_returns(rewards, discount) for rewards in steps.episodes)])
    rewards = np.append(0.0, steps.reward)
    horizon = discounted_steps(_time_limit(builder, steps) or math.inf, discount)
    width = returns.max() - returns.min()
    lowest, highest = (each * horizon if each else 0.0 for each in (rewards.min(), rewards.max()))
    low, high = max(lowest, returns.min() - wider * width), min(highest, returns.max() + wider * width)
    return ReturnRange(float(low), float(high), known=False)


def discounted_returns(rewards: np.ndarray, discount: float) -> Float[np.ndarray, " steps"]:
    """The return from each step of an episode on, the last step first; 0 comes before all."""
    returns = itertools.accumulate(rewards[::-1], lambda later, reward: reward + discount * later, initial=0.0)
    return np.array([*returns])


def table_steps(table: FiniteMDP, steps: int = OBSERVED_STEPS) -> Steps:
    """Steps in the table of a finite MDP: in NumPy, since compiling a program for this would take a second."""
    random, rows = np.random.default_rng(0), list[Steps]()
    chances, starts = (np.cumsum(np.asarray(each), axis=-1) for each in (table.probability, table.start_probability))
    following, paid, over, first = map(
        np.asarray, (table.next_state, table.reward, table.terminated, table.start_state)
    )
    noise = None if table.reward_std is None else np.asarray(table.reward_std)
    masks = None if table.action_mask is None else np.asarray(table.action_mask)

    def drawn(chances: Float[np.ndarray, " outcomes"]) -> int:
        return min(int(np.searchsorted(chances, random.uniform() * chances[-1], side="right")), len(chances) - 1)

    state, elapsed = first[drawn(starts)], 0
    for _ in range(steps):
        action = random.integers(table.num_actions) if masks is None else random.choice(np.flatnonzero(masks[state]))
        where = (state, action, drawn(chances[state, action]))
        reward = paid[where] if noise is None else random.normal(paid[where], noise[where])
        elapsed, ended = elapsed + 1, bool(over[where])
        late = not ended and elapsed >= table.time_limit
        rows.append(Steps(state, action, reward, ended, late, following[where]))  # pyright: ignore[reportArgumentType]
        state, elapsed = (first[drawn(starts)], 0) if ended or late else (following[where], elapsed)
    return Steps(*map(np.array, zip(*rows, strict=True)))


def _host_steps(builder: Any, observed: bool, say: Say) -> Steps:
    """Steps in an environment that Python steps."""
    environment, random = builder.open(0, 1), np.random.default_rng(0)
    least, rows, ends, paid = OBSERVED_STEPS if observed else 0, list[Steps](), [0], False
    patience = Patience(say)
    try:
        observation = begin_host(environment.reset, lambda: WHERE)
        while len(rows) < least or not _saw_enough(len(rows), ends, paid):
            action = _allowed_actions(random, environment, builder.num_actions)
            now = step_host(environment, action, lambda: WHERE)
            if now.real[0]:
                here, after = (observation, now.next_observation) if observed else (np.zeros((1, 0)), np.zeros((1, 0)))
                step = here, action, now.reward, now.terminated, now.truncated, after
                rows.append(Steps(*(each[0] for each in step)))
                paid |= bool(now.reward[0])
            if now.terminated[0] or now.truncated[0]:
                ends.append(len(rows))
            observation = now.observation
            patience(
                lambda passed: (
                    f"Before the run a random policy tries the environment: {len(rows):,} steps in {passed:.0f} s; "
                    f"it ends after {MEASURED_EPISODES} episodes, or about {MEASURED_STEPS:,} steps"
                    f"{f', but not before {least:,}' if least else ''}."
                )
            )
    finally:
        environment.close()
    steps = Steps(*map(np.stack, zip(*rows, strict=True)))
    return steps._replace(reward=steps.reward.astype(float))  # sums of 64 bits


def _saw_enough(steps: int, ends: list[int], paid: bool) -> bool:
    """Whether a random policy may stop: it saw episodes enough, or steps enough and the end of an episode.

    Where nothing was paid, twenty short episodes are not enough.

    Args:
        steps: how many it made.
        ends: the steps at which episodes ended, after a 0.
        paid: whether a reward was not 0.
    """
    if len(ends) > MEASURED_EPISODES and (paid or steps >= OBSERVED_STEPS):
        return True
    at_an_end = not ends[-1] < steps < ends[-1] + MEASURED_STEPS
    return steps >= MEASURED_STEPS and at_an_end


def _allowed_actions(random: np.random.Generator, host: HostEnvironments, count: int) -> Int[np.ndarray, " envs"]:
    """An action at random in each environment."""
    if host.action_mask is None:
        return random.integers(count, size=host.num_envs)
    allowed = [np.flatnonzero(mask) for mask in host.action_mask]
    return np.array([random.choice(each) if each.size else 0 for each in allowed])  # 0: only to reset it


def _compiled_steps(builder: EnvironmentBuilder, observed: bool) -> Steps:
    """Steps in a compiled environment."""
    key = jax.random.key(0)
    walked, stuck = _walk(build_repeated(builder, key), key, jax.random.split(key, MEASURED_STEPS), observed)
    if np.any(stuck):
        raise EnvironmentFailedError(f"{WHERE} gave an action_mask that allows no action where an episode goes on.")
    steps = jax.tree.map(np.asarray, walked)
    if not (finite := np.isfinite(steps.reward)).all():
        raise EnvironmentFailedError(NOT_FINITE.format(WHERE, steps.reward[~finite][0]))
    return steps


@functools.partial(jitted, static_argnames="observed")
def _walk(
    environment: Environment, key: PRNGKeyArray, keys: Key[Array, " steps"], observed: bool
) -> tuple[Steps, Bool[Array, " steps"]]:
    """The steps of a random policy, one for each key, and where no action was allowed.

    Observations are left out unless they are asked for.
    """

    def step(carry: Walker, key: Key[Array, ""]) -> tuple[Walker, tuple[Steps, Array]]:
        state, observation, mask = carry
        action_key, step_key, reset_key = jax.random.split(key, 3)
        action = jax.random.randint(action_key, (), 0, environment.num_actions)
        if mask is not None:
            action = jnp.argmax(jnp.where(mask, jax.random.uniform(action_key, mask.shape), -1.0))
        stuck = jnp.zeros((), bool) if mask is None else ~jnp.any(mask)
        state, now = environment.step(step_key, state, action)
        environment.require_masks(first, now)
        here, after = (observation, now.observation) if observed else (jnp.zeros(0), jnp.zeros(0))
        made = Steps(here, action, now.reward, now.terminated, now.truncated, after)
        fresh, begin = environment.reset(reset_key)
        ended = now.terminated | now.truncated
        begun = jax.tree.map(
            lambda new, old: jnp.where(ended, new, old),
            (fresh, begin.observation, begin.action_mask),
            (state, now.observation, now.action_mask),
        )
        return begun, (made, stuck)

    state, first = environment.reset(key)
    return jax.lax.scan(step, (state, first.observation, first.action_mask), keys)[1]


def _time_limit(builder: Any, steps: Steps) -> int | None:
    """Steps after which episodes are truncated; that of a compiled environment is taken from those that were."""
    if not builder.compiles:
        return builder.time_limit
    lengths = np.diff(steps.ends, prepend=-1)[np.asarray(steps.truncated)[steps.ends]]
    return int(lengths.max()) if lengths.size else None
