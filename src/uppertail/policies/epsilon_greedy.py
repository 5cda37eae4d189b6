"""The undirected baseline, and the greedy policy by which every method is judged."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.errors import InputError
from uppertail.policies.base import Memoryless
from uppertail.schema import settle
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class EpsilonGreedy(Memoryless):
    """The highest mean, or with probability epsilon an action at random (which may be the greedy one).

    Args:
        epsilon: probability of a random action, in [0, 1]; 0.05 throughout in the paper.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> family, key = ut.Gaussian(), jax.random.key(0)
        >>> outputs = jnp.array([[[1.0, -9.0], [0.0, 1.0]]])  # 1 for sure; 0 on average, widely spread
        >>> z = jax.vmap(jax.vmap(family.from_outputs))(outputs)
        >>> int(ut.EpsilonGreedy(epsilon=0.0).select(key, (), family, z))
        0
    """

    epsilon: float = 0.05

    def __post_init__(self) -> None:
        settle(self)
        if not 0 <= self.epsilon <= 1:
            raise InputError(f"epsilon is {self.epsilon}, but a probability lies in [0, 1]; the paper uses 0.05.")

    def scores(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: PyTree) -> Float[Array, " actions"]:
        explore_key, noise_key = jax.random.split(key)
        mean = jax.vmap(family.mean)(z)
        noise = jax.random.uniform(noise_key, mean.shape)
        return jnp.where(jax.random.bernoulli(explore_key, self.epsilon), noise, mean)


@dataclasses.dataclass(frozen=True)
class Greedy(Memoryless):
    """The highest mean: no exploration, for evaluation.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> family, key = ut.Gaussian(), jax.random.key(0)
        >>> outputs = jnp.array([[[1.0, -9.0], [0.0, 1.0]]])  # 1 for sure; 0 on average, widely spread
        >>> z = jax.vmap(jax.vmap(family.from_outputs))(outputs)
        >>> int(ut.Greedy().select(key, (), family, z))
        0
    """

    def scores(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: PyTree) -> Float[Array, " actions"]:
        return jax.vmap(family.mean)(z)
