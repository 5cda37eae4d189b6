"""A table of (observation, action) pairs: what each has led to, and a distribution for it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt8, UInt32

from uppertail.replay.fingerprints import fingerprints, mixed, places_of
from uppertail.types import PyTree, Transition

FREE, ALWAYS, DIFFERS = range(3)
"""What is known of a place: no pair there, one that has always led to the same, one that has not."""


class PairTable(NamedTuple):
    """Pairs by their fingerprints.

    Args:
        known: the fingerprint of the pair in each place.
        outcome: the fingerprint of what the pair led to, the last time.
        status: FREE, ALWAYS or DIFFERS.
        z: the parameters of its return distribution by each member, leading axes [places, members].
    """

    known: UInt32[Array, "places 2"]
    outcome: UInt32[Array, "places 2"]
    status: UInt8[Array, " places"]
    z: PyTree


def empty(pairs: int, members: int, z: PyTree) -> PairTable:
    """A table that is at most a quarter full with so many pairs; `z` is a distribution of the family."""
    places = 1 << (4 * pairs - 1).bit_length()
    room = jax.tree.map(lambda leaf: jnp.zeros((places, members, *leaf.shape), leaf.dtype), z)
    words = jnp.zeros((places, 2), jnp.uint32)
    return PairTable(words, jnp.copy(words), jnp.full(places, FREE, jnp.uint8), room)


def found(
    table: PairTable, observations: Array, actions: Int[Array, " batch"]
) -> tuple[Int[Array, " batch"], Bool[Array, " batch"]]:
    """Where each pair stands, and whether it does; for one that does not, the place to put it.

    That is the first of its places that is free; where none is, another pair loses its first one.
    """
    own = fingerprints(observations, actions)
    places = places_of(own, table.status.shape[0])
    status = table.status[places]
    here = (status != FREE) & jnp.all(table.known[places] == own[:, None], axis=-1)
    listed = jnp.any(here, axis=1)
    chosen = jnp.where(listed, jnp.argmax(here, axis=1), jnp.argmax(status == FREE, axis=1))  # none: the first
    return jnp.take_along_axis(places, chosen[:, None], axis=1)[:, 0], listed


def entered(table: PairTable, transition: Transition, z: PyTree) -> PairTable:
    """The table with one transition's pair, what it led to, and its distribution [members] in it."""
    observation, action = transition.observation[None], transition.action[None]
    place, listed = (each[0] for each in found(table, observation, action))
    outcome = _outcome(transition)
    differs = (table.status[place] == DIFFERS) | jnp.any(table.outcome[place] != outcome)
    return PairTable(
        table.known.at[place].set(fingerprints(observation, action)[0]),
        table.outcome.at[place].set(outcome),
        table.status.at[place].set(jnp.where(listed & differs, DIFFERS, ALWAYS).astype(jnp.uint8)),
        jax.tree.map(lambda old, new: old.at[place].set(new), table.z, z),
    )


def _outcome(transition: Transition) -> UInt32[Array, "2"]:
    """The fingerprint of what followed: the next observation, the reward, whether it ended there."""
    after = fingerprints(transition.next_observation[None], transition.terminated[None].astype(jnp.int32))[0]
    reward = jax.lax.bitcast_convert_type(transition.reward.astype(jnp.float32) + jnp.float32(0), jnp.uint32)
    return after ^ mixed(reward)
