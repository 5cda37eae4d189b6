"""Environments that show themselves while they are played: the contract."""

import abc
from typing import NamedTuple

import numpy as np

from uppertail.environments.base import EnvironmentBuilder

Frame = np.ndarray | str | None
"""A picture of [rows, columns, red green blue], or a text; None where the environment shows itself in a window."""


class WatchedStep(NamedTuple):
    """One step of an environment that is watched.

    Args:
        observation: the observation after the step.
        reward: the reward of the step.
        ended: whether the episode ended there, for whatever reason.
    """

    observation: np.ndarray
    reward: float
    ended: bool


class WatchedEnvironment(abc.ABC):
    """One environment that Python steps and that shows itself.

    Attributes:
        frames_per_second: how fast its frames should be shown.
    """

    frames_per_second: float

    @abc.abstractmethod
    def reset(self, seed: int, episode: int) -> np.ndarray:
        """The first observation of an episode, which is the same each time."""

    @abc.abstractmethod
    def step(self, action: int) -> WatchedStep:
        """One step; the caller resets after the last one of an episode."""

    @abc.abstractmethod
    def frame(self) -> Frame:
        """The picture or text of the current state."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes its window, if it has one."""


class WatchableBuilder(EnvironmentBuilder):
    """A builder whose environment has a picture of itself."""

    @abc.abstractmethod
    def watched(self, pictures: bool, frames_per_second: int | None = None) -> WatchedEnvironment:
        """The environment, to be watched.

        Args:
            pictures: whether its frames are to be pictures; else it opens a window, or its frames are texts.
            frames_per_second: None: as the environment says.

        Raises:
            InputError: it cannot be shown in this way.
        """
