"""The contract of an exploration policy."""

import abc
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution


class ExplorationPolicy(abc.ABC):
    """Chooses an action from the return distributions of one state. A policy is a frozen dataclass.

    Args of both methods:
        key: randomness of this decision.
        family: the family that `z` belongs to.
        z: its parameters, each with a leading axis of actions.
    """

    @abc.abstractmethod
    def scores(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: Any) -> Float[Array, " actions"]:
        """One number per action, in units of return: the highest is chosen."""

    def select(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: Any) -> Int[Array, ""]:
        """The action with the highest score; ties are broken at random."""
        score_key, tie_key = jax.random.split(key)
        scores = self.scores(score_key, family, z)
        tie_breaks = jax.random.uniform(tie_key, scores.shape)
        return jnp.argmax(jnp.where(scores == jnp.max(scores), tie_breaks, -1.0)).astype(jnp.int32)
