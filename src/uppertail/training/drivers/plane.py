"""What is recorded where observations are vectors: width and evidence over two of their numbers."""

import dataclasses
import math
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from uppertail.agent import Agent
from uppertail.distributions.members import spread
from uppertail.encodings import Numbers, ObservationSpace
from uppertail.errors import InputError
from uppertail.networks import EncodedNetwork, Network

SIDE = 30
"""The most cells of the plane in each direction."""


@dataclasses.dataclass(frozen=True)
class Plane:
    """Cells over two numbers of a vector; the other numbers stay as in the run's first observation.

    A number goes from its declared lower bound to the upper one; where it has none, over what was seen so far.

    Args:
        numbers: which two.
        low: their declared lower bounds; minus infinity: none.
        high: their declared upper bounds; infinity: none.
        side: cells in each direction.
    """

    numbers: tuple[int, int]
    low: tuple[float, float]
    high: tuple[float, float]
    side: int

    @classmethod
    def of(cls, observations: ObservationSpace, over: tuple[int, int] | None, room: int) -> Self | None:
        """The plane of a run; None where observations are no vectors of two numbers or more.

        Args:
            observations: the space of the observations.
            over: which two numbers; None: the first two.
            room: how many cells there is room for.

        Raises:
            InputError: there are no such numbers.
        """
        count = len(observations.low) if isinstance(observations, Numbers) else 0
        if over is None and count < 2:
            return None
        first, second = over or (0, 1)
        if not (isinstance(observations, Numbers) and first != second and {first, second} <= set(range(count))):
            remedy = f"use two different numbers from 0 to {count - 1}" if count > 1 else "leave it out"
            raise InputError(f"record_over is {[first, second]}, but an observation has {count} numbers: {remedy}.")
        low, high = ((bounds[first], bounds[second]) for bounds in (observations.low, observations.high))
        return cls((first, second), low, high, min(SIDE, max(1, math.isqrt(room))))

    def capture(self, agent: Agent, network: Network, first: Float[Array, " numbers"]) -> dict[str, Array]:
        """The arrays to record for one seed.

        Args:
            agent: the algorithm.
            network: what was learned.
            first: the first observation of the run.
        """
        area = self._area(network)
        shares = (jnp.arange(self.side, dtype=jnp.float32) + 0.5) / self.side
        ways = area[:, :1] + (area[:, 1:] - area[:, :1]) * shares[None]
        second, along = (each.ravel() for each in jnp.meshgrid(ways[1], ways[0], indexing="ij"))
        cells = jnp.broadcast_to(first, (self.side**2, *first.shape))
        cells = cells.at[:, self.numbers[0]].set(along).at[:, self.numbers[1]].set(second)
        z = jax.vmap(agent.returns_by_member, in_axes=(None, 0))(network, cells)
        spreads = jax.vmap(lambda each: spread(agent.family, each))(z)
        best = jnp.argmax(spreads.mean, axis=1)[:, None]
        found = {"std": spreads.total, "evidence": jax.vmap(network.evidence)(cells)}
        of_best = {name: jnp.take_along_axis(each, best, axis=1) for name, each in found.items() if each is not None}
        return {"area": area, **{name: each.reshape(self.side, self.side) for name, each in of_best.items()}}

    def _area(self, network: Network) -> Float[Array, "numbers ends"]:
        where, bounds = np.array(self.numbers), np.array([self.low, self.high], np.float32)
        seen = network.seen_bounds() if isinstance(network, EncodedNetwork) else None
        if seen is None:
            return jnp.asarray(bounds.T)
        declared = np.broadcast_to(np.isfinite(bounds).all(axis=0), bounds.shape)
        return jnp.where(declared, bounds, jnp.stack(seen)[:, where]).T
