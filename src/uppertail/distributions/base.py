"""The contract of a return distribution Z(s, a), families with a scale, and the spreads of several distributions."""

import abc
import dataclasses
import math
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.errors import Explained, InputError
from uppertail.schema import settle
from uppertail.types import PyTree, Rescaling, ReturnRange

Params = TypeVar("Params")

DRAWS = 4096  # how many draws stand for a distribution whose family gives no `cdf`


class ReturnDistribution(Generic[Params], metaclass=Explained):
    """A family of return distributions with its settings: a frozen dataclass.

    The parameters of one distribution are a NamedTuple of arrays, made by `from_outputs` or `terminal`. Every method
    sees one state-action pair; callers lift it with `jax.vmap`. A family of your own is one class with the first eight
    of these methods, and with others where it has more to offer: `--distribution my_package.Laplace` uses it.

    Attributes:
        has_density: whether it has `log_density`: a draw of one distribution has a likelihood under another.
        has_spread: whether returns vary in it, so that a policy can explore by their spread; not in a point mass.
        is_linear: whether weighted means of its `coordinates` are distributions of the family again, which is what
            least squares needs (`--learner LeastSquares`).

    Examples:
        >>> families: list[ut.ReturnDistribution] = [ut.PointMass(), ut.Gaussian(), ut.GaussianMixture(components=5)]
        >>> [family.num_outputs for family in families]
        [1, 2, 15]
    """

    has_density: ClassVar[bool] = False
    has_spread: ClassVar[bool] = True
    is_linear: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def num_outputs(self) -> int:
        """How many unconstrained numbers the network gives for one state-action pair."""

    @abc.abstractmethod
    def from_outputs(self, outputs: Float[Array, " outputs"]) -> Params:
        """Valid parameters from the network's unconstrained outputs."""

    @abc.abstractmethod
    def terminal(self) -> Params:
        """The distribution after the end of an episode: the return is certainly 0."""

    @abc.abstractmethod
    def mean(self, z: Params) -> Float[Array, ""]:
        """E[Z], the action value Q(s, a)."""

    @abc.abstractmethod
    def std(self, z: Params) -> Float[Array, ""]:
        """Sd[Z] (appendix, Standard Deviation), in units of return."""

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray, z: Params) -> Float[Array, ""]:
        """One draw from Z."""

    @abc.abstractmethod
    def backup(self, z: Params, reward: Float[Array, ""], discount: Float[Array, ""]) -> Params:
        """The distribution of reward + discount * Z (Eq. 2, one next action)."""

    @abc.abstractmethod
    def loss(self, target: Params, prediction: Params) -> Float[Array, ""]:
        """L(q, p) between the backed-up target q and the prediction p (appendix, Loss)."""

    @property
    def centers(self) -> Float[Array | np.ndarray, " bins"] | None:
        """The center of each bin, where the parameters are the bins' `log_probabilities`; None by default."""
        return None

    @property
    def support(self) -> tuple[float, float]:
        """The lowest and highest mean return that the family can represent; infinite by default."""
        return -math.inf, math.inf

    @property
    def unit(self) -> Float[Array, ""] | float:
        """Returns per unit of output; 1 where outputs are in units of return."""
        return 1.0

    @property
    def start_mean(self) -> Float[Array, ""] | float | None:
        """The mean of a start as wide as the returns; None, the default: that of the family."""
        return None

    def centered(self, z: Params) -> Params:
        """A distribution about 0, moved to the middle of the returns."""
        if self.start_mean is None:
            return z
        return self.backup(z, jnp.asarray(self.start_mean, jnp.float32), jnp.ones(()))

    def fit(self, returns: ReturnRange) -> Self:
        """This family with its open settings filled in; InputError if it cannot represent these returns."""
        return self

    def for_images(self) -> Self:
        """This family with its open settings as images need them."""
        return self

    def as_wide_as_returns(self) -> Self:
        """This family with its open settings so that it starts as wide as the returns, and no wider."""
        return self

    def following_returns(self) -> Self:
        """This family with its open settings for a range of returns that is measured, and wider as more are seen."""
        return self

    def starting_at(self, std: float) -> Self:
        """This family with its open settings so that it starts with this standard deviation, in units of the scale."""
        del std
        return self

    def log_density(self, z: Params, returns: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """log p(Z = returns), per unit of return; only where `has_density`."""
        raise TypeError(f"{type(self).__name__} has no density at {returns} of {z}.")

    def density(self, z: Params, returns: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """p(Z = returns), per unit of return; only where `has_density`."""
        return jnp.exp(self.log_density(z, returns))

    def cdf(self, z: Params, returns: Float[Array, ""]) -> Float[Array, ""]:
        """P(Z <= returns); by draws, where a family has no closed form."""
        draws = jax.vmap(self.sample, in_axes=(0, None))(jax.random.split(jax.random.key(0), DRAWS), z)
        return jnp.mean(draws <= returns)

    def mixed(self, share: Float[Array, ""], first: Params, second: Params) -> Params:
        """A `share` of the first distribution and the rest of the second; by default means of their parameters."""
        return jax.tree.map(lambda one, other: share * one + (1.0 - share) * other, first, second)

    def lower(self, first: Params, second: Params) -> Params:
        """The lower of two distributions; by default the one with the lower mean."""
        is_first = self.mean(first) <= self.mean(second)
        return jax.tree.map(lambda one, other: jnp.where(is_first, one, other), first, second)

    def rescaling(self, before: Any) -> Rescaling | None:
        """How outputs of this family follow from outputs fitted to another range of returns; None: they do not."""
        del before
        return None

    def coordinates(self, z: Params) -> Float[Array, " outputs"]:
        """The parameters as one vector, which least squares averages; only where `is_linear`."""
        return ravel_pytree(z)[0]

    def from_coordinates(self, vector: Float[Array, " outputs"]) -> Params:
        """The valid distribution nearest to these coordinates; only where `is_linear`."""
        raise TypeError(f"{type(self).__name__} has no coordinates like {vector}.")

    @property
    def is_mean(self) -> tuple[bool, ...]:
        """Which coordinates are the mean return, apart from its spread; none by default."""
        return (False,) * self.num_outputs


class Scaled(ReturnDistribution[Params]):
    """A family with a setting `scale`; None: the range of the environment's returns, which `fit` fills in."""

    scale: float | None

    def __post_init__(self) -> None:
        settle(self)
        if self.scale is not None and self.scale <= 0:
            raise InputError(f"scale is {self.scale}: use a number above 0, or leave it out: the range of returns.")

    @property
    def unit(self) -> Float[Array, ""] | float:
        """Returns per unit of output: the scale, or 1 as long as it is open."""
        return 1.0 if self.scale is None else self.scale

    def fit(self, returns: ReturnRange) -> Self:
        family: Any = self  # a dataclass, as every family is
        return dataclasses.replace(family, scale=range_of(returns)) if self.scale is None else self


class Centered(Scaled[Params]):
    """A family with a setting `center`, too; None: the middle of the environment's returns, which `fit` fills in."""

    center: float | None

    @property
    def start_mean(self) -> Float[Array, ""] | float | None:
        return self.center

    def fit(self, returns: ReturnRange) -> Self:
        family: Any = super().fit(returns)
        middle = (returns.low + returns.high) / 2
        return dataclasses.replace(family, center=middle) if self.center is None else family


def range_of(returns: ReturnRange) -> float:
    """How far apart the highest and the lowest return lie, or 1 where they are the same; in units of return."""
    return (returns.high - returns.low) or 1.0


class Spread(NamedTuple):
    """Mean of the return of a member drawn at random, and its two spreads, in units of return.

    By the law of total variance, its variance is the mean of the members' variances (within: the chance that each
    member predicts) plus the variance of their means (between: which member is right is not known).
    """

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
