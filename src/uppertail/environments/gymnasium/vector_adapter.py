"""Adapts an environment to Gymnasium's vectors: beside others it gets and gives the same types as alone."""

import os
import signal
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from uppertail.environments.gymnasium.single import checked_reset, checked_step
from uppertail.environments.gymnasium.spaces import Reading

LAST_SECONDS = 60
"""How long an environment's own process lives on after SIGTERM, so that its parent can save what was learned."""


class VectorAdapter(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Gives the arrays that a single environment's observations are read as, and passes on actions of type `int`.

    Without it, Gymnasium's vector environments convert observations to the declared shape and type, and pass actions as
    numbers of NumPy's types: an environment that works alone might fail, or behave differently, beside others.

    Args:
        env: the environment.
        reading: how its observations are read.
        example: an observation that was read.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], reading: Reading, example: np.ndarray) -> None:
        super().__init__(env)
        bounds = (-np.inf, np.inf)
        if example.dtype.kind != "f":
            bounds = (np.iinfo(example.dtype).min, np.iinfo(example.dtype).max)
        self.array, self.observation_space = reading.array, spaces.Box(*bounds, example.shape, example.dtype.type)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        first, info = checked_reset(self.env.reset(seed=seed, options=options))
        return self.array(first), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        after, reward, terminated, truncated, info = checked_step(self.env.step(int(action)))
        return self.array(after), reward, terminated, truncated, info


class VectorAdapterMaker:
    """Makes such environments; it is pickled for those with processes of their own.

    Such a process leaves Ctrl-C to its parent. After SIGTERM, which may be sent to all processes at once, it lives on
    for as long as the parent may need to save what was learned.

    Args:
        make: makes the environment.
        limit: steps after which an episode is truncated; None: no new limit.
        reading: how its observations are read.
        example: an observation that was read.
    """

    def __init__(self, make: Callable[[], Any], limit: int | None, reading: Reading, example: np.ndarray) -> None:
        self.make, self.limit, self.reading, self.example = make, limit, reading, example
        self.parent = os.getpid()

    def __call__(self) -> VectorAdapter:
        if os.getpid() != self.parent:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, _end_later)
        made = self.make()
        return VectorAdapter(made if self.limit is None else TimeLimit(made, self.limit), self.reading, self.example)


def _end_later(number: int, frame: Any) -> None:
    del frame
    if os.name == "posix":
        signal.alarm(LAST_SECONDS)
    else:
        signal.signal(number, signal.SIG_DFL)
