"""Several distributions of one return: their common mean, and how far they differ.

The return of a member drawn at random is the mixture of all members' distributions. By the law of total variance, its
variance is the mean of their variances (within: the chance that each member predicts) plus the variance of their
means (between: which member is right is not known).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from uppertail.distributions.base import ReturnDistribution
from uppertail.types import PyTree


class Spread(NamedTuple):
    """Mean of a return and its two spreads, in units of return."""

    mean: Float[Array, "*pairs"]  # mean over members of the mean
    between: Float[Array, "*pairs"]  # standard deviation over members of the mean; 0 where there is one member
    within: Float[Array, "*pairs"]  # root of the mean over members of the variance

    @property
    def total(self) -> Float[Array, "*pairs"]:
        """Standard deviation of the mixture of all members."""
        return jnp.hypot(self.between, self.within)


def spread(family: ReturnDistribution[Any], z: PyTree) -> Spread:
    """The spreads of the return of each action; every array of `z` has leading axes [members, actions]."""
    mean, std = (jax.vmap(jax.vmap(moment))(z) for moment in (family.mean, family.std))
    within = jnp.sqrt(jnp.mean(jnp.square(std), axis=0))
    return Spread(jnp.mean(mean, axis=0), jnp.std(mean, axis=0), within)
