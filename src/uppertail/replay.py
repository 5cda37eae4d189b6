"""A ring buffer of transitions, as pure functions.

Inside a compiled loop the buffer is updated in place only if nothing reads the old one afterwards: add before you
sample, and donate the buffer. tests/test_replay.py holds the compiled program to it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from uppertail.types import Transition


class Replay(NamedTuple):
    """The last `capacity` transitions, and how many were ever added."""

    transitions: Transition
    added: Int[Array, ""]


def init(capacity: int, example: Transition) -> Replay:
    """An empty buffer for transitions of the example's shapes and types."""
    storage = jax.tree.map(lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype), example)
    return Replay(storage, jnp.zeros((), jnp.int32))


def add(replay: Replay, batch: Transition) -> Replay:
    """The buffer with a batch (leading axis: at most the capacity) written over its oldest entries."""
    capacity, count = replay.transitions.action.shape[0], batch.action.shape[0]
    slots = (replay.added + jnp.arange(count)) % capacity
    storage = jax.tree.map(lambda stored, new: stored.at[slots].set(new), replay.transitions, batch)
    return Replay(storage, replay.added + count)


def sample(replay: Replay, key: PRNGKeyArray, count: int) -> Transition:
    """`count` transitions, uniformly with replacement, from a buffer that holds at least one."""
    capacity = replay.transitions.action.shape[0]
    rows = jax.random.randint(key, (count,), 0, jnp.minimum(replay.added, capacity))
    return jax.tree.map(lambda stored: stored[rows], replay.transitions)
