"""How observations in gymnax's form are read: as arrays that a network can take."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from uppertail.encodings import States
from uppertail.environments.spaces import Reading, at, image_of, is_a, leaves, numbers_of
from uppertail.errors import InputError


def reading(space: Any, images: bool = True) -> Reading:
    """How the observations of a space are read.

    Args:
        space: the observation space.
        images: whether a bounded Box of at least 8 x 8 is an image; else it is flat.

    Raises:
        InputError: they are of no kind that a network can take.
    """
    if is_a(space, "Discrete"):
        return Reading(lambda seen: jnp.asarray(seen, jnp.int32).reshape(()), States(int(space.n)))
    parts = list(leaves(space))
    if odd := [part for _, part in parts if not is_a(part, "Box", "Discrete")]:
        raise InputError(
            f"Observations of the space {odd[0]} cannot become numbers: give the environment an observation_space of "
            "Discrete, Box, or a Dict or Tuple of these."
        )
    if images and is_a(space, "Box") and (image := image_of(*_bounds(space))):
        kind, shape = jnp.uint8 if np.dtype(space.dtype) in (bool, np.uint8) else jnp.float32, tuple(space.shape)
        return Reading(lambda seen: jnp.asarray(seen, kind).reshape(shape), image)
    return Reading(
        lambda seen: jnp.concatenate([_numbers(part, at(seen, path)) for path, part in parts]),
        numbers_of(space, [_bounds(part) for _, part in parts], any(_is_continuous(part) for _, part in parts)),
    )


def _bounds(space: Any) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest numbers of one part, which is one-hot where it is Discrete."""
    low, high, shape = (0.0, 1.0, (space.n,)) if is_a(space, "Discrete") else (space.low, space.high, space.shape)
    return tuple(np.broadcast_to(np.asarray(bound, np.float64), shape) for bound in (low, high))  # pyright: ignore[reportReturnType]


def _is_continuous(space: Any) -> bool:
    """Whether some numbers of one part are not just 0 or 1."""
    if is_a(space, "Discrete"):
        return False
    low, high = _bounds(space)
    return np.issubdtype(np.dtype(space.dtype), np.floating) or bool((low < 0).any() or (high > 1).any())


def _numbers(space: Any, seen: Any) -> Array:
    """One part of an observation as numbers of 32 bits; one of another size raises an error, which names both."""
    if is_a(space, "Discrete"):
        return jax.nn.one_hot(seen, space.n)
    return jnp.asarray(seen, jnp.float32).reshape(int(np.prod(space.shape)))
