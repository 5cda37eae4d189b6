"""One of several environments, asked and answering just as a single one is."""

import os
import signal
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from uppertail.environments.gymnasium.spaces import Reading

LAST_SECONDS = 60
"""How long an environment in a process of its own outlives a SIGTERM, so that what has been learned can be kept."""


def told(reward: Any, terminated: Any, truncated: Any) -> tuple[float, bool, bool]:
    """Reward and ends of a step; an array of one truth value, as some environments give, is that value.

    Raises:
        ValueError: the reward is an array.
    """
    if np.ndim(reward):
        raise ValueError(f"the reward {reward} is an array, not a number")
    return reward, bool(terminated), bool(truncated)


class Alike(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Its observations are the arrays that a single environment's are read as, and its actions are of type `int`.

    Gymnasium's vector environments would put what it gives into arrays of the shape and type that it declares, and
    hand it numbers of NumPy's types: what one of a kind may do would be an error, or another thing, beside others.

    Args:
        env: the environment.
        reading: how its observations are read.
        example: an observation that was read.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], reading: Reading, example: np.ndarray) -> None:
        super().__init__(env)
        self.array = reading.array
        self.observation_space = _space_of(example)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        first, info = self.env.reset(seed=seed, options=options)
        return self.array(first), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        after, reward, terminated, truncated, info = self.env.step(int(action))
        return self.array(after), *told(reward, terminated, truncated), info


class AlikeMaker:
    """Makes such environments; processes of their own get it by pickling.

    In a process of its own, Ctrl-C is the parent's affair, and after SIGTERM, which may be sent to all processes at
    once, it goes on for as long as the parent may need to keep what has been learned.

    Args:
        make: makes the environment.
        limit: steps after which an episode is truncated; None: as it is.
        reading: how its observations are read.
        example: an observation that was read.
    """

    def __init__(self, make: Callable[[], Any], limit: int | None, reading: Reading, example: np.ndarray) -> None:
        self.make, self.limit, self.reading, self.example = make, limit, reading, example
        self.parent = os.getpid()

    def __call__(self) -> Alike:
        if os.getpid() != self.parent:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, _end_later)
        made = self.make()
        return Alike(made if self.limit is None else TimeLimit(made, self.limit), self.reading, self.example)


def _end_later(number: int, frame: Any) -> None:
    del frame
    if os.name == "posix":
        signal.alarm(LAST_SECONDS)
    else:
        signal.signal(number, signal.SIG_DFL)


def _space_of(example: np.ndarray) -> spaces.Box:
    """Arrays of this shape and type."""
    if example.dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, example.shape, example.dtype.type)
    bounds = np.iinfo(example.dtype)
    return spaces.Box(bounds.min, bounds.max, example.shape, example.dtype.type)
