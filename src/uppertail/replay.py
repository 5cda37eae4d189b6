"""Replay buffers: which transitions are kept, and which of them are learned from.

Inside a compiled loop a buffer is updated in place only if nothing reads the old one afterwards: add before you sample,
and donate the buffer. tests/test_replay.py checks the compiled program for this.
"""

import abc
import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.schema import settle, traced
from uppertail.types import PyTree, Transition

SMALLEST = 1e-6
"""Added to a loss, so that every transition stays possible."""


class Sample(NamedTuple):
    """Transitions drawn from a buffer.

    Args:
        transitions: the transitions, with a leading axis.
        indices: where the buffer holds them, for `update`.
        weights: how much each counts in the loss; 1 unless the buffer prefers some transitions.

    Examples:
        >>> ut.Sample._fields
        ('transitions', 'indices', 'weights')
    """

    transitions: Transition
    indices: Int[Array, " count"]
    weights: Float[Array, " count"]


class Replay(abc.ABC):
    """A frozen dataclass of settings; keeps transitions and draws some: pure functions of a state, a tree of arrays.

    Examples:
        >>> issubclass(ut.Uniform, ut.Replay)
        True
    """

    @abc.abstractmethod
    def init(self, capacity: int, example: Transition) -> PyTree:
        """An empty buffer for `capacity` transitions of the shapes and types of an example."""

    @abc.abstractmethod
    def add(self, state: PyTree, transitions: Transition) -> PyTree:
        """The buffer with a batch of transitions (one leading axis, at most the capacity) in it."""

    @abc.abstractmethod
    def sample(self, state: PyTree, key: PRNGKeyArray, count: int) -> Sample:
        """`count` transitions with replacement, from a buffer that holds at least one."""

    def update(self, state: PyTree, indices: Int[Array, " count"], losses: Float[Array, " count"]) -> PyTree:
        """The buffer after transitions were learned from, by the loss of each; unchanged by default.

        Of the `indices` from `sample`, one beyond the last row is of a transition that was not replayed: ignore it.
        """
        del indices, losses
        return state


class RingBuffer(NamedTuple):
    """The last transitions, and how many were ever added."""

    transitions: Transition
    added: Int[Array, ""]

    @property
    def capacity(self) -> int:
        return self.transitions.action.shape[0]

    @property
    def stored(self) -> Int[Array, ""]:
        """How many rows hold a transition."""
        return jnp.minimum(self.added, self.capacity)

    def following(self, count: int) -> Int[Array, " count"]:
        """The rows of the next transitions."""
        return (self.added + jnp.arange(count)) % self.capacity

    def sample(self, rows: Int[Array, " count"], weights: Float[Array, " count"]) -> Sample:
        return Sample(jax.tree.map(lambda leaf: leaf[rows], self.transitions), rows, weights)


@dataclasses.dataclass(frozen=True)
class Uniform(Replay):
    """A ring buffer: the newest transitions overwrite the oldest, and every one is drawn with the same probability.

    Examples:
        >>> from uppertail.types import Transition
        >>> steps = Transition(*jnp.array([[0, 0, 1], [1, 1, 0], [0, 0, 0], [0, 0, 0], [1, 1, 2], [-1, -1, -1]]))
        >>> buffer = ut.Uniform().init(1000, jax.tree.map(lambda leaf: leaf[0], steps))
        >>> drawn = ut.Uniform().sample(ut.Uniform().add(buffer, steps), jax.random.key(0), 300).transitions
        >>> round(float(jnp.mean(drawn.observation == 0)), 1)  # two of three
        0.7
    """

    def init(self, capacity: int, example: Transition) -> RingBuffer:
        rows = jax.tree.map(lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype), example)
        return RingBuffer(rows, jnp.zeros((), jnp.int32))

    def add(self, state: RingBuffer, transitions: Transition) -> RingBuffer:
        rows = state.following(count := transitions.action.shape[0])
        stored = jax.tree.map(lambda old, new: old.at[rows].set(new), state.transitions, transitions)
        return RingBuffer(stored, state.added + count)

    def sample(self, state: RingBuffer, key: PRNGKeyArray, count: int) -> Sample:
        return state.sample(jax.random.randint(key, (count,), 0, state.stored), jnp.ones(count))


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
