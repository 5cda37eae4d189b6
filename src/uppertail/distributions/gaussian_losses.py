"""Distances between two Gaussians, from the target q to the prediction p (appendix, Loss).

All are least where the two are equal. They differ where the targets of one state-action pair vary, because a next
action is sampled: the average of the distance is then minimized by another Gaussian for each of them.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

NARROWEST = 1e-6
"""Least standard deviation of a target, in units of the scale, before its logarithm is taken: a point (discount 0)
would lie infinitely far from every Gaussian."""


class GaussianReturn(NamedTuple):
    """N(mean, std), both in units of return."""

    mean: Float[Array, "*batch"]
    std: Float[Array, "*batch"]


def cross_entropy(target: GaussianReturn, prediction: GaussianReturn) -> Float[Array, ""]:
    """H(q, p) = log(2 pi std_p^2) / 2 + (std_q^2 + (mean_q - mean_p)^2) / (2 std_p^2) (appendix, Loss).

    Its minimum over several targets has the mean and the variance of their mixture: the spread of their means counts.
    """
    spread = target.std**2 + (target.mean - prediction.mean) ** 2
    return 0.5 * math.log(2 * math.pi) + jnp.log(prediction.std) + spread / (2 * prediction.std**2)


def kl(target: GaussianReturn, prediction: GaussianReturn) -> Float[Array, ""]:
    """KL(q || p) = H(q, p) - H(q): the gradient of the cross-entropy, and a value that is 0 at the target."""
    entropy = 0.5 * math.log(2 * math.pi * math.e) + jnp.log(jnp.maximum(target.std, NARROWEST))
    return cross_entropy(target, prediction) - entropy


def bhattacharyya(target: GaussianReturn, prediction: GaussianReturn) -> Float[Array, ""]:
    """- log of the integral of sqrt(q p), the Bhattacharyya distance.

    (mean_q - mean_p)^2 / (4 (std_q^2 + std_p^2)) + log((std_q^2 + std_p^2) / (2 std_q std_p)) / 2, where the last
    fraction is 1 + (std_q - std_p)^2 / (2 std_q std_p): so nothing cancels where the two are nearly equal.
    """
    std_q, std_p = jnp.maximum(target.std, NARROWEST), prediction.std
    apart = (target.mean - prediction.mean) ** 2 / (4 * (std_q**2 + std_p**2))
    return apart + 0.5 * jnp.log1p((std_q - std_p) ** 2 / (2 * std_q * std_p))


def hellinger(target: GaussianReturn, prediction: GaussianReturn) -> Float[Array, ""]:
    """The squared Hellinger distance, 1 - exp(-Bhattacharyya) = the integral of (sqrt(q) - sqrt(p))^2 / 2; in [0, 1].

    Where the two hardly overlap it is flat: a prediction that has narrowed far from its target learns nothing.
    """
    return -jnp.expm1(-bhattacharyya(target, prediction))


def wasserstein(target: GaussianReturn, prediction: GaussianReturn) -> Float[Array, ""]:
    """The squared Wasserstein-2 distance, (mean_q - mean_p)^2 + (std_q - std_p)^2.

    Its minimum over several targets, one for each sampled next action, is the mean of their means and the mean of their
    standard deviations: exactly the backup that Section 4 prints. The cross-entropy's is the moments of the mixture.
    """
    return (target.mean - prediction.mean) ** 2 + (target.std - prediction.std) ** 2


GaussianDistance = Literal["cross_entropy", "kl", "bhattacharyya", "hellinger", "wasserstein"]
"""The names of `Gaussian.distance`."""

GAUSSIAN_DISTANCES: dict[GaussianDistance, Callable[[GaussianReturn, GaussianReturn], Float[Array, ""]]] = {
    "cross_entropy": cross_entropy,
    "kl": kl,
    "bhattacharyya": bhattacharyya,
    "hellinger": hellinger,
    "wasserstein": wasserstein,
}
"""L(q, p) by name."""
