"""Vectors that show a few states through noise, each as the state whose observations it is nearest to."""

import dataclasses
import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.encodings.base import Encoding
from uppertail.errors import InputError


class Centers(NamedTuple):
    """The states that were told apart.

    Args:
        points: the mean of each state's observations.
        visits: how many these were; 0: no state has this place yet.
    """

    points: Float[Array, "places entries"]
    visits: Float[Array, " places"]


@dataclasses.dataclass(frozen=True)
class Nearest(Encoding):
    """An observation as a unit vector, whose place is that of the nearest mean of earlier observations.

    Where all means are farther than a radius, the observation is the first of a new state, as long as there is room;
    else it moves the mean that it is nearest to (leader clustering, Hartigan 1975, with the means of MacQueen 1967).
    So noise is averaged away, and least squares is a table, if the radius is larger than the noise and smaller than
    the distance between states. Distances are root mean squares over the numbers, in the units of the observation.

    Args:
        entries: numbers in an observation.
        places: the most states.
        radius: the distance within which two observations are of one state.
    """

    is_one_hot: ClassVar[bool] = True
    entries: int
    places: int
    radius: float

    def __post_init__(self) -> None:
        if not 0 < self.radius < math.inf:
            raise InputError(f"radius is {self.radius}: use a finite number above 0, or null for none.")
        if self.places < 1:
            raise InputError(f"num_features is {self.places}: use 1 or more.")

    @property
    def num_features(self) -> int:
        return self.places

    def init(self, key: PRNGKeyArray) -> Centers:
        return Centers(jnp.zeros((self.places, self.entries)), jnp.zeros(self.places))

    def observe(self, encoder: Centers, observations: Float[Array, "batch entries"]) -> Centers:
        def enter(centers: Centers, observation: Float[Array, " entries"]) -> tuple[Centers, None]:
            place = self.index(centers, observation)
            visits = centers.visits.at[place].add(1.0)
            moved = (observation - centers.points[place]) / visits[place]
            return Centers(centers.points.at[place].add(moved), visits), None

        return jax.lax.scan(enter, encoder, observations)[0]  # one after another: two may begin the same state

    def index(self, encoder: Centers, observation: Float[Array, " entries"]) -> Int[Array, ""]:
        """The place of the nearest mean, or the first free one if no mean is near and there is one."""
        squares = jnp.mean(jnp.square(encoder.points - observation[None]), axis=1)
        squares = jnp.where(encoder.visits > 0, squares, jnp.inf)
        nearest, used = jnp.argmin(squares), jnp.sum(encoder.visits > 0)
        is_new = (squares[nearest] > self.radius**2) & (used < self.places)
        return jnp.where(is_new, used, nearest).astype(jnp.int32)

    def remark(self, encoder: Centers) -> str | None:
        """A note if no place is left for another state."""
        if not (np.asarray(encoder.visits) > 0).all(axis=-1).any():
            return None
        return (
            f"All {self.places:,} states within a radius of {self.radius:g} are taken, and other observations are "
            f"taken for one of them: use a larger --env.radius, or --env.num_features {4 * self.places}."
        )
