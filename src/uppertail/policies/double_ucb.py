"""Upper confidence bound on both spreads: between members, and within their return distributions."""

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions.members import spread
from uppertail.errors import InputError
from uppertail.policies.base import Decision, ExplorationPolicy
from uppertail.schema import settle, traced


@dataclasses.dataclass(frozen=True)
class DoubleUCB(ExplorationPolicy):
    """Mean + u_a * (between * spread between members + within * spread of the return); each term can be left out.

    u_a is drawn uniformly for each action at the start of an episode. With `within` 0 it explores by what members
    disagree on, with `between` 0 it is the paper's UCB on the members together. What the spread of the return contains
    depends on the family's loss: docs/uncertainties.md says which losses leave out the environment's chance. A single
    member has no spread between members, and each member chooses a' of replayed transitions by itself.

    Args:
        between: how much the spread between members of the mean counts, 0 or more; 0: not at all.
        within: how much the spread of the members' returns counts, 0 or more; 0: not at all.
        jitter: u_a lies between 1 - jitter and 1 + jitter; in [0, 1].

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.distributions.gaussian import GaussianReturn
        >>> mean = jnp.array([[0.5, 0.0], [0.5, 0.8]])  # two members disagree about action 1
        >>> decision = ut.Decision(ut.Gaussian(), GaussianReturn(mean, jnp.full((2, 2), 1e-3)))
        >>> within, between = ut.DoubleUCB(between=0.0), ut.DoubleUCB(within=0.0)
        >>> [int(policy.first_action(jax.random.key(0), decision)) for policy in (within, between)]
        [0, 1]
    """

    between: float = 2.0
    within: float = 2.0
    jitter: float = traced(0.15)
    needs_members: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(self)
        for name in ("between", "within"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}: use a finite number, 0 or more; 0 leaves it out.")
        if not 0 <= self.jitter <= 1:
            raise InputError(f"jitter is {self.jitter}, but optimism is not negative: use a number in [0, 1].")

    def begin(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return jax.random.uniform(key, (decision.num_actions,), minval=1 - self.jitter, maxval=1 + self.jitter)

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        returns = spread(decision.family, decision.z)
        bonus = jnp.zeros(())  # with weight 0, even an infinite spread adds nothing
        for weight, each in ((self.between, returns.between), (self.within, returns.within)):
            bonus = bonus + weight * each if weight else bonus
        return returns.mean + decision.memory * bonus
