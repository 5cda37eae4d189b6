"""What Gymnasium's spaces mean here: observations as arrays that a network can take, and discrete actions."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from uppertail.encodings import HashedStates, Numbers, ObservationSpace, Pixels, States
from uppertail.environments.gymnasium.hashing import number
from uppertail.environments.gymnasium.texts import Path, texts_of, without_texts
from uppertail.errors import InputError

UNBOUNDED = 1e10
"""A declared bound of this size or more counts as none."""

IMAGE_SIDE = 8
"""An array of numbers with two or three axes is an image if it has as many rows and columns."""


class Reading(NamedTuple):
    """How the observations of a space are read: as an array, which is a copy, and the kind of that array."""

    array: Callable[[Any], np.ndarray]
    space: ObservationSpace


def reading(space: spaces.Space[Any], left_out: frozenset[Path] = frozenset()) -> Reading:
    """How the observations of a space are read.

    Args:
        space: the observation space of one environment.
        left_out: paths of texts that never change.

    Raises:
        InputError: they are of no kind that a network can take.
    """
    if any(True for _ in texts_of(space)):
        plain, strip = without_texts(space, left_out)
        inner = reading(plain)
        return Reading(lambda observation: inner.array(strip(observation)), inner.space)
    if isinstance(space, spaces.Discrete):
        return Reading(functools.partial(_state, space), States(int(space.n)))
    if isinstance(space, spaces.Box) and (image := _image(space)):
        kind, shape = np.uint8 if space.dtype == np.uint8 else np.float32, space.shape
        return Reading(lambda observation: np.array(observation, kind).reshape(shape), image)
    try:
        flat = spaces.flatten_space(space)
    except (NotImplementedError, ValueError):  # a space that cannot be flattened, one without any parts
        flat = None
    if not isinstance(flat, spaces.Box):
        raise InputError(
            f"Observations of the space {space} cannot be flattened to numbers: wrap the environment so that they are "
            "Discrete, Box, MultiDiscrete, MultiBinary, Text, or a Dict or Tuple of these, or set encoding to hashed."
        )
    size = flat.shape[0]
    if size == 0:
        raise InputError(f"Observations of the space {space} hold no numbers: wrap the environment so that they do.")
    numbers = _numbers(flat, _has_numbers(space))
    if isinstance(space, spaces.Box):  # observations of another size raise an error, which names them
        return Reading(lambda observation: _floats(observation).reshape(size), numbers)
    return Reading(lambda observation: _floats(spaces.flatten(space, observation)), numbers)


def hashed(places: int) -> Reading:
    """Observations of any kind, each as its hash, which has a place of its own: for those that repeat exactly.

    Args:
        places: how many there are.
    """
    return Reading(lambda observation: np.array(number(observation), np.int32), HashedStates(places))


def actions_of(space: spaces.Space[Any]) -> spaces.Discrete:
    """The action space, if it is one that UpperTail has a network for.

    Raises:
        InputError: it is not discrete.
    """
    if isinstance(space, spaces.Discrete):
        return space
    kind = "continuous" if isinstance(space, spaces.Box) else "composite"
    raise InputError(
        f"The action space {space} is {kind}, but UpperTail acts in Discrete ones: "
        "wrap the environment so that each action is one of a list."
    )


def _state(space: spaces.Discrete, observation: Any) -> np.ndarray:
    """An integer state, counted from 0."""
    number = int(observation) - int(space.start)
    if not 0 <= number < space.n:
        raise ValueError(f"the observation {observation} is not in {space}")
    return np.array(number, np.int32)


def _has_numbers(space: spaces.Space[Any]) -> bool:
    """Whether there is a Box in the space; all else is one-hot when it is flat."""
    if isinstance(space, spaces.Dict):
        return any(map(_has_numbers, space.spaces.values()))
    return any(map(_has_numbers, space.spaces)) if isinstance(space, spaces.Tuple) else isinstance(space, spaces.Box)


def _floats(observation: Any) -> np.ndarray:
    """A copy: many environments write their next observation into the same array."""
    return np.array(observation, np.float32)


def _image(space: spaces.Box) -> Pixels | None:
    """An image: two axes, or three of which the last or the first is that of channels."""
    if len(space.shape) not in (2, 3) or not np.isfinite(space.high).all() or not np.isfinite(space.low).all():
        return None
    shape = space.shape if len(space.shape) == 3 else (*space.shape, 1)
    first = len(space.shape) == 3 and shape[0] < min(shape[1:])
    channels, height, width = shape if first else (shape[2], shape[0], shape[1])
    if min(height, width) < IMAGE_SIDE:
        return None
    peak = float(max(np.abs(space.low).max(), np.abs(space.high).max())) or 1.0
    return Pixels(int(height), int(width), int(channels), first, peak)


def _numbers(space: spaces.Box, continuous: bool) -> Numbers:
    """A vector, with its declared bounds."""
    low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
    bounded = (np.abs(low) < UNBOUNDED) & (np.abs(high) < UNBOUNDED)
    low, high = np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)
    return Numbers(tuple(low.tolist()), tuple(high.tolist()), continuous)
