"""Distances between two Gaussian mixtures, from the target q to the prediction p, in units of the scale.

Both have their least value where the two are equal, and, over several targets of one state-action pair, where the
prediction is the mixture of them. They differ in their gradients: see `GaussianMixture.distance`.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from uppertail.distributions.gaussian import gaussian_log_density

NARROWEST = 1e-6
"""Narrowest overlap of two components, in units of the scale: two points (discount 0) would have none."""


class GaussianMixtureReturn(NamedTuple):
    """sum_i weights_i N(means_i, stds_i); means and stds in units of return."""

    weights: Float[Array, "*batch components"]
    means: Float[Array, "*batch components"]
    stds: Float[Array, "*batch components"]


def cramer(target: GaussianMixtureReturn, prediction: GaussianMixtureReturn) -> Float[Array, ""]:
    """The integral of 2 (F_q - F_p)^2, where F are the cumulative distribution functions.

    It is 2 E|X - Y| - E|X - X'| - E|Y - Y'| with X, X' drawn from q and Y, Y' from p (Szekely and Rizzo 2013).
    """
    between, own = _mean_distance(target, prediction), _mean_distance(prediction, prediction)
    return 2 * between - own - _mean_distance(target, target)


def l2(target: GaussianMixtureReturn, prediction: GaussianMixtureReturn) -> Float[Array, ""]:
    """The integral of (q - p)^2, where q and p are the densities (appendix, Loss)."""
    return _l2(target, prediction, _width)


def printed_l2(target: GaussianMixtureReturn, prediction: GaussianMixtureReturn) -> Float[Array, ""]:
    """The L2 distance as the paper prints it: kernels as wide as the sum of the two standard deviations."""
    return _l2(target, prediction, lambda std_i, std_j: jnp.maximum(std_i + std_j, NARROWEST))


MixtureDistance = Literal["cramer", "l2"]
"""The names of `GaussianMixture.distance`."""

MIXTURE_DISTANCES: dict[MixtureDistance, Callable[[GaussianMixtureReturn, GaussianMixtureReturn], Array]] = {
    "cramer": cramer,
    "l2": l2,
}
"""L(q, p) by name."""


def _width(std_i: Array, std_j: Array) -> Array:
    """The standard deviation of the difference of two components."""
    return jnp.maximum(jnp.sqrt(std_i**2 + std_j**2), NARROWEST)


def _l2(q: GaussianMixtureReturn, p: GaussianMixtureReturn, width: Callable[[Array, Array], Array]) -> Array:
    def overlap(first: GaussianMixtureReturn, second: GaussianMixtureReturn) -> Float[Array, ""]:
        """The integral of the product: sum_ij w_i w_j N(mean_i | mean_j, width_ij)."""
        widths = width(first.stds[:, None], second.stds[None, :])
        log_kernel = gaussian_log_density(first.means[:, None] - second.means[None, :], jnp.zeros(()), widths)
        return jnp.sum(first.weights[:, None] * second.weights[None, :] * jnp.exp(log_kernel))

    return overlap(q, q) + overlap(p, p) - 2 * overlap(q, p)


def _mean_distance(first: GaussianMixtureReturn, second: GaussianMixtureReturn) -> Float[Array, ""]:
    """E|X - Y|: for N(m, s) it is s sqrt(2 / pi) exp(-m^2 / (2 s^2)) + m erf(m / (s sqrt(2)))."""
    apart = first.means[:, None] - second.means[None, :]
    width = _width(first.stds[:, None], second.stds[None, :])
    ratio = apart / width
    folded = width * math.sqrt(2 / math.pi) * jnp.exp(-0.5 * ratio**2) + apart * jax.lax.erf(ratio / math.sqrt(2))
    return jnp.sum(first.weights[:, None] * second.weights[None, :] * folded)
