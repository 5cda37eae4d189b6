"""Observations that are no states: hashes, vectors of numbers and images."""

import dataclasses

import numpy as np

from uppertail.encodings.base import Encoding, ObservationSpace, Preferences, Scaling
from uppertail.encodings.categories import Categories
from uppertail.encodings.hashed import Hashed, HashedNumbers
from uppertail.encodings.nearest import Nearest
from uppertail.encodings.random_features import RandomFeatures
from uppertail.encodings.vector import Image, Vector
from uppertail.errors import InputError


@dataclasses.dataclass(frozen=True)
class HashedStates(ObservationSpace):
    """A whole observation, as its hash: an integer of 1 or more.

    Args:
        places: how many there are for different ones; a power of 2 that is not smaller is taken.
        background: pixels that do not count.
        pixels: the type that the numbers of an image have before they are hashed; empty: it is no image alone.
    """

    places: int
    background: tuple[tuple[float, ...], ...] = ()
    pixels: str = ""

    def encoding(self, preferences: Preferences) -> Encoding:
        preferences.vectors.require_none("each different observation is a state, as a whole")
        return Hashed(1 << (self.places - 1).bit_length())


@dataclasses.dataclass(frozen=True)
class Numbers(ObservationSpace):
    """A vector of numbers.

    Args:
        low: declared lower bound of each number; minus infinity: none.
        high: declared upper bound of each number; infinity: none.
        continuous: whether some of them are not just 0 or 1.

    Examples:
        >>> import math
        >>> ut.Numbers(low=(-1.0, -math.inf), high=(1.0, math.inf))  # the second has no bounds
        Numbers(low=(-1.0, -inf), high=(1.0, inf), continuous=True)
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    continuous: bool = True

    def encoding(self, preferences: Preferences) -> Encoding:
        asked = preferences.vectors
        if asked.radius is not None:
            return Nearest(len(self.low), asked.num_features, asked.radius)
        left_out, count = asked.left_out or (), len(self.low)
        if any(not 0 <= place < count for place in left_out):
            raise InputError(
                f"left_out is {list(left_out)}: an observation has {count} numbers, so use 0 to {count - 1}."
            )
        if len(set(left_out)) == count:
            raise InputError("left_out leaves no number of an observation: leave fewer out.")
        if asked.features == "one_hot":
            return self._categories(asked.values, left_out)
        vector = self._vector(asked.scaling, left_out)
        if asked.features == "hashed":
            return HashedNumbers(1 << (asked.hash_size - 1).bit_length(), vector, self._rounding(asked.rounding or ()))
        if asked.features == "random" or (asked.features == "auto" and self.continuous):
            return RandomFeatures(vector, asked.num_features, asked.length_scale, asked.feature_norm)
        return vector

    def _categories(self, values: int, left_out: tuple[int, ...]) -> Categories:
        """Numbers that are names; InputError if their bounds say that they are not."""
        odd = np.setdiff1d(np.flatnonzero((np.array(self.low) < 0) | np.isinf(self.high)), left_out)
        if odd.size:
            raise InputError(
                f"The observations have numbers below 0 or without bounds at {odd.tolist()}, and features is one_hot, "
                "which is for whole numbers from 0 on: use auto, or wrap the environment."
            )
        return Categories(Vector(self.low, self.high, left_out), values)

    def _rounding(self, given: tuple[float, ...]) -> tuple[float, ...]:
        """To multiples of what each number is rounded; InputError if they are more or fewer."""
        if given and len(given) != len(self.low):
            raise InputError(
                f"rounding is {list(given)}: an observation has {len(self.low)} numbers, so give one for each, or null."
            )
        return given

    def _vector(self, scaling: Scaling, left_out: tuple[int, ...]) -> Vector:
        """The vector, with the bounds that this scaling uses."""
        bounded = np.isfinite(self.low) & np.isfinite(self.high)
        if scaling == "declared" and not bounded.all():
            raise InputError(
                f"The observations have no bounds at {np.flatnonzero(~bounded).tolist()}, and scaling is declared: "
                "use auto or running, or wrap the environment so that its Box has bounds."
            )
        if scaling == "running" or (scaling == "auto" and self.continuous):
            bounded[:] = False
        low, high = np.where(bounded, self.low, -np.inf), np.where(bounded, self.high, np.inf)
        return Vector(tuple(low.tolist()), tuple(high.tolist()), left_out)


@dataclasses.dataclass(frozen=True)
class Pixels(ObservationSpace):
    """An image.

    Args:
        height: rows.
        width: columns.
        channels: numbers per pixel.
        channels_first: whether an observation is [channels, height, width] instead of [height, width, channels].
        peak: the largest declared number of a pixel.

    Examples:
        >>> ut.Pixels(height=84, width=84, channels=3)
        Pixels(height=84, width=84, channels=3, channels_first=False, peak=255.0)
    """

    height: int
    width: int
    channels: int
    channels_first: bool = False
    peak: float = 255.0

    def encoding(self, preferences: Preferences) -> Encoding:
        return Image(self.height, self.width, self.channels, self.channels_first, self.peak)
