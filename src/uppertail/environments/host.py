"""Environments that Python steps: the contract."""

import abc
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from uppertail.encodings import ObservationSpace
from uppertail.environments.base import EnvironmentBuilder
from uppertail.environments.interface import Interface
from uppertail.types import ReturnRange


class HostStep(NamedTuple):
    """One step of environments side by side.

    Args:
        next_observation: the observation after the step, also at an episode's end.
        reward: the reward of the step.
        terminated: whether the episode ended there.
        truncated: whether it was cut short there.
        observation: the observation for the next action: the first of a new episode, if one has ended.
        real: whether it was a real step; some vector environments spend a step on the reset alone.
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
    def begin_another(self, episodes: int) -> np.ndarray:
        """Begins an episode with a new seed in place of the one in progress; its first observation.

        Args:
            episodes: how many have ended until now.
        """

    @abc.abstractmethod
    def step(self, actions: Int[np.ndarray, " envs"]) -> HostStep:
        """One step of all of them."""

    @abc.abstractmethod
    def saved(self) -> dict[str, np.ndarray]:
        """Arrays from which `restore` can go back to the episodes in progress; empty if it cannot."""

    @abc.abstractmethod
    def restore(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Goes back to the saved episodes, or begins others if it cannot; their current observations."""

    @abc.abstractmethod
    def close(self) -> None:
        """Frees the resources of the environments."""


class HostBuilder(EnvironmentBuilder):
    """Opens environments that Python steps; some of them can also be compiled, by `build`.

    Examples:
        >>> import uppertail as ut
        >>> cart: ut.HostBuilder = ut.Gym("CartPole-v1")
        >>> cart.num_actions, cart.time_limit, cart.compiles
        (2, 500, False)
    """

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """The environment's name, for messages."""

    @property
    @abc.abstractmethod
    def compiles(self) -> bool:
        """Whether the environment is to be compiled: it shows its whole table."""

    @property
    @abc.abstractmethod
    def note(self) -> str | None:
        """What a user should know: why its table is not compiled, or which texts are left out; None: nothing."""

    @property
    @abc.abstractmethod
    def observations(self) -> ObservationSpace:
        """The space of its observations."""

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """Number of discrete actions."""

    @property
    @abc.abstractmethod
    def interface(self) -> Interface:
        """How a program talks to what was learned in it."""

    @property
    @abc.abstractmethod
    def time_limit(self) -> int | None:
        """Steps after which an episode is truncated, where that is known."""

    @property
    def may_go_on(self) -> bool:
        """Whether nothing is known that would truncate an episode; by default, if there is no time limit."""
        return self.time_limit is None

    @property
    @abc.abstractmethod
    def known_returns(self) -> ReturnRange | None:
        """The range of discounted returns that a run has to tell apart, if the user gave one."""

    @property
    def has_processes(self) -> bool:
        """Whether environments side by side have a process each."""
        return False

    @abc.abstractmethod
    def open(self, seed: int, num_envs: int, time_limit: int | None = None) -> HostEnvironment:
        """The environments of one seed.

        Args:
            seed: the seed of the run, from which the seeds of their episodes come.
            num_envs: how many.
            time_limit: steps after which episodes are truncated where they have no limit of their own.

        Raises:
            InputError: they cannot be made.
        """
