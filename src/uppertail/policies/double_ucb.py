"""Upper confidence bound on both spreads: between members, and within their return distributions."""

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.distributions.members import spread
from uppertail.errors import InputError
from uppertail.policies.base import ExplorationPolicy, highest
from uppertail.schema import settle
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class DoubleUCB(ExplorationPolicy):
    """Mean + u_a * (between * spread between members + within * spread of the return); each term can be left out.

    u_a is drawn uniformly for each action at the start of an episode. With `within` 0 it is `MemberUCB`, with `between`
    0 the paper's UCB on the members together. What the spread of the return contains depends on the family's loss:
    docs/uncertainties.md says which losses leave out the environment's chance.

    Args:
        between: how much the spread between members of the mean counts, 0 or more; 0: not at all.
        within: how much the spread of the members' returns counts, 0 or more; 0: not at all.
        jitter: u_a lies between 1 - jitter and 1 + jitter; in [0, 1].

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> family, key = ut.Gaussian(), jax.random.key(0)
        >>> one, other = [[0.5, -9.0], [0.0, -9.0]], [[0.5, -9.0], [0.8, -9.0]]  # two members disagree about action 1
        >>> z = jax.vmap(jax.vmap(family.from_outputs))(jnp.array([one, other]))
        >>> within, between = ut.DoubleUCB(between=0.0, jitter=0.0), ut.DoubleUCB(within=0.0, jitter=0.0)
        >>> [int(policy.select(key, jnp.ones(2), family, z)) for policy in (within, between)]
        [0, 1]
    """

    between: float = 2.0
    within: float = 2.0
    jitter: float = 0.15
    needs_members: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(self)
        for name in ("between", "within"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}: use a finite number, 0 or more; 0 leaves it out.")
        if not 0 <= self.jitter <= 1:
            raise InputError(f"jitter is {self.jitter}, but optimism is not negative: use a number in [0, 1].")

    def begin(self, key: PRNGKeyArray, members: int, num_actions: int) -> Float[Array, " actions"]:
        del members
        return jax.random.uniform(key, (num_actions,), minval=1 - self.jitter, maxval=1 + self.jitter)

    def select(
        self, key: PRNGKeyArray, memory: Float[Array, " actions"], family: ReturnDistribution[Any], z: PyTree
    ) -> Int[Array, ""]:
        returns = spread(family, z)
        bonus = jnp.zeros(())  # with weight 0, even an infinite spread adds nothing
        for weight, each in ((self.between, returns.between), (self.within, returns.within)):
            bonus = bonus + weight * each if weight else bonus
        return highest(key, returns.mean + memory * bonus)
