"""Fingerprints of (observation, action) pairs, two words of 32 bits each, and their places in a hash table."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

Fingerprint = UInt32[Array, "*batch 2"]

STRIDES = (0x9E3779B1, 0x85EBCA77)
"""Odd constants that make an observation's hash depend on the order of its numbers, one for each word."""

PROBES = 12
"""How many places of a table a pair may have. In a table that is a quarter full, a pair finds none free once in 10
million times."""


def fingerprints(observations: Array, actions: Int[Array, " batch"]) -> UInt32[Array, "batch 2"]:
    """The fingerprint of each pair.

    A single integer and the action are the two words themselves, so that pairs of a table never collide. Longer
    observations are hashed to 64 bits: among a million pairs the chance that any two collide is below 1 in 30 million.

    Args:
        observations: observations, with a leading axis.
        actions: the action taken in each.
    """
    words, action = _words(observations), actions.astype(jnp.uint32)
    if words.shape[1] == 1 and jnp.issubdtype(observations.dtype, jnp.integer):
        return jnp.stack([words[:, 0], action], axis=1)
    place = jnp.arange(1, words.shape[1] + 1, dtype=jnp.uint32)[None]
    hashed = [jnp.sum(mix(words + place * jnp.uint32(stride)), axis=1, dtype=jnp.uint32) for stride in STRIDES]
    return jnp.stack([mix(word + (action + 1) * jnp.uint32(STRIDES[0])) for word in hashed], axis=1)


def places_of(own: UInt32[Array, "batch 2"], places: int) -> Int[Array, "batch probes"]:
    """Where a table may hold each pair, the first choice first: double hashing.

    Args:
        own: the fingerprints.
        places: places of the table, a power of 2.
    """
    start = mix(own[:, 0] + mix(own[:, 1] + jnp.uint32(1)))
    stride = mix(start) | jnp.uint32(1)
    probes = start[:, None] + stride[:, None] * jnp.arange(PROBES, dtype=jnp.uint32)[None]
    return (probes & jnp.uint32(places - 1)).astype(jnp.int32)


def mix(word: UInt32[Array, "*batch"]) -> UInt32[Array, "*batch"]:
    """A word of which every bit depends on every bit of the given one (the end of MurmurHash3)."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x85EBCA6B)
    word = (word ^ (word >> 13)) * jnp.uint32(0xC2B2AE35)
    return word ^ (word >> 16)


def _words(observations: Array) -> UInt32[Array, "batch words"]:
    """The numbers of each observation, one word each; 0 and -0 are the same."""
    flat = observations.reshape(observations.shape[0], -1)
    if jnp.issubdtype(flat.dtype, jnp.floating):
        numbers = flat.astype(jnp.float32)
        return jax.lax.bitcast_convert_type(jnp.where(numbers == 0, jnp.float32(0), numbers), jnp.uint32)
    return flat.astype(jnp.uint32)
