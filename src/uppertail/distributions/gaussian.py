"""Gaussian return distribution, and the distances from a target q to a prediction p by which it is learned.

All distances are least where the two are equal. They differ where the targets of one state-action pair vary, because a
next action is sampled: the average of the distance is then minimized by another Gaussian for each of them.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions.base import Centered
from uppertail.errors import InputError
from uppertail.schema import traced
from uppertail.types import Rescaling

WEIGHTED = ("cross_entropy", "kl")  # distances whose gradient explodes as distributions narrow, and which beta weights
IMAGE_STD_BIAS = -3.0  # images cannot be searched: a wide start takes longer to narrow than a run has (decision 25)
UNIFORM_STD_BIAS = -1.09  # starts with the standard deviation of a uniform distribution over the range of returns
NARROWEST = 1e-6  # least std of a target, in units of the scale: a point (discount 0) is infinitely far from a Gaussian


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

GAUSSIAN_DISTANCES: dict[GaussianDistance, Callable[[GaussianReturn, GaussianReturn], Float[Array, ""]]] = {
    "cross_entropy": cross_entropy,
    "kl": kl,
    "bhattacharyya": bhattacharyya,
    "hellinger": hellinger,
    "wasserstein": wasserstein,
}  # L(q, p) by name


@dataclasses.dataclass(frozen=True)
class Gaussian(Centered[GaussianReturn]):
    """Gaussian return distribution N(mean, std).

    Args:
        std_bias: added to the network's output before the softplus that makes it a standard deviation: 1 starts it at
            about 1.3 of the scale (Implementation Details), -3 at 0.05. null: -3 for images, -1.09 (0.29) beside
            kernel counts and in tables with chance, 1 else.
        terminal_std: standard deviation after the end of an episode, in units of the scale; above 0.
        beta: cross-entropy and KL are weighted by std_p^(2 beta), a constant (Seitzer et al. 2022, beta-NLL). 0 is the
            paper's loss, whose gradient explodes as distributions narrow, so a run can lose its solution. In [0, 1].
        distance: the loss, from the target to the prediction: wasserstein (squared, of order 2: its gradient vanishes
            with the error, so a solved run stays solved), cross_entropy (the paper's), kl, bhattacharyya or hellinger
            (squared); beta is for cross_entropy and kl only.
        scale: returns per unit of the network's output, above 0; null: the range of the environment's returns.
        center: beside kernel counts and in tables with chance, the mean of what was never seen; null: the middle of
            that range.

    Examples:
        >>> family = ut.Gaussian(scale=1.0)
        >>> z = family.backup(family.terminal(), jnp.asarray(1.0), jnp.asarray(0.5))
        >>> float(family.mean(z)), round(float(family.std(z)), 6)
        (1.0, 5e-05)
    """

    has_density: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True
    std_bias: float | None = traced(None)
    terminal_std: float = traced(1e-4)
    beta: float = traced(0.5)
    distance: GaussianDistance = "wasserstein"
    scale: float | None = traced(None)
    center: float | None = traced(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_terminal_std(self.terminal_std)
        if not 0 <= self.beta <= 1:
            raise InputError(f"beta is {self.beta}, but it must lie in [0, 1]; 0 is the paper's loss.")

    @property
    def num_outputs(self) -> int:
        return 2

    def from_outputs(self, outputs: Float[Array, "2"]) -> GaussianReturn:
        std_bias = 1.0 if self.std_bias is None else self.std_bias
        return GaussianReturn(self.unit * outputs[0], self.unit * jax.nn.softplus(outputs[1] + std_bias))

    def for_images(self) -> Self:
        return dataclasses.replace(self, std_bias=IMAGE_STD_BIAS) if self.std_bias is None else self

    def as_wide_as_returns(self) -> Self:
        return dataclasses.replace(self, std_bias=UNIFORM_STD_BIAS) if self.std_bias is None else self

    def starting_at(self, std: float) -> Self:
        std_bias = math.log(math.expm1(std))  # the inverse of the softplus
        return dataclasses.replace(self, std_bias=std_bias) if self.std_bias is None else self

    def lower(self, first: GaussianReturn, second: GaussianReturn) -> GaussianReturn:
        """The lower mean and the lower standard deviation, so that no upper bound is above both."""
        return jax.tree.map(jnp.minimum, first, second)

    def rescaling(self, before: Any) -> Rescaling:
        """A narrow spread is the exponential of its output, so that another unit is a shift."""
        ratio = jnp.asarray(before.unit / self.unit, jnp.float32)
        return Rescaling(jnp.stack([ratio, jnp.ones(())]), jnp.stack([jnp.zeros(()), jnp.log(ratio)]))

    def terminal(self) -> GaussianReturn:
        return GaussianReturn(jnp.zeros(()), jnp.full((), self.unit * self.terminal_std))

    def mean(self, z: GaussianReturn) -> Float[Array, ""]:
        return z.mean

    def std(self, z: GaussianReturn) -> Float[Array, ""]:
        return z.std

    def sample(self, key: PRNGKeyArray, z: GaussianReturn) -> Float[Array, ""]:
        return z.mean + z.std * jax.random.normal(key)

    def log_density(self, z: GaussianReturn, returns: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return gaussian_log_density(returns, z.mean, z.std)

    def cdf(self, z: GaussianReturn, returns: Float[Array, ""]) -> Float[Array, ""]:
        return jax.scipy.stats.norm.cdf(returns, z.mean, z.std)

    def backup(self, z: GaussianReturn, reward: Float[Array, ""], discount: Float[Array, ""]) -> GaussianReturn:
        """N(reward + discount * mean, discount * std) (Section 4)."""
        return GaussianReturn(reward + discount * z.mean, discount * z.std)

    def loss(self, target: GaussianReturn, prediction: GaussianReturn) -> Float[Array, ""]:
        """The distance in units of the scale, weighted: the same whatever number all rewards are multiplied by."""
        q, p = (GaussianReturn(z.mean / self.unit, z.std / self.unit) for z in (target, prediction))
        distance = GAUSSIAN_DISTANCES[self.distance](q, p)
        if self.distance not in WEIGHTED:
            return distance
        return jax.lax.stop_gradient(p.std ** (2 * self.beta)) * distance

    def from_coordinates(self, vector: Float[Array, "2"]) -> GaussianReturn:
        return GaussianReturn(vector[0], jnp.maximum(vector[1], self.unit * self.terminal_std))

    @property
    def is_mean(self) -> tuple[bool, ...]:
        return True, False


def merged(share: Array, first: GaussianReturn, second: GaussianReturn) -> GaussianReturn:
    """The Gaussian with the mean and the variance of the mixture of two, the first with weight `share`."""
    mean = share * first.mean + (1.0 - share) * second.mean
    within = share * first.std**2 + (1.0 - share) * second.std**2
    return GaussianReturn(mean, jnp.sqrt(within + share * (1.0 - share) * (first.mean - second.mean) ** 2))


def require_terminal_std(terminal_std: float) -> None:
    """Raises InputError unless the standard deviation after the end of an episode is above 0."""
    if terminal_std <= 0:
        raise InputError(f"terminal_std is {terminal_std}, but a Gaussian needs one above 0, for example 1e-4.")


def gaussian_log_density(
    returns: Float[Array, "*points"], mean: Float[Array, "*#points"], std: Float[Array, "*#points"]
) -> Float[Array, "*points"]:
    """log N(returns | mean, std)."""
    return -0.5 * ((returns - mean) / std) ** 2 - jnp.log(std) - 0.5 * math.log(2 * math.pi)
