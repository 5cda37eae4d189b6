"""Policies that draw: from the return, a member of the network, or from the posterior of the values."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.policies.base import Decision, ExplorationPolicy, Posterior
from uppertail.schema import settle, traced

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
        if not 1 <= self.draws <= MOST_DRAWS:
            raise InputError(f"draws is {self.draws}: use a whole number from 1 to {MOST_DRAWS}; the paper uses 1.")

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
        if self.within < 0:
            raise InputError(f"within is {self.within}: use a finite number, 0 or more; 0 leaves the spread out.")
        if self.draws and self.within:
            raise InputError(
                f"draws is {self.draws} and within is {self.within}, but draws contain the spread: set one to 0."
            )

    def begin(self, key: PRNGKeyArray, decision: Decision) -> Int[Array, ""]:
        return jax.random.randint(key, (), 0, decision.num_members)

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        member = decision.memory
        if self.draws:
            return jnp.max(decision.draws(key, self.draws)[:, member], axis=0)
        mean = decision.mean[member]
        return mean + self.within * decision.std[member] if self.within else mean


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
            if getattr(self, name) < 0:
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
