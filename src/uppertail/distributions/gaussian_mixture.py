"""Gaussian mixture return distribution, and the distances from a target q to a prediction p by which it is learned.

Both distances are least where the two are equal, and, over several targets of one state-action pair, where the
prediction is the mixture of them. They differ in their gradients: see `GaussianMixture.distance`.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions.base import Scaled
from uppertail.distributions.gaussian import GaussianReturn, gaussian_log_density, merged, require_terminal_std
from uppertail.errors import InputError
from uppertail.schema import traced

LEAST_WEIGHT = float(np.finfo(np.float32).tiny)  # a softmax can give a weight of 0, whose logarithm has no gradient
MOST_COMPONENTS = 256  # each transition's loss is a table of components x components, which compiles slowly if large
NARROWEST = 1e-6  # narrowest overlap of two components, in units of the scale: two points (discount 0) would have none


class MixtureReturn(NamedTuple):
    """sum_i weights_i N(means_i, stds_i); means and stds in units of return."""

    weights: Float[Array, "*batch components"]
    means: Float[Array, "*batch components"]
    stds: Float[Array, "*batch components"]


def _over_pairs(
    kernel: Callable[[Array, Array], Array], first: MixtureReturn, second: MixtureReturn
) -> Float[Array, ""]:
    """sum_ij w_i w_j kernel(mean_i - mean_j, width_ij), by the standard deviation of the components' difference."""
    apart = first.means[:, None] - second.means[None, :]
    std_i, std_j = first.stds[:, None], second.stds[None, :]
    width = jnp.maximum(jnp.sqrt(std_i**2 + std_j**2), NARROWEST)
    return jnp.sum(first.weights[:, None] * second.weights[None, :] * kernel(apart, width))


def _folded(mean: Array, std: Array) -> Array:
    """E|X| with X ~ N(m, s): s sqrt(2 / pi) exp(-m^2 / (2 s^2)) + m erf(m / (s sqrt(2)))."""
    ratio = mean / std
    return std * math.sqrt(2 / math.pi) * jnp.exp(-0.5 * ratio**2) + mean * jax.lax.erf(ratio / math.sqrt(2))


def cramer(target: MixtureReturn, prediction: MixtureReturn) -> Float[Array, ""]:
    """The integral of 2 (F_q - F_p)^2, where F are the cumulative distribution functions.

    It is 2 E|X - Y| - E|X - X'| - E|Y - Y'| with X, X' drawn from q and Y, Y' from p (Szekely and Rizzo 2013).
    """
    distance = functools.partial(_over_pairs, _folded)
    return 2 * distance(target, prediction) - distance(prediction, prediction) - distance(target, target)


def l2(target: MixtureReturn, prediction: MixtureReturn) -> Float[Array, ""]:
    """The integral of (q - p)^2, where q and p are the densities (appendix, Loss)."""

    def kernel(apart: Array, width: Array) -> Array:
        return jnp.exp(gaussian_log_density(apart, jnp.zeros(()), width))

    overlap = functools.partial(_over_pairs, kernel)
    return overlap(target, target) + overlap(prediction, prediction) - 2 * overlap(target, prediction)


