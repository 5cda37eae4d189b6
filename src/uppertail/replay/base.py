"""The contract of a replay buffer.

Inside a compiled loop a buffer is updated in place only if nothing reads the old one afterwards: add before you sample,
and donate the buffer. tests/test_replay.py checks the compiled program for this.
"""

import abc
from typing import NamedTuple

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
        """The buffer after transitions were learned from; as it was by default.

        Args:
            state: the buffer.
            indices: from `sample`. One beyond the last row stands for a transition that was not replayed: ignore it.
            losses: the loss of each.
        """
        del indices, losses
        return state
