"""The contract of a replay buffer, and the ring buffer.

Inside a compiled loop a buffer is updated in place only if nothing reads the old one afterwards: add before you sample,
and donate the buffer. tests/test_replay.py checks the compiled program for this.
"""

import abc
import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.errors import Explained
from uppertail.types import PyTree, Transition


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


class Replay(metaclass=Explained):
    """A frozen dataclass of settings; keeps transitions and draws some: pure functions of a state, a tree of arrays.

    Attributes:
        whole_episodes: whether it needs the transitions of one environment, in their order.

    Examples:
        >>> issubclass(ut.Uniform, ut.Replay)
        True
    """

    whole_episodes: ClassVar[bool] = False

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


def written(stored: PyTree, rows: Int[Array, " count"], new: PyTree) -> PyTree:
    """The stored arrays with new rows, in place.

    A single row is written twice: XLA turns one write into another operation, which it then puts wherever the result
    is needed, each time on a copy of the whole array.
    """
    if rows.shape[0] == 1:
        rows, new = jnp.tile(rows, 2), jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), new)
    return jax.tree.map(lambda old, leaf: old.at[rows].set(leaf), stored, new)


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
        return RingBuffer(written(state.transitions, rows, transitions), state.added + count)

    def sample(self, state: RingBuffer, key: PRNGKeyArray, count: int) -> Sample:
        return state.sample(jax.random.randint(key, (count,), 0, state.stored), jnp.ones(count))
