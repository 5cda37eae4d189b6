"""A hash table of (observation, action) pairs: the outcome of each pair, and a distribution for it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt8, UInt32

from uppertail.replay.fingerprints import fingerprints, mix, places_of
from uppertail.types import PyTree, Transition

FREE, ALWAYS, DIFFERS = range(3)
"""The status of a place: no pair, a pair that has always led to the same outcome, one that has not."""


class PairTable(NamedTuple):
    """Pairs by their fingerprints.

    Args:
        known: the fingerprint of the pair in each place.
        outcome: the fingerprint of the pair's last outcome.
        status: FREE, ALWAYS or DIFFERS.
        z: the parameters of its return distribution by each member, leading axes [places, members].
    """

    known: UInt32[Array, "places 2"]
    outcome: UInt32[Array, "places 2"]
    status: UInt8[Array, " places"]
    z: PyTree


def empty(pairs: int, members: int, z: PyTree) -> PairTable:
    """A table that is at most a quarter full with this many pairs; `z` is a distribution of the family."""
    places = 1 << (4 * pairs - 1).bit_length()
    room = jax.tree.map(lambda leaf: jnp.zeros((places, members, *leaf.shape), leaf.dtype), z)
    words = jnp.zeros((places, 2), jnp.uint32)
    return PairTable(words, jnp.copy(words), jnp.full(places, FREE, jnp.uint8), room)


def find(
    table: PairTable, observations: Array, actions: Int[Array, " batch"]
) -> tuple[Int[Array, " batch"], Bool[Array, " batch"]]:
    """Finds the place of each pair, and whether the pair is there.

    For a pair that is not there, it is the place to put it: the first free one of its places; if none is free, its
    first, which another pair then loses.
    """
    own = fingerprints(observations, actions)
    places = places_of(own, table.status.shape[0])
    status = table.status[places]
    here = (status != FREE) & jnp.all(table.known[places] == own[:, None], axis=-1)
    stands = jnp.any(here, axis=1)
    chosen = jnp.where(stands, jnp.argmax(here, axis=1), jnp.argmax(status == FREE, axis=1))  # none free: first
    return jnp.take_along_axis(places, chosen[:, None], axis=1)[:, 0], stands


def enter(table: PairTable, transitions: Transition, z: PyTree) -> tuple[PairTable, Int[Array, " batch"]]:
    """Enters the pairs of a batch, new ones with these distributions; returns the table and the place of each pair.

    Two new pairs may want one place: one gets it, and the other has none (a place beyond the last) until it is seen
    again. Each array is read before it is written, and the new values depend on the values read: otherwise the
    compiled program would copy the table.
    """
    own, outcome = fingerprints(transitions.observation, transitions.action), _outcomes(transitions)
    places, stands = find(table, transitions.observation, transitions.action)
    same = jnp.all(own[:, None] == own[None], axis=-1)
    differs_in_batch = jnp.any(same & jnp.any(outcome[:, None] != outcome[None], axis=-1), axis=1)
    differs_from_last = stands & jnp.any(table.outcome[places] != outcome, axis=-1)
    differs = differs_in_batch | jnp.any(same & differs_from_last[None], axis=1)
    differs |= stands & (table.status[places] == DIFFERS)

    known = table.known.at[places].set(own)
    beyond = table.status.shape[0]
    has = jnp.where(jnp.all(known[places] == own, axis=-1), places, beyond)
    to_tell = jnp.where(stands & ~differs_from_last, beyond, places)
    status = jnp.where(differs, DIFFERS, ALWAYS).astype(jnp.uint8)
    return PairTable(
        known,
        table.outcome.at[to_tell].set(outcome, mode="drop"),
        table.status.at[has].set(status, mode="drop"),
        write_places(table.z, jnp.where(stands, beyond, has), z),
    ), has


def write_places(stored: PyTree, places: Int[Array, "*batch"], z: PyTree) -> PyTree:
    """Writes these distributions [*batch, members] to these places of a table; those beyond the last are dropped."""
    return jax.tree.map(lambda old, new: old.at[places].set(new, mode="drop"), stored, z)


def _outcomes(transitions: Transition) -> UInt32[Array, "batch 2"]:
    """The fingerprints of outcomes: the next observation, the reward, and whether the episode terminated there."""
    after = fingerprints(transitions.next_observation, transitions.terminated.astype(jnp.int32))
    reward = jax.lax.bitcast_convert_type(transitions.reward.astype(jnp.float32) + jnp.float32(0), jnp.uint32)
    return after ^ mix(reward)[:, None]
