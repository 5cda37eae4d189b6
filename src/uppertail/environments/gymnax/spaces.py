"""What gymnax's spaces mean here: observations as arrays that a network can take, and discrete actions.

Spaces are told apart by the names of their classes, since packages that follow gymnax's form copied its spaces, too.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from uppertail.encodings import ObservationSpace, States
from uppertail.environments.boxes import image_of, numbers_of
from uppertail.errors import InputError

Path = tuple[Any, ...]
"""Where in an observation something is: keys of Dicts and indices of Tuples."""


class Reading(NamedTuple):
    """How the observations of a space are read: as one array, and the kind of that array."""

    array: Callable[[Any], Array]
    space: ObservationSpace


def reading(space: Any, images: bool = True) -> Reading:
    """How the observations of a space are read.

    Args:
        space: the observation space.
        images: whether a bounded Box of at least 8 x 8 is an image; else it is flat.

    Raises:
        InputError: they are of no kind that a network can take.
    """
    if _kind(space) == "Discrete":
        return Reading(lambda seen: jnp.asarray(seen, jnp.int32).reshape(()), States(int(space.n)))
    parts = list(_leaves(space))
    if odd := [part for _, part in parts if _kind(part) not in ("Box", "Discrete")]:
        raise InputError(
            f"Observations of the space {odd[0]} cannot become numbers: give the environment an observation_space of "
            "Discrete, Box, or a Dict or Tuple of these."
        )
    if images and _kind(space) == "Box" and (image := image_of(*_bounds(space))):
        kind, shape = jnp.uint8 if np.dtype(space.dtype) in (bool, np.uint8) else jnp.float32, tuple(space.shape)
        return Reading(lambda seen: jnp.asarray(seen, kind).reshape(shape), image)
    low, high = (np.concatenate([np.zeros(0), *(_bounds(part)[end].ravel() for _, part in parts)]) for end in (0, 1))
    if low.size == 0:
        raise InputError(f"Observations of the space {space} hold no numbers: give the environment some to show.")

    def flat(seen: Any) -> Array:
        return jnp.concatenate([_numbers(part, _at(seen, path)) for path, part in parts])

    return Reading(flat, numbers_of(low, high, any(map(_is_continuous, (part for _, part in parts)))))


def actions_of(space: Any) -> int:
    """The number of actions.

    Raises:
        InputError: they are not discrete.
    """
    if _kind(space) != "Discrete":
        kind = "continuous" if _kind(space) == "Box" else "composite"
        raise InputError(
            f"The action space {space} is {kind}, but UpperTail acts in Discrete ones: "
            "wrap the environment so that each action is one of a list."
        )
    return int(space.n)


def _kind(space: Any) -> str:
    return type(space).__name__


def _leaves(space: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The parts of a space that are neither Dict nor Tuple, and where they are."""
    if _kind(space) in ("Dict", "Tuple"):
        for name, part in space.spaces.items() if isinstance(space.spaces, Mapping) else enumerate(space.spaces):
            yield from _leaves(part, (*path, name))
    else:
        yield path, space


def _at(seen: Any, path: Path) -> Any:
    """The part of an observation that is there: an item, or an attribute of a structure."""
    for name in path:
        seen = seen[name] if isinstance(seen, Mapping | tuple | list) else getattr(seen, name)
    return seen


def _bounds(space: Any) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest numbers of one part, which is one-hot where it is Discrete."""
    low, high, shape = (0.0, 1.0, (space.n,)) if _kind(space) == "Discrete" else (space.low, space.high, space.shape)
    return tuple(np.broadcast_to(np.asarray(bound, np.float64), shape) for bound in (low, high))  # pyright: ignore[reportReturnType]


def _is_continuous(space: Any) -> bool:
    """Whether some numbers of one part are not just 0 or 1."""
    if _kind(space) == "Discrete":
        return False
    low, high = _bounds(space)
    return np.issubdtype(np.dtype(space.dtype), np.floating) or bool((low < 0).any() or (high > 1).any())


def _numbers(space: Any, seen: Any) -> Array:
    """One part of an observation as numbers of 32 bits; one of another size raises an error, which names both."""
    if _kind(space) == "Discrete":
        return jax.nn.one_hot(seen, space.n)
    return jnp.asarray(seen, jnp.float32).reshape(int(np.prod(space.shape)))
