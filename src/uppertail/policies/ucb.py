"""Upper confidence bound on the return."""

import dataclasses
from typing import Any, ClassVar

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.errors import InputError
from uppertail.policies.base import Memoryless
from uppertail.schema import settle
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class UCB(Memoryless):
    """mean + c_a * std, with c_a drawn uniformly for each action and decision (Section 5 and Fig. 2).

    The paper draws c from [1.7, 2.3]. A constant c, the default, commits to one plan: where many steps have to go
    right, as on DeepSea, the drawn one dithers (docs/decisions/0012).

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
        >>> [int(ut.UCB(low=c, high=c).select(key, (), family, z)) for c in (0.1, 2.0)]
        [0, 1]
    """

    explores_by_spread: ClassVar[bool] = True
    low: float = 2.0
    high: float = 2.0

    def __post_init__(self) -> None:
        settle(self)
        if not 0 <= self.low <= self.high < float("inf"):
            raise InputError(f"UCB draws c from [low, high] = [{self.low}, {self.high}]: use 0 <= low <= high, finite.")

    def scores(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: PyTree) -> Float[Array, " actions"]:
        mean, std = jax.vmap(family.mean)(z), jax.vmap(family.std)(z)
        c = jax.random.uniform(key, mean.shape, minval=self.low, maxval=self.high)
        return mean + c * std
