"""The randomized Chain (appendix, Randomized Chain)."""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from uppertail.environments.base import StateBuilder
from uppertail.environments.finite import FiniteMDP
from uppertail.errors import InputError

LEAST = 1e-6  # least return of a success: with slips, the mean return may be almost 0


@dataclasses.dataclass(frozen=True)
class Chain(StateBuilder):
    """In each state one action goes on and the other ends the episode; reward 1 only past the last state.

    An agent of perfect memory, which tries no action of a state twice, fails once in half of the states: it first
    succeeds after length / 2 + 1 episodes on average.

    Args:
        length: number of states, at least 1.
        ordered: the right action is always action 1, instead of drawn at random for each state and seed.
        time_limit: steps after which an episode is truncated, at least the length; null: 200 as in the paper, or the
            length if that is more.
        slip: probability that the right action fails, which ends the episode, in [0, 1]; 0 in the paper.
        reward_std: standard deviation of the noise on every reward; 0 in the paper. With noise no return says whether
            the end was reached, so no episode counts as a success.

    Examples:
        >>> ut.Chain(length=100).floor_episodes
        51.0
    """

    length: int = 100
    ordered: bool = False
    time_limit: int | None = None
    slip: float = 0.0
    reward_std: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length < 1:
            raise InputError(f"length is {self.length}, but a Chain needs at least 1 state; the paper uses 10 to 100.")
        if self.time_limit is not None and self.time_limit < self.length:
            raise InputError(
                f"time_limit is {self.time_limit}, so the end of a Chain of length {self.length} is out of reach: "
                f"use at least {self.length}."
            )
        if not 0 <= self.slip <= 1:
            raise InputError(f"slip is {self.slip}, but a probability lies in [0, 1]; the paper uses 0.")
        if not 0 <= self.reward_std < math.inf:
            raise InputError(f"reward_std is {self.reward_std}: use a finite number, 0 or more; the paper uses 0.")

    @property
    def success_return(self) -> float:
        """The mean return of the best policy, which an episode's return (0 or 1) reaches exactly at the end."""
        return math.inf if self.reward_std else max((1 - self.slip) ** self.length, LEAST)

    @property
    def floor_episodes(self) -> float | None:
        return None if self.slip or self.reward_std else self.length / 2 + 1

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        right = jnp.where(self.ordered, 1, jax.random.bernoulli(key, 0.5, (self.length,)).astype(jnp.int32))
        goes_on = jnp.arange(2)[None, :] == right[:, None]
        state = jnp.arange(self.length)[:, None]
        last = state == self.length - 1
        earned, slips = (goes_on & last).astype(jnp.float32), jnp.where(goes_on, self.slip, 0.0)
        outcomes = [(jnp.where(goes_on & ~last, state + 1, state), earned, ~goes_on | last, 1.0 - slips)]
        if self.slip:
            stays = jnp.broadcast_to(state, slips.shape)
            outcomes.append((stays, jnp.zeros_like(earned), jnp.ones_like(goes_on), slips))
        next_state, reward, terminated, probability = (jnp.stack(each, axis=-1) for each in zip(*outcomes, strict=True))
        return FiniteMDP(
            next_state=next_state,
            reward=reward,
            terminated=terminated,
            probability=probability,
            time_limit=self.time_limit or max(200, self.length),
            reward_std=jnp.full_like(reward, self.reward_std) if self.reward_std else None,
        )
