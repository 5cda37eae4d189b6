"""The range of returns that a run has to tell apart: measured by a random policy, where it is not known."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from uppertail.environments.base import discounted_steps
from uppertail.environments.failures import begin_host, step_host
from uppertail.environments.host import HostBuilder, HostEnvironment
from uppertail.types import ReturnRange

MEASURED_EPISODES, MEASURED_STEPS = 20, 5_000
"""How many random episodes measure the returns, and after how many steps measuring ends."""

WIDER = 2.0
"""How far beyond the measured returns others are expected at most, in widths of the measured range."""


def measure_returns(builder: HostBuilder, discount: float) -> ReturnRange:
    """An estimate from episodes of a random policy, the same for every run.

    It reaches to the returns of the lowest and of the highest reward at every step of the time limit, but at most
    `WIDER` widths beyond the measured range.

    Raises:
        EnvironmentFailedError: one raised an exception, or a reward or an observation is not a finite number.
    """
    environment, random = builder.open(0, 1), np.random.default_rng(0)
    try:
        begin_host(environment.reset, _moment)
        episodes = [_random_episode(environment, builder.num_actions, random)]
        while len(episodes) < MEASURED_EPISODES and sum(map(len, episodes)) < MEASURED_STEPS:
            episodes.append(_random_episode(environment, builder.num_actions, random))
    finally:
        environment.close()
    returns = np.concatenate([[0.0], *(_discounted(rewards, discount) for rewards in episodes)])
    rewards = np.concatenate([[0.0], *episodes])
    steps = builder.time_limit or math.inf
    horizon = discounted_steps(steps, discount)
    width = returns.max() - returns.min()
    low = max(_times(rewards.min(), horizon), returns.min() - WIDER * width)
    high = min(_times(rewards.max(), horizon), returns.max() + WIDER * width)
    return ReturnRange(float(low), float(high), known=False)


def _random_episode(environment: HostEnvironment, num_actions: int, random: np.random.Generator) -> list[float]:
    """The rewards of an episode, or of its first `MEASURED_STEPS` steps."""
    rewards: list[float] = []
    while len(rewards) < MEASURED_STEPS:
        now = step_host(environment, random.integers(num_actions, size=environment.num_envs), _moment)
        if now.real[0]:
            rewards.append(float(now.reward[0]))
        if now.terminated[0] or now.truncated[0]:
            break
    return rewards


def _moment() -> str:
    return "The environment, while its returns were measured by a random policy (--env.returns avoids this),"


def _discounted(rewards: list[float], discount: float) -> Float[np.ndarray, " steps"]:
    """The return from each step of an episode on."""
    returns: list[Any] = [0.0]
    for reward in reversed(rewards):
        returns.append(reward + discount * returns[-1])
    return np.array(returns)


def _times(reward: float, horizon: float) -> float:
    """A reward earned over a horizon, which may be infinite."""
    return reward * horizon if reward else 0.0
