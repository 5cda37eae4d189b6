"""Upper confidence bound on the return."""

import dataclasses
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.policies.base import Decision, ExplorationPolicy
from uppertail.schema import settle, traced
from uppertail.types import PyTree

Per = Literal["step", "episode"]  # the names of `UCB.per`


@dataclasses.dataclass(frozen=True)
class UCB(ExplorationPolicy):
    """mean + c_a * std, with c_a drawn uniformly for each action (Section 5 and Fig. 2).

    The paper draws c from [1.7, 2.3] for each decision. A constant c, the default, commits to one plan: where many
    steps have to go right, as on DeepSea, a drawn one changes its plan on the way (docs/decisions/0012).

    Args:
        low: lowest c, at least 0.
        high: highest c, at least `low`.
        per: how long a drawn c is kept: for one step, as in the paper, or for a whole episode.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.distributions.gaussian import GaussianReturn
        >>> z = GaussianReturn(mean=jnp.array([[1.0, 0.0]]), std=jnp.array([[0.0, 2.0]]))  # one member, two actions
        >>> decision = ut.Decision(ut.Gaussian(), z)
        >>> [int(ut.UCB(low=c, high=c).select(jax.random.key(0), decision)) for c in (0.1, 2.0)]
        [0, 1]
    """

    explores_by_spread: ClassVar[bool] = True
    low: float = traced(2.0)
    high: float = traced(2.0)
    per: Per = "step"

    def __post_init__(self) -> None:
        settle(self)
        if not 0 <= self.low <= self.high < float("inf"):
            raise InputError(f"UCB draws c from [low, high] = [{self.low}, {self.high}]: use 0 <= low <= high, finite.")

    @property
    def optimism(self) -> Float[Array, ""] | float:
        return (self.low + self.high) / 2

    def begin(self, key: PRNGKeyArray, decision: Decision) -> PyTree:
        return self._draw(key, decision) if self.per == "episode" else ()

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        c = decision.memory if self.per == "episode" else self._draw(key, decision)
        return jnp.mean(decision.mean + c[None] * decision.std, axis=0)

    def _draw(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return jax.random.uniform(key, (decision.num_actions,), minval=self.low, maxval=self.high)
