"""Upper confidence bound on what is not known: the spread between members of the mean."""

import dataclasses
from typing import Any, ClassVar

import jax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.distributions.members import spread
from uppertail.errors import InputError
from uppertail.policies.base import ExplorationPolicy, highest
from uppertail.schema import settle
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class MemberUCB(ExplorationPolicy):
    """Mean over members + c_a * their spread, with c_a drawn uniformly for each action at the start of an episode.

    The spread is the standard deviation over members of their means, without the chance that each member predicts. A
    single member has no such spread: a' of replayed transitions, which each member chooses by itself, is greedy.

    Args:
        low: lowest c, at least 0.
        high: highest c, at least `low`.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> family, key = ut.Gaussian(), jax.random.key(0)
        >>> one, other = [[0.5, -9.0], [0.0, -9.0]], [[0.5, -9.0], [0.8, -9.0]]  # two members disagree about action 1
        >>> z = jax.vmap(jax.vmap(family.from_outputs))(jnp.array([one, other]))
        >>> policy = ut.MemberUCB(low=2.0, high=2.0)
        >>> int(policy.select(key, policy.begin(key, members=2, num_actions=2), family, z))
        1
    """

    low: float = 1.7
    high: float = 2.3
    needs_members: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(self)
        if not 0 <= self.low <= self.high < float("inf"):
            raise InputError(
                f"MemberUCB draws c from [low, high] = [{self.low}, {self.high}]: use 0 <= low <= high, finite."
            )

    def begin(self, key: PRNGKeyArray, members: int, num_actions: int) -> Float[Array, " actions"]:
        del members
        return jax.random.uniform(key, (num_actions,), minval=self.low, maxval=self.high)

    def select(
        self, key: PRNGKeyArray, memory: Float[Array, " actions"], family: ReturnDistribution[Any], z: PyTree
    ) -> Int[Array, ""]:
        returns = spread(family, z)
        return highest(key, returns.mean + memory * returns.between)
