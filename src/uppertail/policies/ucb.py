"""Upper confidence bound on the return."""

import dataclasses
from typing import Any

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.errors import InputError
from uppertail.policies.base import Memoryless


@dataclasses.dataclass(frozen=True)
class UCB(Memoryless):
    """mean + c_a * std, with c_a drawn uniformly for each action and decision (Section 5 and Fig. 2).

    Args:
        low: lowest c, at least 0.
        high: highest c, at least `low`.

    Examples:
        >>> import uppertail as ut
        >>> ut.UCB(low=2.0, high=2.0)
        UCB(low=2.0, high=2.0)
    """

    low: float = 1.7
    high: float = 2.3

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < float("inf"):
            raise InputError(f"UCB draws c from [low, high] = [{self.low}, {self.high}]: use 0 <= low <= high, finite.")

    def scores(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: Any) -> Float[Array, " actions"]:
        mean, std = jax.vmap(family.mean)(z), jax.vmap(family.std)(z)
        c = jax.random.uniform(key, mean.shape, minval=self.low, maxval=self.high)
        return mean + c * std
