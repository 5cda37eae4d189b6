"""What Gymnasium's spaces mean here: observations as arrays that a network can take, and discrete actions."""

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium import spaces

from uppertail.encodings import Encoding, Image, RandomFeatures, StateEncoding, Vector, state_encoding
from uppertail.errors import InputError

Scaling = Literal["auto", "declared", "running"]
"""The names of `--env.scaling`."""

Features = Literal["auto", "random", "scaled"]
"""The names of `--env.features`."""

UNBOUNDED = 1e10
"""A declared bound of this size or more is none."""

IMAGE_SIDE = 8
"""An array of numbers with two or three axes is an image if it has as many rows and columns."""


class Reading(NamedTuple):
    """How the observations of a space are read: an array of each, which is a copy, and its encoding."""

    array: Callable[[Any], np.ndarray]
    encoding: Encoding


class Numbers(NamedTuple):
    """How observations that are numbers enter the network.

    Args:
        scaling: by which bounds they are scaled.
        features: whether as random features, or as they are then.
        num_features: how many random features.
        length_scale: how near observations are that share them.
        feature_norm: sum of their absolute values.
    """

    scaling: Scaling = "auto"
    features: Features = "auto"
    num_features: int = 512
    length_scale: float = 0.2
    feature_norm: float = 1.0


def reading(space: spaces.Space[Any], states: StateEncoding, numbers: Numbers) -> Reading:
    """How the observations of a space are read.

    Args:
        space: the observation space of one environment.
        states: how integer states enter the network.
        numbers: how numbers do.

    Raises:
        InputError: they are of no kind that a network can take, or bounds are asked for that there are not.
    """
    if isinstance(space, spaces.Discrete):
        return Reading(functools.partial(_state, space), state_encoding(states, int(space.n)))
    if isinstance(space, spaces.Box) and (image := _image(space)):
        kind, shape = np.uint8 if space.dtype == np.uint8 else np.float32, space.shape
        return Reading(lambda observation: np.array(observation, kind).reshape(shape), image)
    try:
        flat = spaces.flatten_space(space)
    except NotImplementedError:
        flat = None
    if not isinstance(flat, spaces.Box):
        raise InputError(
            f"Observations of the space {space} cannot be flattened to numbers: wrap the environment so that they are "
            "Discrete, Box, MultiDiscrete, MultiBinary, or a Dict or Tuple of these."
        )
    if flat.shape[0] == 0:
        raise InputError(f"Observations of the space {space} hold no numbers: wrap the environment so that they do.")
    vector = _vector(flat, numbers.scaling)
    random = numbers.features == "random" or (numbers.features == "auto" and _has_numbers(space))
    encoding = vector
    if random:
        encoding = RandomFeatures(vector, numbers.num_features, numbers.length_scale, numbers.feature_norm)
    if isinstance(space, spaces.Box):
        size = vector.num_features  # observations of another one raise an error, which names them
        return Reading(lambda observation: _floats(observation).reshape(size), encoding)
    return Reading(lambda observation: _floats(spaces.flatten(space, observation)), encoding)


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


def _image(space: spaces.Box) -> Image | None:
    """The encoding of an image: two axes, or three of which the last or the first is that of channels."""
    if len(space.shape) not in (2, 3) or not np.isfinite(space.high).all() or not np.isfinite(space.low).all():
        return None
    shape = space.shape if len(space.shape) == 3 else (*space.shape, 1)
    first = len(space.shape) == 3 and shape[0] < min(shape[1:])
    channels, height, width = shape if first else (shape[2], shape[0], shape[1])
    if min(height, width) < IMAGE_SIDE:
        return None
    peak = float(max(np.abs(space.low).max(), np.abs(space.high).max())) or 1.0
    return Image(int(height), int(width), int(channels), first, peak)


def _vector(space: spaces.Box, scaling: Scaling) -> Vector:
    """The encoding of a vector, with the bounds that count."""
    low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
    bounded = (np.abs(low) < UNBOUNDED) & (np.abs(high) < UNBOUNDED)
    if scaling == "declared" and not bounded.all():
        raise InputError(
            f"The observations have no bounds at {np.flatnonzero(~bounded).tolist()}, and scaling is declared: "
            "use auto or running, or wrap the environment so that its Box has bounds."
        )
    if scaling == "running":
        bounded[:] = False
    low, high = np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)
    return Vector(tuple(low.tolist()), tuple(high.tolist()))
