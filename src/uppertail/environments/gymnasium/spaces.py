"""What Gymnasium's spaces mean here: observations as arrays that a network can take, and discrete actions."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from uppertail.encodings import HashedStates, ObservationSpace, States
from uppertail.environments.boxes import image_of, numbers_of
from uppertail.environments.gymnasium.hashing import PLACES, number, one_hot
from uppertail.errors import InputError

Path = tuple[Any, ...]
"""Where in an observation something is: keys of Dicts and indices of Tuples."""


class Reading(NamedTuple):
    """How the observations of a space are read: as an array, which is a copy, and the kind of that array."""

    array: Callable[[Any], np.ndarray]
    space: ObservationSpace


class Flat(NamedTuple):
    """How a part of an observation is read as numbers, and the bounds of these."""

    numbers: Callable[[Any], np.ndarray]
    low: np.ndarray
    high: np.ndarray


def leaves(space: spaces.Space[Any], path: Path = ()) -> Iterator[tuple[Path, spaces.Space[Any]]]:
    """The parts of a space that are neither Dict nor Tuple, and where they are."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for name, part in space.items() if isinstance(space, spaces.Dict) else enumerate(space):
            yield from leaves(part, (*path, name))
    else:
        yield path, space


def at(observation: Any, path: Path) -> Any:
    """The part of an observation that is there."""
    return functools.reduce(lambda part, name: part[name], path, observation)


def is_text(space: spaces.Space[Any]) -> bool:
    """Whether its observations are texts, as in Text and in spaces of other packages (MiniGrid's missions)."""
    if isinstance(space, spaces.Text):
        return True
    return not type(space).__module__.startswith("gymnasium.") and isinstance(space.sample(), str)


def reading(space: spaces.Space[Any], left_out: frozenset[Path] = frozenset()) -> Reading:
    """How the observations of a space are read.

    Args:
        space: the observation space of one environment.
        left_out: paths of texts that never change.

    Raises:
        InputError: they are of no kind that a network can take.
    """
    if isinstance(space, spaces.Discrete):
        return Reading(functools.partial(_state, space), States(int(space.n)))
    if isinstance(space, spaces.Box) and (image := image_of(space.low.astype(float), space.high.astype(float))):
        kind, shape = np.uint8 if space.dtype == np.uint8 else np.float32, space.shape
        return Reading(lambda observation: np.array(observation, kind).reshape(shape), image)
    kept = [(path, part) for path, part in leaves(space) if path not in left_out]
    try:
        flat = [(path, _flat(part)) for path, part in kept]
    except NotImplementedError as error:
        raise InputError(
            f"Observations of the space {space} cannot be flattened to numbers: wrap the environment so that they are "
            "Discrete, Box, MultiDiscrete, MultiBinary, Text, or a Dict or Tuple of these, or set encoding to hashed."
        ) from error
    low = np.concatenate([np.zeros(0), *(each.low for _, each in flat)])
    high = np.concatenate([np.zeros(0), *(each.high for _, each in flat)])
    if low.size == 0:
        raise InputError(f"Observations of the space {space} hold no numbers: wrap the environment so that they do.")
    continuous = any(isinstance(part, spaces.Box) for _, part in kept)  # all else is one-hot when it is flat
    return Reading(
        lambda observation: np.concatenate([each.numbers(at(observation, path)) for path, each in flat]),
        numbers_of(low, high, continuous),
    )


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
    state = int(observation) - int(space.start)
    if not 0 <= state < space.n:
        raise ValueError(f"the observation {observation} is not in {space}")
    return np.array(state, np.int32)


def _flat(space: spaces.Space[Any]) -> Flat:
    """How one part is read as numbers of 32 bits, in a copy: many environments reuse their arrays."""
    if is_text(space):
        return Flat(lambda text: one_hot(text).astype(np.float32), np.zeros(PLACES), np.ones(PLACES))
    box = spaces.flatten_space(space)
    if not isinstance(box, spaces.Box):
        raise NotImplementedError
    low, high = np.asarray(box.low, np.float64), np.asarray(box.high, np.float64)
    if isinstance(space, spaces.Box):  # observations of another size raise an error, which names them
        return Flat(lambda observation: np.array(observation, np.float32).reshape(low.size), low, high)
    return Flat(lambda observation: np.array(spaces.flatten(space, observation), np.float32), low, high)
