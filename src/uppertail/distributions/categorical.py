"""Categorical return distribution on fixed bins, learned by cross-entropy."""

import dataclasses
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions.base import ReturnDistribution, range_of
from uppertail.errors import InputError
from uppertail.schema import settle, traced
from uppertail.types import Rescaling, ReturnRange

MARGIN = 0.2  # how far a support that stays as it is reaches beyond the returns on each side, as a share of their range
TINY = 1e-12  # the least weight of a bin that regression has made negative
MOST_BINS = 4096  # the projection of each transition is a table of bins x bins


class CategoricalReturn(NamedTuple):
    """Log-probability of each bin; minus infinity where a bin has none."""

    log_probabilities: Float[Array, "*batch bins"]


@dataclasses.dataclass(frozen=True)
class Categorical(ReturnDistribution[CategoricalReturn]):
    """Categorical return distribution on the centers of equal bins (appendix, Distributional Details).

    Returns beyond the outermost centers are moved to them: leave half a bin on each side of the environment's returns.

    Args:
        bins: number of bins, at least 2. The paper uses 7 on the Chain, 31 elsewhere.
        low: lower edge of the lowest bin, in units of return; null: the `margin` below the range of returns.
        high: upper edge of the highest bin, in units of return; null: the `margin` above the range of returns.
        margin: how far the support reaches beyond the range of returns, as a share of it, 0 or more, and at least half
            a bin; null: 0 beside kernel counts, where it follows a range that grows, 0.2 else.

    Examples:
        >>> family = ut.Categorical(bins=3, low=0.0, high=2.0)
        >>> z = family.from_outputs(jnp.zeros(3))
        >>> round(float(family.mean(z)), 3)
        1.0
    """

    has_density: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True
    bins: int = 7
    low: float | None = traced(None)
    high: float | None = traced(None)
    margin: float | None = None

    def __post_init__(self) -> None:
        settle(self)
        if not 2 <= self.bins <= MOST_BINS:
            raise InputError(f"bins is {self.bins}: use a number from 2 to {MOST_BINS}; the paper uses 7 or 31.")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise InputError(f"low ({self.low}) must be below high ({self.high}): swap them or widen the support.")
        if self.margin is not None and self.margin < 0:
            raise InputError(f"margin is {self.margin}: use a finite number, 0 or more, for example 0.2.")

    @property
    def num_outputs(self) -> int:
        return self.bins

    @property
    def edges(self) -> tuple[Any, Any]:
        """The lowest and the highest edge of a bin, in units of return."""
        if self.low is None or self.high is None:
            raise InputError("The support is open: give low and high, or call fit() with the environment's returns.")
        return self.low, self.high

    @property
    def bin_width(self) -> Float[Array, ""] | float:
        """Width of one bin, in units of return."""
        low, high = self.edges
        return (high - low) / self.bins

    @property
    def centers(self) -> Float[Array | np.ndarray, " bins"]:
        """Center z_i of each bin, in units of return."""
        return (self.edges[0] + self.bin_width * (np.arange(self.bins) + 0.5)).astype(np.float32)

    @property
    def support(self) -> tuple[Any, Any]:
        """The outermost centers: returns beyond are moved to them."""
        return self.centers[0], self.centers[-1]

    def fit(self, returns: ReturnRange) -> Self:
        """The support: the range of the returns and a margin."""
        wanted = MARGIN if self.margin is None else self.margin
        share = max(wanted, 0.5 / (self.bins - 1))  # at the least half a bin, so that the centers cover the returns
        margin = share * range_of(returns)
        first, last = returns.low - margin, returns.high + margin
        low, high = first if self.low is None else self.low, last if self.high is None else self.high
        if not returns.known and self.margin is None and (self.low is None or self.high is None):
            raise InputError(
                "The range of the environment's returns is not known, so Categorical needs the edges of its support: "
                f"steps of a random policy suggest --distribution.low {first:.4g} and --distribution.high "
                f"{last:.4g}; or give a margin, such as --distribution.margin 1."
            )
        if returns.known and (low > returns.low or high < returns.high):
            raise InputError(
                f"The support [{low:g}, {high:g}] does not cover the environment's returns, which run from "
                f"{returns.low:g} to {returns.high:g}: use --distribution.low {first:g} and --distribution.high "
                f"{last:g}."
            )
        return dataclasses.replace(self, low=float(low), high=float(high))

    def as_wide_as_returns(self) -> Self:
        return dataclasses.replace(self, margin=0.0) if self.margin is None else self

    def following_returns(self) -> Self:
        return dataclasses.replace(self, margin=MARGIN) if self.margin is None else self

    def rescaling(self, before: Any) -> Rescaling:
        """Bins keep their probabilities: what was learned is stretched with the support, and learned anew."""
        return Rescaling(jnp.ones(self.bins), jnp.zeros(self.bins))

    def from_outputs(self, outputs: Float[Array, " bins"]) -> CategoricalReturn:
        return CategoricalReturn(jax.nn.log_softmax(outputs))

    def terminal(self) -> CategoricalReturn:
        """All mass at 0, projected on the centers: shared by the two bins around it."""
        return self._project(jnp.zeros((1,)), jnp.ones((1,)))

    def mean(self, z: CategoricalReturn) -> Float[Array, ""]:
        return jnp.sum(jnp.exp(z.log_probabilities) * self.centers)

    def std(self, z: CategoricalReturn) -> Float[Array, ""]:
        return jnp.sqrt(jnp.sum(jnp.exp(z.log_probabilities) * (self.centers - self.mean(z)) ** 2))

    def sample(self, key: PRNGKeyArray, z: CategoricalReturn) -> Float[Array, ""]:
        return jnp.asarray(self.centers)[jax.random.categorical(key, z.log_probabilities)]

    def log_density(self, z: CategoricalReturn, returns: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """The bins as a histogram: constant within a bin, 0 outside the support."""
        bin_index = jnp.floor((returns - self.edges[0]) / self.bin_width).astype(jnp.int32)
        inside = (bin_index >= 0) & (bin_index < self.bins)
        log_mass = z.log_probabilities[jnp.clip(bin_index, 0, self.bins - 1)]
        return jnp.where(inside, log_mass - jnp.log(self.bin_width), -jnp.inf)

    def cdf(self, z: CategoricalReturn, returns: Float[Array, ""]) -> Float[Array, ""]:
        """Each bin's mass lies at its center."""
        return jnp.sum(jnp.where(self.centers <= returns, jnp.exp(z.log_probabilities), 0.0))

    def backup(self, z: CategoricalReturn, reward: Float[Array, ""], discount: Float[Array, ""]) -> CategoricalReturn:
        """Moves each center to reward + discount * center, projects its mass back (appendix, Bellman Propagation)."""
        return self._project(reward + discount * self.centers, jnp.exp(z.log_probabilities))

    def loss(self, target: CategoricalReturn, prediction: CategoricalReturn) -> Float[Array, ""]:
        """H(q, p) = - sum_i q_i log p_i (appendix, Loss)."""
        probabilities = jnp.exp(target.log_probabilities)
        log_prediction = jnp.where(probabilities > 0, prediction.log_probabilities, 0.0)
        return -jnp.sum(probabilities * log_prediction)

    def mixed(self, share: Float[Array, ""], first: CategoricalReturn, second: CategoricalReturn) -> CategoricalReturn:
        """The mixture: a weighted mean of the probabilities."""
        logs = jnp.log(share) + first.log_probabilities, jnp.log1p(-share) + second.log_probabilities
        return CategoricalReturn(jnp.logaddexp(*logs))

    def coordinates(self, z: CategoricalReturn) -> Float[Array, " bins"]:
        """The probabilities: their weighted means are mixtures."""
        return jnp.exp(z.log_probabilities)

    def from_coordinates(self, vector: Float[Array, " bins"]) -> CategoricalReturn:
        mass = jnp.maximum(vector, 0.0) + TINY  # regression may leave no bin with a positive weight
        return CategoricalReturn(jnp.log(mass / jnp.sum(mass)))

    def _project(self, points: Float[Array, " points"], mass: Float[Array, " points"]) -> CategoricalReturn:
        """Shares the mass of each point between its neighboring centers: the operator Psi, a triangular kernel."""
        points = jnp.clip(points, self.centers[0], self.centers[-1])
        distance = (points[:, None] - self.centers[None, :]) / self.bin_width
        kernel = jnp.clip(1.0 - jnp.abs(distance), 0.0, 1.0)
        probabilities = mass @ kernel
        return CategoricalReturn(jnp.log(probabilities / jnp.sum(probabilities)))
