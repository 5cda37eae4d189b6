"""What the builders of compiled environments of other packages share."""

import abc
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from uppertail.environments.base import Environment, WatchedEnvironment, WatchedStep
from uppertail.environments.builders import EVALUATION, PackageBuilder
from uppertail.environments.gymnax.world import GymnaxWorld, Rules
from uppertail.errors import InputError
from uppertail.schema import require_type

FRAMES_PER_SECOND = 10
"""How fast its pictures are shown."""


class CompiledWatched(WatchedEnvironment):
    """One compiled environment, played to be watched: `picture` draws a state."""

    def __init__(self, build: Callable[..., Environment], picture: Callable[[Any], Any], frames_per_second: int | None):
        self.build, self.picture = build, picture
        self.frames_per_second = float(frames_per_second or FRAMES_PER_SECOND)
        self.programs: dict[int, Any] = {}

    def reset(self, seed: int, episode: int) -> np.ndarray:
        """The first observation of an episode in the environment that the run of this seed has."""
        run = jax.random.key(seed % EVALUATION)
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class GymnaxBuilder(PackageBuilder):
    """A compiled environment in gymnax's form."""

    @abc.abstractmethod
    def make(self) -> Rules:
        """The environment with its parameters; InputError if it cannot be made."""

    @abc.abstractmethod
    def picture(self, state: Any) -> Any:
        """The picture of a state, [rows, columns, red green blue]; InputError if there is none."""

    @functools.cached_property
    def rules(self) -> Rules:
        """The environment, made once, as programs know it by identity; its arrays are plain even under a trace."""
        with jax.ensure_compile_time_eval():
            return self.make()

    def build(self, key: PRNGKeyArray) -> GymnaxWorld:
        layout = jax.random.key(self.reset_seed) if isinstance(self.reset_seed, int) else key
        return GymnaxWorld(layout, self.reset_seed is not None, self.rules)

    def watched(self, pictures: bool, frames_per_second: int | None = None) -> CompiledWatched:
        if not pictures:
            raise InputError(f"{self.label} opens no window: give --gif FILE.")
        return CompiledWatched(self.build, self.picture, frames_per_second)


def with_params(label: str, default: Any, changes: Mapping[str, Any]) -> Any:
    """Parameters with some of them replaced; InputError if there is none of a name, or it is of another type."""
    fields = [field.name for field in dataclasses.fields(default)]
    for name, value in changes.items():
        if name not in fields:
            raise InputError(f"{label} has no parameter {name!r}: it has {', '.join(fields)}.")
        if isinstance(old := getattr(default, name), bool | int | float):
            require_type(f"params.{name}", value, type(old))
    return dataclasses.replace(default, **changes)
