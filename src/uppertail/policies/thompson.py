"""Thompson sampling: from the return, or over members."""

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

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


@dataclasses.dataclass(frozen=True)
class MemberThompson(ExplorationPolicy):
    """Follows one member, or one draw of a network's weights, until the episode ends (Osband et al. 2016).

    With draws of the return, both uncertainties are sampled: ignorance once for each episode, and the chance that
    this member predicts at each decision (Moerland, Broekens, Jonker 2017). With `within`, ignorance is sampled,
    and the spread that this member predicts is a bonus, as in `UCB`.

    Args:
        draws: 0: the action of the member's highest score; else the highest of this many draws from its return
            distribution of each action, as `Thompson` does.
        within: how much the spread of the member's return counts in its score, mean + within * spread; 0 or more.

    Examples:
        >>> from uppertail.distributions.gaussian import GaussianReturn
        >>> mean = jnp.array([[0.5, 0.0], [0.5, 0.8]])  # two members disagree about action 1
        >>> decision = ut.Decision(ut.Gaussian(), GaussianReturn(mean, jnp.full((2, 2), 1e-3)))
        >>> policy, key = ut.MemberThompson(), jax.random.key(0)
        >>> [int(policy.select(key, decision.with_memory(jnp.array(member)))) for member in (0, 1)]
        [0, 1]
    """

    draws: int = 0
    within: float = 0.0
    needs_members: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(self)
        if self.draws < 0:
            raise InputError(f"draws is {self.draws}: use 0, the member's means, or more draws from its returns.")
        if not 0 <= self.within < math.inf:
            raise InputError(f"within is {self.within}: use a finite number, 0 or more; 0 leaves the spread out.")
        if self.draws and self.within:
            raise InputError(
                f"draws is {self.draws} and within is {self.within}, but draws contain the spread: set one to 0."
            )

    def begin(self, key: PRNGKeyArray, decision: Decision) -> Int[Array, ""]:
        return jax.random.randint(key, (), 0, decision.num_members)

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        believed = decision.of_member(decision.memory)
        if self.draws:
            return jnp.max(believed.draws(key, self.draws)[:, 0], axis=0)
        return (believed.mean + self.within * believed.std if self.within else believed.mean)[0]
