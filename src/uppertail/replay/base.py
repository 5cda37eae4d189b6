"""The contract of a replay buffer, and the plainest one.

Inside a compiled loop a buffer is updated in place only if nothing reads the old one afterwards: add before you sample,
and donate the buffer. tests/test_replay.py checks the compiled program for this.
"""

import abc
import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.types import PyTree, Transition


class Sample(NamedTuple):
    """Transitions drawn from a buffer.

    Args:
        transitions: the transitions, with a leading axis.
        indices: where the buffer holds them, for `update`.
        weights: how much each counts in the loss; 1 unless the buffer prefers some transitions.

    Examples:
        >>> import uppertail as ut
        >>> ut.Sample._fields
        ('transitions', 'indices', 'weights')
    """

    transitions: Transition
    indices: Int[Array, " count"]
    weights: Float[Array, " count"]


class Replay(abc.ABC):
    """Keeps transitions and draws some of them: pure functions of an explicit state, a tree of arrays.

    A replay is a frozen dataclass of settings.

    Examples:
        >>> import uppertail as ut
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
        """The buffer after transitions were learned from; unchanged by default.

        Args:
            state: the buffer.
            indices: from `sample`. One beyond the last row stands for a transition that was not replayed: ignore it.
            losses: the loss of each.
        """
        del indices, losses
        return state


class RingBuffer(NamedTuple):
    """The last `capacity` transitions, and how many were ever added."""

    transitions: Transition
    added: Int[Array, ""]

    @property
    def capacity(self) -> int:
        """How many transitions there is room for."""
        return self.transitions.action.shape[0]

    def rows(self, rows: Int[Array, " count"]) -> Transition:
        """The transitions in these rows."""
        return jax.tree.map(lambda leaf: leaf[rows], self.transitions)


@dataclasses.dataclass(frozen=True)
class Uniform(Replay):
    """A ring buffer: the newest transitions overwrite the oldest, and every one is drawn with the same probability.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.types import Transition
        >>> steps = Transition(*jnp.array([[0, 0, 1], [1, 1, 0], [0, 0, 0], [0, 0, 0], [1, 1, 2], [-1, -1, -1]]))
        >>> first = jax.tree.map(lambda leaf: leaf[0], steps)
        >>> replay = ut.Uniform()
        >>> buffer = replay.add(replay.init(1000, first), steps)
        >>> drawn = replay.sample(buffer, jax.random.key(0), 300).transitions
        >>> round(float(jnp.mean(drawn.observation == 0)), 1)  # two of three
        0.7
    """

    def init(self, capacity: int, example: Transition) -> RingBuffer:
        def empty(leaf: ArrayLike) -> Array:
            return jnp.zeros((capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype)

        return RingBuffer(jax.tree.map(empty, example), jnp.zeros((), jnp.int32))

    def add(self, state: RingBuffer, transitions: Transition) -> RingBuffer:
        count = transitions.action.shape[0]
        slots = (state.added + jnp.arange(count)) % state.capacity
        stored = jax.tree.map(lambda old, new: old.at[slots].set(new), state.transitions, transitions)
        return RingBuffer(stored, state.added + count)

    def sample(self, state: RingBuffer, key: PRNGKeyArray, count: int) -> Sample:
        rows = jax.random.randint(key, (count,), 0, jnp.minimum(state.added, state.capacity))
        return Sample(state.rows(rows), rows, jnp.ones(count))
