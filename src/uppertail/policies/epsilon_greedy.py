"""The undirected baseline."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.policies.base import Decision, ExplorationPolicy
from uppertail.schema import settle, traced


@dataclasses.dataclass(frozen=True)
class EpsilonGreedy(ExplorationPolicy):
    """The highest mean, or with probability epsilon an action at random (which may be the greedy one).

    Args:
        epsilon: probability of a random action, in [0, 1]; 0.05 throughout in the paper.

    Examples:
        >>> from uppertail.distributions.point_mass import PointMassReturn
        >>> z = PointMassReturn(mean=jax.numpy.array([[1.0, 0.0]]))  # one member, two actions
        >>> int(ut.EpsilonGreedy(epsilon=0.0).select(jax.random.key(0), ut.Decision(ut.PointMass(), z)))
        0
    """

    epsilon: float = traced(0.05)

    def __post_init__(self) -> None:
        settle(self)
        if not 0 <= self.epsilon <= 1:
            raise InputError(f"epsilon is {self.epsilon}, but a probability lies in [0, 1]; the paper uses 0.05.")

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        explore_key, noise_key = jax.random.split(key)
        noise = jax.random.uniform(noise_key, (decision.num_actions,))
        explores = jax.random.bernoulli(explore_key, self.epsilon)
        return jnp.where(explores, noise, jnp.mean(decision.mean, axis=0))
