"""The randomized Chain (appendix, Randomized Chain)."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from uppertail.encodings import StateEncoding, state_encoding
from uppertail.environments.base import EnvironmentBuilder
from uppertail.environments.finite import FiniteMDP
from uppertail.errors import InputError, require_truth_values


@dataclasses.dataclass(frozen=True)
class Chain(EnvironmentBuilder):
    """In each state one action of two goes on and the other ends the episode; reward 1 only past the last state.

    A memory-perfect agent first succeeds after 1 + Binomial(length, 1/2) episodes, length / 2 + 1 on average.

    Args:
        length: number of states, at least 1.
        ordered: the right action is always action 1, instead of drawn at random for each state and seed.
        encoding: how a state enters the network.
        time_limit: steps after which an episode is truncated, at least the length; null: 200 as in the paper, or the
            length where that is more.
    """

    length: int = 100
    ordered: bool = False
    encoding: StateEncoding = "one_hot"
    time_limit: int | None = None

    def __post_init__(self) -> None:
        require_truth_values(self)
        if self.length < 1:
            raise InputError(f"length is {self.length}, but a Chain needs at least 1 state; the paper uses 10 to 100.")
        if self.time_limit is not None and self.time_limit < self.length:
            raise InputError(
                f"time_limit is {self.time_limit}, so the end of a Chain of length {self.length} is out of reach: "
                f"use at least {self.length}."
            )

    @property
    def success_return(self) -> float:
        return 1.0

    @property
    def floor_episodes(self) -> float:
        return self.length / 2 + 1

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        drawn = jax.random.bernoulli(key, 0.5, (self.length,))
        correct_action = jnp.where(self.ordered, True, drawn).astype(jnp.int32)
        goes_on = jnp.arange(2)[None, :] == correct_action[:, None]
        state = jnp.arange(self.length)[:, None]
        last = state == self.length - 1
        return FiniteMDP(
            next_state=jnp.where(goes_on & ~last, state + 1, state)[..., None],
            reward=(goes_on & last).astype(jnp.float32)[..., None],
            terminated=(~goes_on | last)[..., None],
            probability=jnp.ones((self.length, 2, 1)),
            start_state=jnp.zeros(1, jnp.int32),
            start_probability=jnp.ones(1),
            time_limit=self.time_limit or max(200, self.length),
            encoding=state_encoding(self.encoding, self.length),
        )
