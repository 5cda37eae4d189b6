"""Thompson sampling from the return."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.policies.base import Decision, ExplorationPolicy
from uppertail.schema import settle

MOST_DRAWS = 2**16  # all are drawn at once, for each action


@dataclasses.dataclass(frozen=True)
class Thompson(ExplorationPolicy):
    """The highest of a few draws from the return distribution of each action; one in the paper (Section 5).

    Args:
        draws: draws per action, at least 1: the more, the more optimistic.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.distributions.gaussian import GaussianReturn
        >>> z = GaussianReturn(mean=jnp.array([[1.0, 0.0]]), std=jnp.array([[1e-3, 1.0]]))  # one member, two actions
        >>> decision = ut.Decision(ut.Gaussian(), z)
        >>> [int(ut.Thompson(draws).select(jax.random.key(0), decision)) for draws in (1, 100)]
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

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return jnp.mean(jnp.max(decision.draws(key, self.draws), axis=0), axis=0)
