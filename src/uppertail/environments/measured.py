"""The range of returns that a run has to tell apart: measured by a random policy, where it is not known."""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from uppertail.environments.base import Environment, EnvironmentBuilder, discounted_steps
from uppertail.environments.gymnasium.vector import step_host
from uppertail.environments.packages import NOT_FINITE, EnvironmentFailedError, begin_host
from uppertail.types import PyTree, ReturnRange, TimeStep

MEASURED_EPISODES, MEASURED_STEPS = 20, 5_000  # of a random policy; measuring ends after so many episodes or steps
WIDER = 2.0  # how far beyond the measured returns others are expected at most, in widths of the measured range


def measure_returns(builder: EnvironmentBuilder, discount: float) -> ReturnRange:
    """An estimate from episodes of a random policy, the same for every run.

    It reaches to the returns of the lowest and of the highest reward at every step of the time limit, but at most
    `WIDER` widths beyond the measured range. EnvironmentFailedError if an environment fails.
    """
    episodes, limit = _compiled_episodes(builder) if builder.compiles else _host_episodes(builder)
    returns = np.concatenate([[0.0], *(_discounted(rewards, discount) for rewards in episodes)])
    rewards = np.concatenate([[0.0], *episodes])
    horizon = discounted_steps(limit or math.inf, discount)
    width = returns.max() - returns.min()
    lowest, highest = (each * horizon if each else 0.0 for each in (rewards.min(), rewards.max()))
    low, high = max(lowest, returns.min() - WIDER * width), min(highest, returns.max() + WIDER * width)
    return ReturnRange(float(low), float(high), known=False)


Episodes = tuple[list[np.ndarray], int | None]  # rewards, maybe incomplete in the last one; the time limit, if any


def _moment() -> str:
    return "The environment, while its returns were measured by a random policy (--env.returns avoids this),"


def _host_episodes(builder: Any) -> Episodes:
    """Episodes in an environment that Python steps."""
    environment, random = builder.open(0, 1), np.random.default_rng(0)
    rewards: list[float] = []
    ends = [0]
    try:
        begin_host(environment.reset, _moment)
        while len(ends) <= MEASURED_EPISODES and (
            len(rewards) < MEASURED_STEPS or ends[-1] < len(rewards) < ends[-1] + MEASURED_STEPS
        ):
            now = step_host(environment, random.integers(builder.num_actions, size=environment.num_envs), _moment)
            if now.real[0]:
                rewards.append(float(now.reward[0]))
            if now.terminated[0] or now.truncated[0]:
                ends.append(len(rewards))
    finally:
        environment.close()
    return np.split(np.array(rewards), ends[1:]), builder.time_limit


def _compiled_episodes(builder: EnvironmentBuilder) -> Episodes:
    """Episodes in a compiled environment, whose limit is taken from those that were truncated."""
    key = jax.random.key(0)
    steps = jax.tree.map(np.asarray, _walk(builder.build(key), key, jax.random.split(key, MEASURED_STEPS)))
    if not (finite := np.isfinite(steps.reward)).all():
        raise EnvironmentFailedError(NOT_FINITE.format(_moment(), steps.reward[~finite][0]))
    ends = np.flatnonzero(steps.terminated | steps.truncated)
    lengths = np.diff(ends, prepend=-1)[steps.truncated[ends]]
    return np.split(steps.reward, ends + 1)[:MEASURED_EPISODES], int(lengths.max()) if lengths.size else None


@jax.jit
def _walk(environment: Environment, key: PRNGKeyArray, keys: Key[Array, " steps"]) -> TimeStep:
    """The steps of a random policy, one for each key."""

    def step(state: PyTree, key: Key[Array, ""]) -> tuple[PyTree, TimeStep]:
        action_key, step_key, reset_key = jax.random.split(key, 3)
        action = jax.random.randint(action_key, (), 0, environment.num_actions)
        state, now = environment.step(step_key, state, action)
        ended = now.terminated | now.truncated
        fresh, _ = environment.reset(reset_key)
        return jax.tree.map(lambda new, old: jnp.where(ended, new, old), fresh, state), now._replace(observation=())

    return jax.lax.scan(step, environment.reset(key)[0], keys)[1]


def _discounted(rewards: np.ndarray, discount: float) -> Float[np.ndarray, " steps"]:
    """The return from each step of an episode on."""
    returns = itertools.accumulate(rewards[::-1], lambda later, reward: reward + discount * later, initial=0.0)
    return np.array([*returns])
