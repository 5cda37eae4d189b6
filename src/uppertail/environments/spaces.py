"""Observation and action spaces of Gymnasium, gymnax and packages that follow them, and what they mean here.

Spaces are told apart by the names of their classes, since packages that follow gymnax's form copied its spaces.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from uppertail.encodings import Numbers, ObservationSpace, Pixels
from uppertail.errors import InputError

UNBOUNDED = 1e10
"""A declared bound of this size or more counts as none."""

IMAGE_SIDE = 8
"""An array of numbers with two or three axes is an image if it has as many rows and columns."""

Path = tuple[Any, ...]
"""Where in an observation something is: keys of Dicts and indices of Tuples."""


class Reading(NamedTuple):
    """How the observations of a space are read: as one array, which is a copy, and the kind of that array.

    `shape` is that of an observation before it is read; None: it is no array, or it is hashed. `first` is the number of
    the first integer state.
    """

    array: Callable[[Any], Any]
    space: ObservationSpace
    shape: tuple[int, ...] | None = None
    first: int = 0


def is_a(space: Any, *kinds: str) -> bool:
    """Whether the class of a space, or one that it inherits from, has one of these names."""
    return any(each.__name__ in kinds for each in type(space).__mro__)


def leaves(space: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The parts of a space that are neither Dict nor Tuple, and where they are."""
    if is_a(space, "Dict", "Tuple"):
        for name, part in space.spaces.items() if isinstance(space.spaces, Mapping) else enumerate(space.spaces):
            yield from leaves(part, (*path, name))
    else:
        yield path, space


def at(observation: Any, path: Path) -> Any:
    """The part of an observation that is there: an item, or an attribute of a structure."""
    for name in path:
        is_item = isinstance(observation, Mapping) or not isinstance(name, str)
        observation = observation[name] if is_item else getattr(observation, name)
    return observation


def require_discrete(space: Any) -> None:
    """Refuses actions that are not one of a list.

    Raises:
        InputError: they are not.
    """
    if not is_a(space, "Discrete"):
        kind = "continuous" if is_a(space, "Box") else "composite"
        raise InputError(
            f"The action space {space} is {kind}, but UpperTail acts in Discrete ones: "
            "wrap the environment so that each action is one of a list."
        )


def image_of(low: Float[np.ndarray, "..."], high: Float[np.ndarray, "..."]) -> Pixels | None:
    """A bounded array as an image: two axes, or three of which the last or the first is that of channels.

    Args:
        low: the lower bound of each number; it has the array's shape.
        high: the upper bound of each number.
    """
    if low.ndim not in (2, 3) or not np.isfinite(low).all() or not np.isfinite(high).all():
        return None
    shape = low.shape if low.ndim == 3 else (*low.shape, 1)
    first = low.ndim == 3 and shape[0] < min(shape[1:])
    channels, height, width = shape if first else (shape[2], shape[0], shape[1])
    if min(height, width) < IMAGE_SIDE:
        return None
    peak = float(max(np.abs(low).max(), np.abs(high).max())) or 1.0
    return Pixels(int(height), int(width), int(channels), first, peak)


def numbers_of(space: Any, bounds: list[tuple[np.ndarray, np.ndarray]], continuous: bool) -> Numbers:
    """A vector of the numbers of a space, with those of its declared bounds that are bounds.

    Args:
        space: the space, for messages.
        bounds: the lower and the upper bounds of each of its parts.
        continuous: whether some of the numbers are not just 0 or 1.

    Raises:
        InputError: there are none.
    """
    low, high = (np.concatenate([np.zeros(0), *(each[end].ravel() for each in bounds)]) for end in (0, 1))
    if low.size == 0:
        raise InputError(f"Observations of the space {space} hold no numbers: wrap the environment so that they do.")
    bounded = (np.abs(low) < UNBOUNDED) & (np.abs(high) < UNBOUNDED)
    low, high = np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)
    return Numbers(tuple(low.tolist()), tuple(high.tolist()), continuous)
