"""The last transitions, all equally likely."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from uppertail.replay.base import Replay, Sample
from uppertail.types import Transition


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
        def empty(leaf: Array) -> Array:
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
