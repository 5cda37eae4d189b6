"""Environments that Python steps: the contract."""

import abc
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from uppertail.encodings import ObservationSpace
from uppertail.environments.base import EnvironmentBuilder
from uppertail.types import ReturnRange


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
    def another(self, episodes: int) -> np.ndarray:
        """The first observation of an episode that was never begun before, in place of the one in progress.

        Args:
            episodes: how many have ended until now.
        """

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
    def observations(self) -> ObservationSpace:
        """What is observed in it."""

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
