"""How observations of Gymnasium are read: as arrays that a network can take; some by their hashes."""

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from uppertail.encodings import HashedStates, States
from uppertail.environments.spaces import Path, Reading, at, image_of, leaves, numbers_of
from uppertail.errors import InputError

MOST = 2**31 - 1
"""The largest hash of an observation: it is an integer of 32 bits, with a sign, as JAX has them."""

PLACES = 64
"""Places of the one-hot of a text. A new text takes the place of its hash, so that no list of texts has to be kept."""


def number(observation: Any) -> int:
    """The hash of an observation, from 1 to MOST. Of 43 sets of 10,000 observations, one holds two with the same."""
    return 1 + place(observation, MOST)


def one_hot(text: str) -> np.ndarray:
    """A text as the one-hot of its hash."""
    places = np.zeros(PLACES, np.int8)
    places[place(str(text), PLACES)] = 1
    return places


def place(observation: Any, places: int) -> int:
    """The place of an observation, from 0; the same in every process, for observations that are exactly the same.

    Args:
        observation: what an environment shows: numbers, arrays, texts, and mappings or sequences of these.
        places: how many there are.
    """
    total = hashlib.blake2b(digest_size=8)
    for part in _parts(observation):
        total.update(len(part).to_bytes(8) + part)
    return int.from_bytes(total.digest()) % places


def _parts(value: Any) -> Iterator[bytes]:
    """The parts of an observation, with marks of where mappings and sequences begin; 0 and -0 are the same."""
    if isinstance(value, str):
        yield from (b"text", value.encode(errors="surrogatepass"))
    elif isinstance(value, Mapping):
        yield f"mapping of {len(value)}".encode()
        for name in sorted(value, key=str):
            yield from (*_parts(str(name)), *_parts(value[name]))
    elif isinstance(value, tuple | list):
        yield f"sequence of {len(value)}".encode()
        for part in value:
            yield from _parts(part)
    elif (array := np.asarray(value)).dtype.kind in "biuf":  # whatever the width of its type
        wide = np.ascontiguousarray(array, np.float64 if array.dtype.kind == "f" else np.int64)
        yield from (str(array.shape).encode(), (wide + 0.0 if array.dtype.kind == "f" else wide).tobytes())
    else:
        yield repr(value).encode(errors="surrogatepass")


class Flat(NamedTuple):
    """How a part of an observation is read as numbers, and their bounds."""

    numbers: Callable[[Any], np.ndarray]
    bounds: tuple[np.ndarray, np.ndarray]


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
        return Reading(functools.partial(_state, space), States(int(space.n)), (), int(space.start))
    if isinstance(space, spaces.Box) and (image := image_of(space.low.astype(float), space.high.astype(float))):
        kind, shape = np.uint8 if space.dtype == np.uint8 else np.float32, space.shape
        return Reading(lambda observation: np.array(observation, kind).reshape(shape), image, shape)
    kept = [(path, part) for path, part in leaves(space) if path not in left_out]
    try:
        flat = [(path, _flat(part)) for path, part in kept]
    except NotImplementedError as error:
        raise InputError(
            f"Observations of the space {space} cannot be flattened to numbers: wrap the environment so that they are "
            "Discrete, Box, MultiDiscrete, MultiBinary, Text, or a Dict or Tuple of these, or set encoding to hashed."
        ) from error
    continuous = any(isinstance(part, spaces.Box) for _, part in kept)  # all else is one-hot when it is flat
    return Reading(
        lambda observation: np.concatenate([each.numbers(at(observation, path)) for path, each in flat]),
        numbers_of(space, [each.bounds for _, each in flat], continuous),
        space.shape,
    )


def hashed(places: int) -> Reading:
    """Observations of any kind, each as its hash, which has a place of its own: for those that repeat exactly.

    Args:
        places: how many there are.
    """
    return Reading(lambda observation: np.array(number(observation), np.int32), HashedStates(places))


def _state(space: spaces.Discrete, observation: Any) -> np.ndarray:
    """An integer state, counted from 0."""
    state = int(observation) - int(space.start)
    if not 0 <= state < space.n:
        raise ValueError(f"the observation {observation} is not in {space}")
    return np.array(state, np.int32)


def _flat(space: spaces.Space[Any]) -> Flat:
    """How one part is read as numbers of 32 bits, in a copy: many environments reuse their arrays."""
    if is_text(space):
        return Flat(lambda text: one_hot(text).astype(np.float32), (np.zeros(PLACES), np.ones(PLACES)))
    box = spaces.flatten_space(space)
    if not isinstance(box, spaces.Box):
        raise NotImplementedError
    bounds = np.asarray(box.low, np.float64), np.asarray(box.high, np.float64)
    if isinstance(space, spaces.Box):  # observations of another size raise an error, which names them
        return Flat(lambda observation: np.array(observation, np.float32).reshape(box.shape[0]), bounds)
    return Flat(lambda observation: np.array(spaces.flatten(space, observation), np.float32), bounds)
