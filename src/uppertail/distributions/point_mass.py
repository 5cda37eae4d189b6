"""A plain action value: all mass at the mean, learned by squared error. The baseline without a distribution."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions.base import Rescaling, Scaled
from uppertail.schema import traced


class PointMassReturn(NamedTuple):
    """A return that is `mean` for certain."""

    mean: Float[Array, "*batch"]


@dataclasses.dataclass(frozen=True)
class PointMass(Scaled[PointMassReturn]):
    """All mass at Q(s, a) (Eq. 3): an ordinary action value, learned one step at a time, for epsilon-greedy.

    Args:
        scale: returns per unit of the network's output, above 0; null: the range of the environment's returns.
        start: the value of what was never tried, in units of the scale. Above 1 it is optimistic, and the greedy policy
            explores: with a constant c, UCB on a Gaussian backs up exactly like a value that starts at c * 1.313.

    Examples:
        >>> family = ut.PointMass(scale=1.0)
        >>> z = family.backup(family.from_outputs(jnp.array([2.0])), jnp.array(1.0), jnp.array(0.5))
        >>> float(family.mean(z)), float(family.std(z))
        (2.0, 0.0)
    """

    has_spread: ClassVar[bool] = False
    is_linear: ClassVar[bool] = True
    scale: float | None = traced(None)
    start: float = traced(0.0)

    @property
    def num_outputs(self) -> int:
        return 1

    def from_outputs(self, outputs: Float[Array, "1"]) -> PointMassReturn:
        return PointMassReturn(self.unit * (outputs[0] + self.start))

    def lower(self, first: PointMassReturn, second: PointMassReturn) -> PointMassReturn:
        return PointMassReturn(jnp.minimum(first.mean, second.mean))

    def rescaling(self, before: Any) -> Rescaling:
        ratio = jnp.asarray(before.unit / self.unit, jnp.float32)[None]
        return Rescaling(ratio, self.start * (ratio - 1.0))

    def terminal(self) -> PointMassReturn:
        return PointMassReturn(jnp.zeros(()))

    def mean(self, z: PointMassReturn) -> Float[Array, ""]:
        return z.mean

    def std(self, z: PointMassReturn) -> Float[Array, ""]:
        return jnp.zeros(())

    def sample(self, key: PRNGKeyArray, z: PointMassReturn) -> Float[Array, ""]:
        return z.mean

    def cdf(self, z: PointMassReturn, returns: Float[Array, ""]) -> Float[Array, ""]:
        return (z.mean <= returns).astype(jnp.float32)

    def backup(self, z: PointMassReturn, reward: Float[Array, ""], discount: Float[Array, ""]) -> PointMassReturn:
        return PointMassReturn(reward + discount * z.mean)

    def loss(self, target: PointMassReturn, prediction: PointMassReturn) -> Float[Array, ""]:
        """Half the squared error, in units of the scale."""
        return 0.5 * (target.mean / self.unit - prediction.mean / self.unit) ** 2

    def from_coordinates(self, vector: Float[Array, "1"]) -> PointMassReturn:
        return PointMassReturn(vector[0])
