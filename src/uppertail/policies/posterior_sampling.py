"""Posterior sampling: the values of one draw from their posterior, for a whole episode."""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.policies.base import Decision, ExplorationPolicy, Posterior
from uppertail.schema import settle, traced


@dataclasses.dataclass(frozen=True)
class PosteriorSampling(ExplorationPolicy):
    """The highest value in one draw from the posterior of the values, kept for an episode (Osband et al. 2013, 2016).

    A state and action that were never seen have the start's mean + c * std. All others have the mean of their backed-up
    targets, plus a normal error as large as the standard error of that mean. Without noise this is UCB. With noise a
    draw is as often too low as too high, where an upper bound is always too high.

    Args:
        c: standard deviations above the mean at which the start is valued, 0 or more.
        scale: what the standard errors are multiplied by, 0 or more.
        draws: draws that the learner keeps, at least 1; an episode follows one of them, and they are renewed in turn.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.distributions.gaussian import GaussianReturn
        >>> z = GaussianReturn(mean=jnp.array([[1.0, 0.0]]), std=jnp.array([[0.0, 2.0]]))  # one member, two actions
        >>> drawn = jnp.array([[1.1, 0.3], [0.8, 0.9]])  # two draws
        >>> decision = ut.Decision(ut.Gaussian(), z, drawn=drawn, memory=jnp.array(1))  # the second is followed
        >>> int(ut.PosteriorSampling(draws=2).select(jax.random.key(0), decision))
        1
    """

    c: float = traced(2.0)
    scale: float = traced(1.0)
    draws: int = 4

    def __post_init__(self) -> None:
        settle(self)
        for name in ("c", "scale"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}: use a finite number, 0 or more.")
        if self.draws < 1:
            raise InputError(f"draws is {self.draws}: use a whole number, 1 or more.")

    @property
    def posterior(self) -> Posterior:
        return Posterior(self.draws, self.c, self.scale)

    def begin(self, key: PRNGKeyArray, decision: Decision) -> Int[Array, ""]:
        return jax.random.randint(key, (), 0, self.draws)

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return jnp.mean(decision.mean, axis=0) if decision.drawn is None else decision.drawn[decision.memory]
