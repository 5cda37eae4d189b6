"""The mixture of several weighted distributions: the return after a state and action with several outcomes."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from uppertail.distributions.categorical import CategoricalReturn
from uppertail.distributions.gaussian_losses import GaussianReturn
from uppertail.distributions.point_mass import PointMassReturn
from uppertail.errors import InputError
from uppertail.types import PyTree


@functools.singledispatch
def mixed(z: PyTree, weights: Float[Array, " outcomes"]) -> PyTree:
    """The mixture of several distributions, or the nearest member of the family; a user's family registers its own.

    Args:
        z: parameters, each with a leading axis of outcomes.
        weights: weight of each outcome; they sum to 1.

    Raises:
        InputError: no mixture is defined for the family.
    """
    del weights
    family = type(z).__name__.removesuffix("Return")
    raise InputError(
        f"distribution is {family}, but several outcomes of one action are mixed, and no mixture of its distributions "
        "is one of them: use Gaussian, Categorical or PointMass, or an environment that is deterministic."
    )


@mixed.register
def _(z: CategoricalReturn, weights: Float[Array, " outcomes"]) -> CategoricalReturn:
    """Exact."""
    return CategoricalReturn(jax.nn.logsumexp(z.log_probabilities, axis=0, b=weights[:, None]))


@mixed.register
def _(z: GaussianReturn, weights: Float[Array, " outcomes"]) -> GaussianReturn:
    """The mean and the variance of the mixture."""
    mean = jnp.sum(weights * z.mean)
    return GaussianReturn(mean, jnp.sqrt(jnp.sum(weights * (z.std**2 + (z.mean - mean) ** 2))))


@mixed.register
def _(z: PointMassReturn, weights: Float[Array, " outcomes"]) -> PointMassReturn:
    """The mean of the mixture."""
    return PointMassReturn(jnp.sum(weights * z.mean))
