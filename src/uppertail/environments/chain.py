"""The randomized Chain (appendix, Randomized Chain)."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from uppertail.environments.base import SameSuccess, StateBuilder
from uppertail.environments.finite import FiniteMDP
from uppertail.errors import InputError

LEAST = 1e-6  # least return of a success: with slips, the mean return may be almost 0


@dataclasses.dataclass(frozen=True)
class Chain(StateBuilder):
    """In each state one action goes on and every other ends the episode; reward 1 only past the last state.

    An agent of perfect memory, which tries no action of a state twice, fails in each state between 0 and `actions` - 1
    times, all equally likely: it first succeeds after length * (actions - 1) / 2 + 1 episodes on average.

    Args:
        length: number of states, at least 1.
        ordered: the right action is always action 1, instead of drawn at random for each state and seed.
        time_limit: steps after which an episode is truncated, at least the length; null: 200 as in the paper, or the
            length if that is more.
        slip: probability that the right action fails, which ends the episode, in [0, 1]; 0 in the paper.
        actions: number of actions, one of which is right, at least 2; 2 in the paper.
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
    actions: int = 2
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
        if self.actions < 2:
            raise InputError(f"actions is {self.actions}, but a Chain needs at least 2: a right one and a wrong one.")
        if not 0 <= self.reward_std < math.inf:
            raise InputError(f"reward_std is {self.reward_std}: use a finite number, 0 or more; the paper uses 0.")

    @property
    def success_return(self) -> float:
        """The mean return of the best policy, which an episode's return (0 or 1) reaches exactly at the end."""
        return math.inf if self.reward_std else max((1 - self.slip) ** self.length, LEAST)

    @property
    def floor_episodes(self) -> float | None:
        return None if self.slip or self.reward_std else self.length * (self.actions - 1) / 2 + 1

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        goes_on = jnp.arange(self.actions)[None, :] == self._right(key)[:, None]
        state = jnp.arange(self.length)[:, None]
        last = state == self.length - 1
        next_state = jnp.where(goes_on & ~last, state + 1, state)[..., None]
        reward = (goes_on & last).astype(jnp.float32)[..., None]
        terminated = (~goes_on | last)[..., None]
        probability = jnp.ones((self.length, self.actions, 1))
        if self.slip:
            slips = jnp.where(goes_on, self.slip, 0.0)[..., None]
            next_state = jnp.concatenate([next_state, jnp.broadcast_to(state[..., None], slips.shape)], axis=-1)
            reward = jnp.concatenate([reward, jnp.zeros_like(reward)], axis=-1)
            terminated = jnp.concatenate([terminated, jnp.ones_like(terminated)], axis=-1)
            probability = jnp.concatenate([1 - slips, slips], axis=-1)
        return FiniteMDP(
            next_state=next_state,
            reward=reward,
            terminated=terminated,
            probability=probability,
            time_limit=self.time_limit or max(200, self.length),
            reward_std=jnp.full_like(reward, self.reward_std) if self.reward_std else None,
        )

    def _right(self, key: PRNGKeyArray) -> Int[Array, " length"]:
        """The right action of each state."""
        if self.actions == 2:
            drawn = jax.random.bernoulli(key, 0.5, (self.length,)).astype(jnp.int32)
        else:
            drawn = jax.random.randint(key, (self.length,), 0, self.actions)
        return jnp.where(self.ordered, 1, drawn)


@dataclasses.dataclass(frozen=True)
class TreasureChain(SameSuccess, StateBuilder):
    """A Chain whose wrong action pays a little in the first states: it ends the episode, but with a small reward.

    An agent that exploits the first reward it finds never leaves the start; the treasure of 1 is past the last state.
    An agent of perfect memory that tries every action once needs length / 2 + 1 episodes on average, as on the Chain.

    Args:
        length: number of states, at least 1.
        distractors: number of states, from the first on, in which the wrong action pays; from 0 to the length.
        small_reward: what it pays, above 0 and below the treasure's 1.
        ordered: the right action is always action 1, instead of drawn at random for each state and seed.
        time_limit: steps after which an episode is truncated, at least the length; null: 200, or the length if that
            is more.

    Examples:
        >>> table = ut.TreasureChain(length=4, distractors=2, small_reward=0.25).build(jax.random.key(0))
        >>> table.reward.max(axis=(1, 2)).tolist()  # the largest in each state
        [0.25, 0.25, 0.0, 1.0]
    """

    length: int = 100
    distractors: int = 5
    small_reward: float = 0.1
    ordered: bool = False
    time_limit: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.distractors <= self.length:
            raise InputError(
                f"distractors is {self.distractors}, but a Chain of length {self.length} has room for 0 to "
                f"{self.length}: use a number in this range."
            )
        if not 0 < self.small_reward < 1:
            raise InputError(
                f"small_reward is {self.small_reward}, but a distractor pays more than nothing and less than the "
                "treasure's 1: use a number between 0 and 1."
            )

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        chain = self.hidden.build(key)
        wrong = chain.terminated & (chain.reward == 0)
        tempting = wrong & (jnp.arange(self.length) < self.distractors)[:, None, None]
        return eqx.tree_at(lambda mdp: mdp.reward, chain, jnp.where(tempting, self.small_reward, chain.reward))

    @property
    def hidden(self) -> Chain:
        return Chain(self.length, self.ordered, self.time_limit)
