"""Numbers that are left out of observations because they count the steps of an episode, and what they still tell."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from uppertail.encodings.vector import Bounds
from uppertail.types import Transition


class Clocks(NamedTuple):
    """The numbers that are left out and that rise, or fall, in every step: they count the steps of an episode."""

    rising: Bool[Array, " entries"]
    falling: Bool[Array, " entries"]

    def after(self, fresh: Transition) -> "Clocks":
        """Those that still are, after some transitions."""
        step = fresh.next_observation - fresh.observation
        return Clocks(self.rising & jnp.all(step > 0, axis=0), self.falling & jnp.all(step < 0, axis=0))

    def are_over(self, bounds: Bounds, next_observation: Float[Array, "rows entries"]) -> Bool[Array, " rows"]:
        """Whether one shows the latest time that was ever seen: an episode that terminates there met its time limit."""
        last = self.rising[None] & (next_observation >= bounds.high[None])
        return jnp.any(last | (self.falling[None] & (next_observation <= bounds.low[None])), axis=1)
