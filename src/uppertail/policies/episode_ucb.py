"""Upper confidence bounds whose optimism is drawn once for each episode."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.errors import InputError
from uppertail.policies.base import ExplorationPolicy, highest
from uppertail.schema import settle
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class EpisodeUCB(ExplorationPolicy):
    """mean + c_a * std, with c_a drawn uniformly for each action at the start of an episode and kept until its end.

    UCB (Section 5) draws c for every decision, so that an agent dithers where it should commit to a plan.

    Args:
        low: lowest c, at least 0.
        high: highest c, at least `low`.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> family, key = ut.Gaussian(), jax.random.key(0)
        >>> outputs = jnp.array([[[1.0, -9.0], [0.0, 1.0]]])  # 1 for sure; 0 on average, widely spread
        >>> z = jax.vmap(jax.vmap(family.from_outputs))(outputs)
        >>> policy = ut.EpisodeUCB(low=1.0, high=2.0)
        >>> c = policy.begin(key, members=1, num_actions=2)  # for a whole episode
        >>> bool(((c >= 1) & (c <= 2)).all()), int(policy.select(key, c, family, z))
        (True, 1)
    """

    explores_by_spread: ClassVar[bool] = True
    low: float = 1.7
    high: float = 2.3

    def __post_init__(self) -> None:
        settle(self)
        if not 0 <= self.low <= self.high < float("inf"):
            raise InputError(
                f"EpisodeUCB draws c from [low, high] = [{self.low}, {self.high}]: use 0 <= low <= high, finite."
            )

    def begin(self, key: PRNGKeyArray, members: int, num_actions: int) -> Float[Array, " actions"]:
        del members
        return jax.random.uniform(key, (num_actions,), minval=self.low, maxval=self.high)

    def select(
        self, key: PRNGKeyArray, memory: Float[Array, " actions"], family: ReturnDistribution[Any], z: PyTree
    ) -> Int[Array, ""]:
        mean, std = (jax.vmap(jax.vmap(moment))(z) for moment in (family.mean, family.std))
        return highest(key, jnp.mean(mean + memory[None] * std, axis=0))
