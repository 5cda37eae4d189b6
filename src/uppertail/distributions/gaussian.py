"""Gaussian return distribution, learned by cross-entropy."""

import dataclasses
import math
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions.base import ReturnDistribution
from uppertail.errors import InputError
from uppertail.types import ReturnRange


class GaussianReturn(NamedTuple):
    """N(mean, std), both in units of return."""

    mean: Float[Array, "*batch"]
    std: Float[Array, "*batch"]


@dataclasses.dataclass(frozen=True)
class Gaussian(ReturnDistribution[GaussianReturn]):
    """Gaussian return distribution N(mean, std).

    Args:
        std_bias: added to the network's output before the softplus that makes it a standard deviation: 1 starts it at
            about 1.3 (Implementation Details).
        terminal_std: standard deviation after the end of an episode, in units of return; above 0.
        beta: the cross-entropy is weighted by std_p^(2 beta), held still (Seitzer et al. 2022, beta-NLL). 0 is the
            paper's loss, whose gradient explodes as distributions narrow: a solved run falls. In [0, 1].
    """

    std_bias: float = 1.0
    terminal_std: float = 1e-4
    beta: float = 0.5

    def __post_init__(self) -> None:
        if not self.terminal_std > 0:
            raise InputError(
                f"terminal_std is {self.terminal_std}, but a Gaussian needs one above 0, for example 1e-4."
            )

        if not 0 <= self.beta <= 1:
            raise InputError(f"beta is {self.beta}, but it must lie in [0, 1]; 0 is the paper's loss.")

    @property
    def num_outputs(self) -> int:
        return 2

    def fit(self, returns: ReturnRange) -> Self:
        return self

    def from_outputs(self, outputs: Float[Array, "2"]) -> GaussianReturn:
        return GaussianReturn(outputs[0], jax.nn.softplus(outputs[1] + self.std_bias))

    def terminal(self) -> GaussianReturn:
        return GaussianReturn(jnp.zeros(()), jnp.full((), self.terminal_std))

    def mean(self, z: GaussianReturn) -> Float[Array, ""]:
        return z.mean

    def std(self, z: GaussianReturn) -> Float[Array, ""]:
        return z.std

    def sample(self, key: PRNGKeyArray, z: GaussianReturn) -> Float[Array, ""]:
        return z.mean + z.std * jax.random.normal(key)

    def log_density(self, z: GaussianReturn, returns: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return gaussian_log_density(returns, z.mean, z.std)

    def backup(self, z: GaussianReturn, reward: Float[Array, ""], discount: Float[Array, ""]) -> GaussianReturn:
        """N(reward + discount * mean, discount * std) (Section 4)."""
        return GaussianReturn(reward + discount * z.mean, discount * z.std)

    def loss(self, target: GaussianReturn, prediction: GaussianReturn) -> Float[Array, ""]:
        """H(q, p) = log(2 pi std_p^2) / 2 + (std_q^2 + (mean_q - mean_p)^2) / (2 std_p^2) (appendix), weighted."""
        spread = target.std**2 + (target.mean - prediction.mean) ** 2
        cross_entropy = 0.5 * math.log(2 * math.pi) + jnp.log(prediction.std) + spread / (2 * prediction.std**2)
        return jax.lax.stop_gradient(prediction.std ** (2 * self.beta)) * cross_entropy


def gaussian_log_density(
    returns: Float[Array, "*points"], mean: Float[Array, "*#points"], std: Float[Array, "*#points"]
) -> Float[Array, "*points"]:
    """log N(returns | mean, std)."""
    return -0.5 * ((returns - mean) / std) ** 2 - jnp.log(std) - 0.5 * math.log(2 * math.pi)
