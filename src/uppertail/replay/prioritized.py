"""Prioritized replay: what is learned worst is replayed most."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.replay.base import Replay, RingBuffer, Sample, Uniform
from uppertail.schema import settle, traced
from uppertail.types import Transition

SMALLEST = 1e-6
"""Added to a loss, so that every transition stays possible."""


class PriorityBuffer(NamedTuple):
    """A ring buffer, the priority of each row (0: nothing there), and the highest priority so far.

    Priorities stand in a square table, so that one draw needs the sums of its lines and the entries of one of them.
    """

    ring: RingBuffer
    priorities: Float[Array, "side side"]
    highest: Float[Array, ""]

    def entries(self, rows: Int[Array, " count"]) -> tuple[Array, Array]:
        """Where the table of priorities holds these rows of the ring buffer."""
        return jnp.divmod(rows, self.priorities.shape[1])


@dataclasses.dataclass(frozen=True)
class Prioritized(Replay):
    """Prioritized experience replay (Schaul et al. 2016), proportional, with the size of the loss as the error.

    A transition is drawn with a probability proportional to abs(loss)^alpha; new ones have the highest priority so far.
    Losses are weighted by (number * probability)^-beta, divided by the largest weight of the draw. Prefer a
    loss that is 0 where nothing is left to learn, such as `--distribution.distance wasserstein`.

    Args:
        alpha: how much the loss counts, 0 (not at all) or more.
        beta: how far the weights undo the preference, from 0 (not at all) to 1 (fully).

    Examples:
        >>> ut.Prioritized(alpha=0.7)
        Prioritized(alpha=0.7, beta=0.4)
    """

    alpha: float = traced(0.6)
    beta: float = traced(0.4)

    def __post_init__(self) -> None:
        settle(self)
        if self.alpha < 0:
            raise InputError(f"alpha is {self.alpha}: use 0 or more; Schaul et al. use 0.6.")
        if not 0 <= self.beta <= 1:
            raise InputError(f"beta is {self.beta}: use a number in [0, 1]; Schaul et al. begin with 0.4.")

    def init(self, capacity: int, example: Transition) -> PriorityBuffer:
        side = math.isqrt(capacity - 1) + 1
        return PriorityBuffer(Uniform().init(capacity, example), jnp.zeros((side, side)), jnp.ones(()))

    def add(self, state: PriorityBuffer, transitions: Transition) -> PriorityBuffer:
        entries = state.entries(state.ring.following(transitions.action.shape[0]))
        priorities = state.priorities.at[entries].set(state.highest)
        return PriorityBuffer(Uniform().add(state.ring, transitions), priorities, state.highest)

    def sample(self, state: PriorityBuffer, key: PRNGKeyArray, count: int) -> Sample:
        table, stored = state.priorities, state.ring.stored
        total, by_line = jnp.sum(table), jnp.cumsum(jnp.sum(table, axis=1))

        def draw(key: PRNGKeyArray) -> Int[Array, ""]:
            line_key, entry_key = jax.random.split(key)
            line = _draw_entry(line_key, by_line)
            entry = _draw_entry(entry_key, jnp.cumsum(table[line]))
            return jnp.minimum(line * table.shape[1] + entry, stored - 1)

        rows = jax.vmap(draw)(jax.random.split(key, count))
        probability = table[state.entries(rows)] / total
        weights = (stored.astype(jnp.float32) * probability) ** -self.beta
        return state.ring.sample(rows, weights / jnp.max(weights))

    def update(
        self, state: PriorityBuffer, indices: Int[Array, " count"], losses: Float[Array, " count"]
    ) -> PriorityBuffer:
        new, is_replayed = (jnp.abs(losses) + SMALLEST) ** self.alpha, indices < state.ring.capacity
        entries = state.entries(jnp.where(is_replayed, indices, state.priorities.size))
        highest = jnp.maximum(state.highest, jnp.max(jnp.where(is_replayed, new, 0.0)))
        return PriorityBuffer(state.ring, state.priorities.at[entries].set(new, mode="drop"), highest)


def _draw_entry(key: PRNGKeyArray, sums: Float[Array, " entries"]) -> Int[Array, ""]:
    """An entry with a probability proportional to its own share of the running sums."""
    found = jnp.searchsorted(sums, jax.random.uniform(key) * sums[-1], side="right")
    return jnp.minimum(found, sums.shape[0] - 1).astype(jnp.int32)
