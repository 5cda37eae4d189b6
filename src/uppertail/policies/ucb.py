"""Upper confidence bounds: on the spread of the return, and between members, too."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.distributions import spread
from uppertail.errors import InputError
from uppertail.policies.base import Decision, ExplorationPolicy
from uppertail.policies.episodic import CountsVisits
from uppertail.schema import settle, traced
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class UCB(CountsVisits):
    """mean + c_a * std / (1 + n)^power, with c_a drawn uniformly for each action (Section 5 and Fig. 2).

    The paper draws c from [1.7, 2.3] for each decision. A constant c, the default, commits to one plan: where many
    steps have to go right, as on DeepSea, a drawn one changes its plan on the way (docs/decisions/0012).

    n is the number of visits to (s, a) within the episode, with a power above 0. The spread is what is not known over
    the whole run. Where layouts change, a state may be well known from earlier episodes, but each new layout has to be
    explored again (Henaff et al. 2023, arXiv 2306.03236, with power 1/2). A backup belongs to no episode: n is 0 there.

    Args:
        low: lowest c, at least 0.
        high: highest c, at least `low`.
        power: how fast the spread counts less with the visits, at least 0. A visit counts only where an observation
            repeats exactly. null: 1 where a network learns from names, such as kinds of tiles, else 0.

    Examples:
        >>> from uppertail.distributions.gaussian import GaussianReturn
        >>> z = GaussianReturn(mean=jnp.array([[1.0, 0.0]]), std=jnp.array([[0.0, 2.0]]))  # one member, two actions
        >>> decision = ut.Decision(ut.Gaussian(), z)
        >>> [int(ut.UCB(low=c, high=c).select(jax.random.key(0), decision)) for c in (0.1, 2.0)]
        [0, 1]
        >>> policy, key = ut.UCB(1.6, 1.6, power=1.0), jax.random.key(0)  # 1 against 3.2 / (1 + n)
        >>> here = policy.begun(key, ut.Decision(ut.Gaussian(), z, observation=jnp.array(7)))
        >>> taken = []
        >>> for _ in range(4):
        ...     taken.append(int(policy.select(key, here)))
        ...     here = here.with_memory(policy.advance(key, here, jnp.array(taken[-1])))
        >>> taken
        [1, 1, 1, 0]
    """

    explores_by_spread: ClassVar[bool] = True
    low: float = traced(2.0)
    high: float = traced(2.0)
    power: float | None = None  # not traced: with 0 no memory is kept
    is_constant: bool = dataclasses.field(init=False, repr=False, default=False)  # then c is not drawn

    def __post_init__(self) -> None:
        settle(self)
        if not 0 <= self.low <= self.high:
            raise InputError(f"UCB draws c from [low, high] = [{self.low}, {self.high}]: use 0 <= low <= high.")
        if self.power is not None and self.power < 0:
            raise InputError(f"power is {self.power}: use 0 or more.")
        object.__setattr__(self, "is_constant", self.low == self.high)

    @property
    def optimism(self) -> Float[Array, ""] | float:
        return (self.low + self.high) / 2

    def begin(self, key: PRNGKeyArray, decision: Decision) -> PyTree:
        return super().begin(key, decision) if self.power else decision.memory

    def advance(self, key: PRNGKeyArray, decision: Decision, action: Int[Array, ""]) -> PyTree:
        return super().advance(key, decision, action) if self.power else decision.memory

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        c = jnp.full(decision.num_actions, self.low, jnp.float32)
        if not self.is_constant:
            c = jax.random.uniform(key, (decision.num_actions,), minval=self.low, maxval=self.high)
        c = c / (1.0 + self.visits(decision)) ** self.power if self.power else c
        return jnp.mean(decision.mean + c[None] * decision.std, axis=0)


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
            if getattr(self, name) < 0:
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
