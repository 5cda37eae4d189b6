"""Environments of dm_env, the form of DeepMind's packages, as environments of Gymnasium."""

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from uppertail.environments.packages import import_extra


class DmEnvironment(gymnasium.Env[Any, Any]):
    """An environment of dm_env in Gymnasium's form: the last step's discount says whether an episode was cut short.

    A reset's seed starts all of its random generators anew, so an episode depends on nothing before it.

    Args:
        env: the environment, or wrappers around it, as bsuite has them.
        setting: the number of its setting. Many settings differ in nothing but chance, so it is part of the seed.
    """

    def __init__(self, env: Any, setting: int = 0) -> None:
        self.env, self.setting = env, setting
        self.observation_space, self.action_space = space_of(env.observation_spec()), space_of(env.action_spec())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            for random in self.generators:
                random.seed([seed, self.setting])
        return self.env.reset().observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        now = self.env.step(action)
        return now.observation, now.reward, now.last() and now.discount == 0, now.last() and now.discount != 0, {}

    @property
    def generators(self) -> list[np.random.RandomState]:
        """What its chance comes from."""
        found = [vars(layer).get("_rng") for layer in self.layers]
        return [random for random in found if isinstance(random, np.random.RandomState)]

    @property
    def layers(self) -> Iterator[Any]:
        """Its wrappers, the outermost first, and the environment itself."""
        layer = self.env
        while layer is not None:
            yield layer
            layer = vars(layer).get("_env")


def space_of(spec: Any) -> spaces.Space[Any]:
    """What a specification of dm_env is in Gymnasium; the parts of several keep their order."""
    if isinstance(spec, Mapping):
        return spaces.Dict([(name, space_of(each)) for name, each in spec.items()])
    specs = import_extra("dm_env.specs", "dm_env")
    if isinstance(spec, specs.DiscreteArray):
        return spaces.Discrete(spec.num_values)
    bounds = (spec.minimum, spec.maximum) if isinstance(spec, specs.BoundedArray) else (-np.inf, np.inf)
    low, high = (np.broadcast_to(spec.dtype.type(bound), spec.shape) for bound in bounds)
    return spaces.Box(low, high, dtype=spec.dtype)
