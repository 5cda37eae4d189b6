"""A plain action value: all mass at the mean, learned by squared error. The baseline without a distribution."""

import dataclasses
from typing import NamedTuple, Self

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions.base import ReturnDistribution
from uppertail.types import ReturnRange


class PointMassReturn(NamedTuple):
    """A return that is surely `mean`."""

    mean: Float[Array, "*batch"]


@dataclasses.dataclass(frozen=True)
class PointMass(ReturnDistribution[PointMassReturn]):
    """All mass at Q(s, a) (Eq. 3): an ordinary action value, learned one step at a time, for epsilon-greedy."""

    @property
    def num_outputs(self) -> int:
        return 1

    def fit(self, returns: ReturnRange) -> Self:
        return self

    def from_outputs(self, outputs: Float[Array, "1"]) -> PointMassReturn:
        return PointMassReturn(outputs[0])

    def terminal(self) -> PointMassReturn:
        return PointMassReturn(jnp.zeros(()))

    def mean(self, z: PointMassReturn) -> Float[Array, ""]:
        return z.mean

    def std(self, z: PointMassReturn) -> Float[Array, ""]:
        return jnp.zeros(())

    def sample(self, key: PRNGKeyArray, z: PointMassReturn) -> Float[Array, ""]:
        return z.mean

    def log_density(self, z: PointMassReturn, returns: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """A Dirac delta: infinite at the mean, 0 elsewhere."""
        return jnp.where(returns == z.mean, jnp.inf, -jnp.inf)

    def backup(self, z: PointMassReturn, reward: Float[Array, ""], discount: Float[Array, ""]) -> PointMassReturn:
        return PointMassReturn(reward + discount * z.mean)

    def loss(self, target: PointMassReturn, prediction: PointMassReturn) -> Float[Array, ""]:
        return 0.5 * (target.mean - prediction.mean) ** 2
