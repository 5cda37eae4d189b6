"""The contract of a replay buffer.

Inside a compiled loop a buffer is updated in place only if nothing reads the old one afterwards: add before you sample,
and donate the buffer. tests/test_replay.py checks the compiled program for this.
"""

import abc
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.types import PyTree, Transition


class Sample(NamedTuple):
    """Transitions drawn from a buffer.

    Args:
        transitions: the transitions, with a leading axis.
        indices: where the buffer holds them, for `update`.
        weights: how much each counts in the loss; 1 unless the buffer prefers some transitions.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.types import Transition
        >>> steps = Transition(*jnp.array([[0, 0, 1], [1, 1, 0], [0, 0, 0], [0, 0, 0], [1, 1, 2], [-1, -1, -1]]))
        >>> first = jax.tree.map(lambda leaf: leaf[0], steps)
        >>> replay = ut.Uniform()
        >>> sample = replay.sample(replay.add(replay.init(1000, first), steps), jax.random.key(0), 4)
        >>> sample.transitions.action.shape, sample.indices.shape, sample.weights.shape
        ((4,), (4,), (4,))
    """

    transitions: Transition
    indices: Int[Array, " count"]
    weights: Float[Array, " count"]


class Replay(abc.ABC):
    """Keeps transitions and draws some of them: pure functions of an explicit state, a tree of arrays.

    A replay is a frozen dataclass of settings.

    Examples:
        >>> import dataclasses
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.types import Transition
        >>> steps = Transition(*jnp.array([[0, 0, 1], [1, 1, 0], [0, 0, 0], [0, 0, 0], [1, 1, 2], [-1, -1, -1]]))
        >>> first = jax.tree.map(lambda leaf: leaf[0], steps)
        >>> @dataclasses.dataclass(frozen=True)
        ... class Last(ut.Replay):
        ...     '''The newest transition alone.'''
        ...
        ...     def init(self, capacity, example):
        ...         return example
        ...
        ...     def add(self, state, transitions):
        ...         return jax.tree.map(lambda leaf: leaf[-1], transitions)
        ...
        ...     def sample(self, state, key, count):
        ...         every = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), state)
        ...         return ut.Sample(every, jnp.zeros(count, int), jnp.ones(count))
        >>> replay = Last()
        >>> buffer = replay.add(replay.init(1000, first), steps)
        >>> replay.sample(buffer, jax.random.key(0), 2).transitions.observation.tolist()
        [1, 1]
    """

    @abc.abstractmethod
    def init(self, capacity: int, example: Transition) -> PyTree:
        """An empty buffer.

        Args:
            capacity: how many transitions it holds.
            example: a transition of the shapes and types that it will hold.
        """

    @abc.abstractmethod
    def add(self, state: PyTree, transitions: Transition) -> PyTree:
        """The buffer with a batch of transitions (one leading axis, at most the capacity) in it."""

    @abc.abstractmethod
    def sample(self, state: PyTree, key: PRNGKeyArray, count: int) -> Sample:
        """`count` transitions with replacement, from a buffer that holds at least one."""

    def update(self, state: PyTree, indices: Int[Array, " count"], losses: Float[Array, " count"]) -> PyTree:
        """The buffer after these of its transitions were learned from with these losses; as it was by default.

        Args:
            state: the buffer.
            indices: from `sample`. One beyond the last row stands for a transition that was not replayed; it is
                ignored.
            losses: the loss of each.
        """
        del indices, losses
        return state


def storage(capacity: int, example: Transition) -> Transition:
    """Empty arrays for this many transitions of the example's shapes and types."""
    return jax.tree.map(lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype), example)


def rows_of(stored: Transition, rows: Int[Array, " count"]) -> Transition:
    """The transitions in these rows."""
    return jax.tree.map(lambda leaf: leaf[rows], stored)
