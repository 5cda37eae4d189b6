"""Environments that Python steps: the contract, and what is measured of their returns."""

import abc
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from uppertail.encodings import Encoding
from uppertail.environments.base import EnvironmentBuilder
from uppertail.errors import InputError, said
from uppertail.types import ReturnRange

MEASURED_EPISODES, MEASURED_STEPS = 20, 5_000
"""Random episodes by which returns are measured, and after how many steps that ends."""

WIDER = 2.0
"""How far beyond the measured returns others are expected, at the most, in widths of their range."""

MEASURING = "while its returns were measured by a random policy: mend it, or give its returns"
"""How a sentence ends that says what went wrong there."""


class HostStep(NamedTuple):
    """One step of environments side by side.

    Args:
        next_observation: where the step led, also at an episode's end.
        reward: what it earned.
        terminated: whether the episode ended there.
        truncated: whether it was cut short there.
        observation: where the next action is taken: the first observation of a new episode, if one has ended.
        real: whether it was a step at all, and not only the reset that a vector environment spends one on.
    """

    next_observation: np.ndarray
    reward: Float[np.ndarray, " envs"]
    terminated: Bool[np.ndarray, " envs"]
    truncated: Bool[np.ndarray, " envs"]
    observation: np.ndarray
    real: Bool[np.ndarray, " envs"]


class HostEnvironment(abc.ABC):
    """Environments side by side that Python steps, for one seed. An episode that ends is followed by another."""

    @property
    @abc.abstractmethod
    def num_envs(self) -> int:
        """How many there are."""

    @abc.abstractmethod
    def reset(self) -> np.ndarray:
        """The first observation of each environment's first episode."""

    @abc.abstractmethod
    def step(self, actions: Int[np.ndarray, " envs"]) -> HostStep:
        """One step of all of them."""

    @abc.abstractmethod
    def saved(self) -> dict[str, np.ndarray]:
        """What leads back to the episodes in progress; empty if nothing does."""

    @abc.abstractmethod
    def restore(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Goes back to the episodes in progress, or to the start of others if nothing leads there; where they are."""

    @abc.abstractmethod
    def close(self) -> None:
        """Gives back what the environments hold."""


class HostBuilder(EnvironmentBuilder):
    """What opens environments that Python steps; some of them can be compiled all the same, by `build`."""

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """What a message calls the environment."""

    @property
    @abc.abstractmethod
    def compiles(self) -> bool:
        """Whether the environment is to be compiled: it shows its whole table."""

    @property
    @abc.abstractmethod
    def note(self) -> str | None:
        """Why an environment that shows a table is not compiled, in a sentence."""

    @property
    @abc.abstractmethod
    def observations(self) -> Encoding:
        """How its observations enter the network."""

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """Number of discrete actions."""

    @property
    @abc.abstractmethod
    def time_limit(self) -> int | None:
        """Steps after which an episode is truncated, where that is known."""

    @property
    @abc.abstractmethod
    def known_returns(self) -> ReturnRange | None:
        """Between which discounted returns a run has to tell apart, where someone said so."""

    @abc.abstractmethod
    def open(self, seed: int, num_envs: int, time_limit: int | None = None) -> HostEnvironment:
        """The environments of one seed.

        Args:
            seed: what their episodes are reset with.
            num_envs: how many.
            time_limit: steps after which episodes are truncated where they have no limit of their own.

        Raises:
            InputError: they cannot be made.
        """


def measured_returns(builder: HostBuilder, discount: float) -> ReturnRange:
    """An estimate from episodes of a random policy, the same for every run.

    It reaches as far as the lowest and the highest reward would, earned at every step of the time limit, though at most
    `WIDER` times the width of the measured returns beyond them.

    Raises:
        InputError: an environment raised an exception, or a reward is not a finite number.
    """
    environment, random = builder.open(0, 1), np.random.default_rng(0)
    try:
        _asked(environment.reset)
        episodes = [_random_episode(environment, builder.num_actions, random)]
        while len(episodes) < MEASURED_EPISODES and sum(map(len, episodes)) < MEASURED_STEPS:
            episodes.append(_random_episode(environment, builder.num_actions, random))
    finally:
        environment.close()
    returns = np.concatenate([[0.0], *(_discounted(rewards, discount) for rewards in episodes)])
    rewards = np.concatenate([[0.0], *episodes])
    steps = builder.time_limit or math.inf
    horizon = steps if discount == 1 else (1 - discount**steps) / (1 - discount)
    width = returns.max() - returns.min()
    low = max(_times(rewards.min(), horizon), returns.min() - WIDER * width)
    high = min(_times(rewards.max(), horizon), returns.max() + WIDER * width)
    return ReturnRange(float(low), float(high), known=False)


def _random_episode(environment: HostEnvironment, num_actions: int, random: np.random.Generator) -> list[float]:
    """The rewards of an episode, or of as much of one as there is time for."""
    rewards: list[float] = []
    while len(rewards) < MEASURED_STEPS:
        now = _measured(environment, random.integers(num_actions, size=environment.num_envs))
        if now.real[0]:
            rewards.append(float(now.reward[0]))
        if now.terminated[0] or now.truncated[0]:
            break
    return rewards


def _measured(environment: HostEnvironment, actions: Int[np.ndarray, " envs"]) -> HostStep:
    """One step of an episode by which returns are measured."""
    now = _asked(lambda: environment.step(actions))
    if not np.isfinite(now.reward).all():
        reward = now.reward[~np.isfinite(now.reward)][0]
        raise InputError(f"The environment gave the reward {reward} {MEASURING}.")
    return now


def _asked(ask: Callable[[], Any]) -> Any:
    """What an environment answers while its returns are measured."""
    try:
        return ask()
    except Exception as error:
        raise InputError(f"The environment raised {type(error).__name__} ({said(error)}) {MEASURING}.") from error


def _discounted(rewards: list[float], discount: float) -> Float[np.ndarray, " steps"]:
    """The return from each step of an episode on."""
    returns: list[Any] = [0.0]
    for reward in reversed(rewards):
        returns.append(reward + discount * returns[-1])
    return np.array(returns)


def _times(reward: float, horizon: float) -> float:
    """A reward earned over a horizon, which may be infinite."""
    return reward * horizon if reward else 0.0
