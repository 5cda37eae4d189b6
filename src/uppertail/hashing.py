"""A hash of an observation's numbers, in compiled programs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32


def hash_of_numbers(observation: Array) -> UInt32[Array, ""]:
    """A hash of 32 bits, each of which depends on all numbers; 0.0 and -0.0 are the same."""
    numbers = jnp.ravel(observation)
    wide = numbers.astype(jnp.float32 if jnp.issubdtype(numbers.dtype, jnp.floating) else jnp.int32)
    bits = jax.lax.bitcast_convert_type(jnp.where(wide == 0, 0, wide), jnp.uint32)
    odd = odd_numbers(bits.shape[0])
    return mixed(jnp.sum(mixed(bits ^ odd[0]) * odd[1], dtype=jnp.uint32))


def odd_numbers(count: int) -> UInt32[np.ndarray, "2 count"]:
    """What tells the places of numbers apart."""
    return np.random.default_rng(0).integers(2**31, size=(2, count), dtype=np.uint32) * 2 + 1


def mixed(bits: Any) -> Any:
    """32 bits of which each depends on all before (the end of MurmurHash3), of arrays of JAX or in an exported file."""
    bits = (bits ^ bits >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    bits = (bits ^ bits >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return bits ^ bits >> np.uint32(16)
