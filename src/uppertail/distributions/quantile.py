"""Quantiles of the return at fixed levels, learned by their Wasserstein distance (Dabney et al. 2018)."""

import dataclasses
import statistics
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions.base import Centered
from uppertail.errors import InputError
from uppertail.schema import traced
from uppertail.types import Rescaling

WIDE, UNIFORM = 1.3, 0.29  # standard deviations of the start, in units of the scale
MOST_QUANTILES = 4096  # a table of states holds all of them for each action


class QuantileReturn(NamedTuple):
    """Returns of equal probability, in ascending order."""

    quantiles: Float[Array, "*batch quantiles"]


@dataclasses.dataclass(frozen=True)
class Quantile(Centered[QuantileReturn]):
    """The quantiles of the return at the levels (i - 1/2) / N, each with probability 1 / N (Dabney et al. 2018).

    The loss is the squared Wasserstein distance of order 2. Its minimum over several targets is the mean of their
    quantile functions, as for Gaussian: the spread of their means does not count.

    Args:
        quantiles: their number N, at least 2.
        start_std: the quantiles begin as those of N(0, start_std), in units of the scale; 0 or more. null: 0.29 beside
            kernel counts and in tables with chance, the standard deviation of a uniform distribution over the range of
            returns, 1.3 else.
        scale: returns per unit of the network's output, above 0; null: the range of the environment's returns.
        center: beside kernel counts and in tables with chance, the mean of what was never seen; null: the middle of
            that range.

    Examples:
        >>> family = ut.Quantile(quantiles=2, scale=1.0)
        >>> z = family.backup(family.from_outputs(jnp.array([2.0, -2.0])), jnp.array(1.0), jnp.array(0.5))
        >>> round(float(family.mean(z)), 3), float(z.quantiles[0] < z.quantiles[1])
        (1.0, 1.0)
    """

    is_linear: ClassVar[bool] = True
    quantiles: int = 32
    start_std: float | None = traced(None)
    scale: float | None = traced(None)
    center: float | None = traced(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.quantiles <= MOST_QUANTILES:
            raise InputError(f"quantiles is {self.quantiles}: use a whole number from 2 to {MOST_QUANTILES}.")
        if self.start_std is not None and self.start_std < 0:
            raise InputError(f"start_std is {self.start_std}: use a finite number, 0 or more.")

    @property
    def num_outputs(self) -> int:
        return self.quantiles

    def from_outputs(self, outputs: Float[Array, " quantiles"]) -> QuantileReturn:
        return QuantileReturn(self.unit * jnp.sort(outputs + self.begin))

    @property
    def begin(self) -> Float[Array | np.ndarray, " quantiles"]:
        """The quantiles at the start, in units of the scale."""
        levels = (np.arange(self.quantiles) + 0.5) / self.quantiles
        normal = np.array([statistics.NormalDist().inv_cdf(level) for level in levels], np.float32)
        return (WIDE if self.start_std is None else self.start_std) * normal

    def as_wide_as_returns(self) -> Self:
        return dataclasses.replace(self, start_std=UNIFORM) if self.start_std is None else self

    def starting_at(self, std: float) -> Self:
        return dataclasses.replace(self, start_std=std) if self.start_std is None else self

    def rescaling(self, before: Any) -> Rescaling:
        ratio = jnp.asarray(before.unit / self.unit, jnp.float32)
        return Rescaling(jnp.full(self.quantiles, ratio), jnp.asarray(self.begin) * (ratio - 1.0))

    def lower(self, first: QuantileReturn, second: QuantileReturn) -> QuantileReturn:
        """Quantile by quantile: the highest distribution that neither of the two is below."""
        return QuantileReturn(jnp.minimum(first.quantiles, second.quantiles))

    def terminal(self) -> QuantileReturn:
        return QuantileReturn(jnp.zeros(self.quantiles))

    def mean(self, z: QuantileReturn) -> Float[Array, ""]:
        return jnp.mean(z.quantiles)

    def std(self, z: QuantileReturn) -> Float[Array, ""]:
        return jnp.std(z.quantiles - z.quantiles[0])  # from the lowest on: equal quantiles have a spread of exactly 0

    def sample(self, key: PRNGKeyArray, z: QuantileReturn) -> Float[Array, ""]:
        return z.quantiles[jax.random.randint(key, (), 0, self.quantiles)]

    def cdf(self, z: QuantileReturn, returns: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.mean(z.quantiles <= returns)

    def backup(self, z: QuantileReturn, reward: Float[Array, ""], discount: Float[Array, ""]) -> QuantileReturn:
        """reward + discount * z of each quantile."""
        return QuantileReturn(reward + discount * z.quantiles)

    def loss(self, target: QuantileReturn, prediction: QuantileReturn) -> Float[Array, ""]:
        """The mean squared difference of the sorted quantiles, in units of the scale."""
        return jnp.mean((target.quantiles / self.unit - prediction.quantiles / self.unit) ** 2)

    def from_coordinates(self, vector: Float[Array, " quantiles"]) -> QuantileReturn:
        """Weighted means of quantiles are quantile functions again."""
        return QuantileReturn(jnp.sort(vector))
