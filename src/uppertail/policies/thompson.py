"""Thompson sampling from the return."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.errors import InputError
from uppertail.policies.base import Memoryless
from uppertail.schema import settle
from uppertail.types import PyTree

MOST_DRAWS = 2**16
"""The most draws: all are drawn at once, for each action."""


@dataclasses.dataclass(frozen=True)
class Thompson(Memoryless):
    """The highest of a few draws from the return distribution of each action; one in the paper (Section 5).

    Args:
        draws: draws per action, at least 1: the more, the more optimistic.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> family, key = ut.Gaussian(), jax.random.key(0)
        >>> outputs = jnp.array([[[1.0, -9.0], [0.0, 1.0]]])  # 1 for sure; 0 on average, widely spread
        >>> z = jax.vmap(jax.vmap(family.from_outputs))(outputs)
        >>> [int(ut.Thompson(draws).select(key, (), family, z)) for draws in (1, 100)]
        [0, 1]
    """

    explores_by_spread: ClassVar[bool] = True
    draws: int = 1

    def __post_init__(self) -> None:
        settle(self)
        if self.draws < 1:
            raise InputError(f"draws is {self.draws}, but each action needs at least 1; the paper uses 1.")
        if self.draws > MOST_DRAWS:
            raise InputError(f"draws is {self.draws}: use {MOST_DRAWS} at most; the paper uses 1.")

    def scores(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: PyTree) -> Float[Array, " actions"]:
        num_actions = jax.tree.leaves(z)[0].shape[0]
        keys = jax.random.split(key, (self.draws, num_actions))
        return jnp.max(jax.vmap(jax.vmap(family.sample), in_axes=(0, None))(keys, z), axis=0)
