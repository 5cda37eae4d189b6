"""A compiled environment that shows itself in pictures."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from uppertail.environments.base import Environment
from uppertail.environments.watched import WatchedEnvironment, WatchedStep

FRAMES_PER_SECOND = 10
"""How fast its pictures are shown."""

SEEDS = 2**31
"""The seeds of runs lie below it, the seeds of their evaluations from it on."""


class CompiledWatched(WatchedEnvironment):
    """One compiled environment, played to be watched.

    Args:
        build: builds the environment of a seed from its key.
        picture: the picture of a state.
        frames_per_second: None: the default.
    """

    def __init__(self, build: Callable[..., Environment], picture: Callable[[Any], Any], frames_per_second: int | None):
        self.build, self.picture = build, picture
        self.frames_per_second = float(frames_per_second or FRAMES_PER_SECOND)
        self.programs: dict[int, Any] = {}

    def reset(self, seed: int, episode: int) -> np.ndarray:
        """The first observation of an episode in the environment that the run of this seed has."""
        run = jax.random.key(seed % SEEDS)
        world = self.build(jax.random.split(run, 3)[0])  # as `training.seeds.seed_keys` draws it
        self.key, self.steps = jax.random.fold_in(jax.random.key(seed), episode), 0
        self.step_compiled = self.programs.setdefault(seed, eqx.filter_jit(world.step))
        self.state, first = eqx.filter_jit(world.reset)(self.key)
        return np.asarray(first.observation)

    def step(self, action: int) -> WatchedStep:
        self.steps += 1
        key = jax.random.fold_in(self.key, self.steps)
        self.state, now = self.step_compiled(key, self.state, np.int32(action))
        return WatchedStep(np.asarray(now.observation), float(now.reward), bool(now.terminated | now.truncated))

    def frame(self) -> np.ndarray:
        return np.asarray(self.picture(self.state), np.uint8)

    def close(self) -> None:
        """Does nothing: it has no window."""
