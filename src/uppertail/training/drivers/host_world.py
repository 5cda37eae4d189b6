"""Opens the environments of all seeds, for runs whose environments Python steps."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from uppertail.environments import HostBuilder, HostEnvironment, begin_all, measure_returns
from uppertail.errors import InputError
from uppertail.training.drivers.base import World
from uppertail.training.drivers.evaluation import rehearse
from uppertail.training.drivers.host import HostDriver
from uppertail.training.loop import Loop
from uppertail.training.programs import Stopwatch
from uppertail.training.seeds import SeedKeys
from uppertail.types import PyTree, ReturnRange


class HostWorld(World):
    """The environments of all seeds, which Python steps.

    Args:
        builder: opens the environments of each seed.
        keys: the keys of each seed.
        seeds: the seeds themselves.
        num_envs: environments of each seed, side by side.

    Raises:
        InputError: the environments cannot be made.
    """

    def __init__(self, builder: HostBuilder, keys: SeedKeys, seeds: list[int], num_envs: int) -> None:
        self.builder, self.keys, self.seeds = builder, keys, seeds
        self.observations, self.num_actions = builder.observations, builder.num_actions
        self.hosts: list[HostEnvironment] = []
        try:
            self.hosts += (builder.open(seed, num_envs) for seed in seeds)
            self.again, self.first = (
                begin_all([host.reset for host in self.hosts], seeds, "at its first reset") for _ in range(2)
            )
            rehearse(builder, seeds[0], self.first[0])
        except InputError:
            self.close()
            raise

    def return_range(self, discount: float) -> ReturnRange:
        return self.builder.known_returns or measure_returns(self.builder, discount)

    def start_observations(self) -> Array:
        return jnp.asarray(self.first[:, 0])

    def identity(self) -> PyTree:
        """First observations, where the same seed gives the same ones again."""
        return {"first": np.where(self.first == self.again, self.first, 0)}

    def driver(self, loop: Loop, seconds: Stopwatch) -> HostDriver:
        return HostDriver(loop, self.builder, self.hosts, self.first, self.keys, self.seeds, seconds)

    def close(self) -> None:
        for host in self.hosts:
            host.close()