@dataclasses.dataclass(frozen=True)
class GaussianMixture(Scaled[MixtureReturn]):
    """Mixture of Gaussians (appendix, Distributional Details).

    Args:
        components: number of Gaussians M, at least 1. The paper uses 5.
        spread: the means start evenly spaced on [-spread, spread], in units of the scale.
        std_bias: added to the network's output before the softplus that makes it a standard deviation.
        terminal_std: standard deviation after the end of an episode, in units of the scale; above 0.
        distance: the loss, from the target to the prediction: cramer (between cumulative distributions: its gradient is
            bounded, so a solved run stays solved, docs/decisions/0013) or l2 (between densities, the paper's: its
            gradient grows without bound as distributions narrow).
        scale: returns per unit of the network's output, above 0; null: the range of the environment's returns.

    Examples:
        >>> family = ut.GaussianMixture(components=2, scale=1.0)
        >>> z = family.from_outputs(jnp.zeros(family.num_outputs))  # one component at -2 and one at 2
        >>> round(abs(float(family.mean(z))), 2), round(float(family.std(z)), 2)
        (0.0, 2.39)
    """

    has_density: ClassVar[bool] = True
    components: int = 5
    spread: float = traced(2.0)
    std_bias: float = traced(1.0)
    terminal_std: float = traced(1e-4)
    distance: Literal["cramer", "l2"] = "cramer"
    scale: float | None = traced(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.components <= MOST_COMPONENTS:
            raise InputError(
                f"components is {self.components}: use a number from 1 to {MOST_COMPONENTS}; the paper uses 5."
            )
        if self.spread < 0:
            raise InputError(f"spread is {self.spread}, but the means start on [-spread, spread]: use 0 or more.")
        require_terminal_std(self.terminal_std)

    @property
    def num_outputs(self) -> int:
        return 3 * self.components

    def from_outputs(self, outputs: Float[Array, " outputs"]) -> MixtureReturn:
        weight_outputs, mean_outputs, std_outputs = jnp.split(outputs, 3)
        start = self.spread * np.linspace(-1.0, 1.0, self.components, dtype=np.float32)
        return MixtureReturn(
            weights=jax.nn.softmax(weight_outputs),
            means=self.unit * (mean_outputs + start),
            stds=self.unit * jax.nn.softplus(std_outputs + self.std_bias),
        )

    def terminal(self) -> MixtureReturn:
        """All weight on the first component, N(0, terminal_std) in units of the scale."""
        return MixtureReturn(
            weights=jnp.zeros(self.components).at[0].set(1.0),
            means=jnp.zeros(self.components),
            stds=jnp.full(self.components, self.unit * self.terminal_std),
        )

    def mean(self, z: MixtureReturn) -> Float[Array, ""]:
        return jnp.sum(z.weights * z.means)

    def std(self, z: MixtureReturn) -> Float[Array, ""]:
        """Root of sum_i w_i std_i^2 + sum_i w_i (mean_i - mean)^2, the variance of Eq. 22 without its cancellation."""
        return jnp.sqrt(jnp.sum(z.weights * (z.stds**2 + (z.means - self.mean(z)) ** 2)))

    def sample(self, key: PRNGKeyArray, z: MixtureReturn) -> Float[Array, ""]:
        component_key, normal_key = jax.random.split(key)
        component = jax.random.categorical(component_key, jnp.log(z.weights))
        return z.means[component] + z.stds[component] * jax.random.normal(normal_key)

    def log_density(self, z: MixtureReturn, returns: Float[Array, "*points"]) -> Float[Array, "*points"]:
        def component(weight: Float[Array, ""], mean: Float[Array, ""], std: Float[Array, ""]) -> Array:
            return jnp.log(jnp.maximum(weight, LEAST_WEIGHT)) + gaussian_log_density(returns, mean, std)

        return jax.nn.logsumexp(jax.vmap(component)(*z), axis=0)

    def cdf(self, z: MixtureReturn, returns: Float[Array, ""]) -> Float[Array, ""]:
        return jax.scipy.stats.norm.cdf(returns, z.means, z.stds) @ z.weights

    def backup(self, z: MixtureReturn, reward: Float[Array, ""], discount: Float[Array, ""]) -> MixtureReturn:
        """Each component on its own, the weights unchanged (appendix, Bellman Propagation)."""
        return MixtureReturn(z.weights, reward + discount * z.means, discount * z.stds)

    def mixed(self, share: Float[Array, ""], first: MixtureReturn, second: MixtureReturn) -> MixtureReturn:
        """The mixture, with each component of one merged with that of the other to a Gaussian of the same moments.

        So its mean and its variance are exactly those of the mixture of 2 M Gaussians.
        """
        own, other = share * first.weights, (1.0 - share) * second.weights
        weights = own + other
        part = jnp.where(weights > 0, own / jnp.where(weights > 0, weights, 1.0), share)
        components = GaussianReturn(first.means, first.stds), GaussianReturn(second.means, second.stds)
        return MixtureReturn(weights, *merged(part, *components))

    def loss(self, target: MixtureReturn, prediction: MixtureReturn) -> Float[Array, ""]:
        """The distance, with returns in units of the scale: the same whatever number all rewards are multiplied by."""
        q, p = (MixtureReturn(z.weights, z.means / self.unit, z.stds / self.unit) for z in (target, prediction))
        return l2(q, p) if self.distance == "l2" else cramer(q, p)
