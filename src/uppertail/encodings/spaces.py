"""What an environment's observations are, and how they enter the network; the one place that settles it."""

import abc
import dataclasses
from typing import Literal

import numpy as np

from uppertail.encodings.base import STATE_ENCODINGS, Encoding, StateEncoding
from uppertail.encodings.hashed import Hashed, HashedNumbers
from uppertail.encodings.nearest import Nearest
from uppertail.encodings.random_features import RandomFeatures
from uppertail.encodings.vector import Image, Vector
from uppertail.errors import InputError, require_choice

Scaling = Literal["auto", "declared", "running"]  # the names of `--env.scaling`
Features = Literal["auto", "random", "scaled", "hashed"]  # the names of `--env.features`


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorSettings:
    """How vectors of numbers enter the network.

    Args:
        scaling: by which bounds other observations are brought to [-1, 1]: auto (those seen so far for a Box, else
            those declared), declared or running (those seen so far).
        features: how numbers enter the network: random (features that only nearby observations share), scaled (as they
            are; add --bias true), hashed (each different vector is a state of its own) or auto (random where there is a
            Box; integers that have at most 4,096 values together are one state; with least squares, hashed where those
            of a random policy repeat).
        num_features: how many random features, or states where there is a radius.
        length_scale: distance between observations, as root mean square over the numbers in [-1, 1], beyond which they
            share little.
        feature_norm: sum of the absolute values of the random features; with more than 1 the network learns features of
            its own from them.
        radius: two observations within this distance, as root mean square over their numbers as they are, show one
            state, and others are told apart, so that noise is averaged away; null: they stay numbers.
        hash_size: with hashed, slots of the hash table, one for each different observation; rounded up to a power of 2.
        left_out: places, from 0, of numbers that count for nothing; null: none, or with least squares those that told
            nothing of what came next in steps of a random policy.
    """

    scaling: Scaling = "auto"
    features: Features = "auto"
    num_features: int = 300
    length_scale: float = 1.0
    feature_norm: float = 1.0
    radius: float | None = None
    hash_size: int = 4096
    left_out: tuple[int, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Preferences:
    """The user's choices of how observations enter the network."""

    states: StateEncoding = "one_hot"
    vectors: VectorSettings = VectorSettings()


class ObservationSpace(abc.ABC):
    """What an environment's observations are. A space is a frozen dataclass.

    Examples:
        >>> [issubclass(kind, ut.ObservationSpace) for kind in (ut.States, ut.Numbers, ut.Pixels)]
        [True, True, True]
    """

    @abc.abstractmethod
    def encoding(self, preferences: Preferences) -> Encoding:
        """How an observation enters the network; InputError if the preferences cannot be met."""


@dataclasses.dataclass(frozen=True)
class States(ObservationSpace):
    """An integer state.

    Args:
        count: number of states.

    Examples:
        >>> ut.States(count=5)
        States(count=5)
    """

    count: int

    def encoding(self, preferences: Preferences) -> Encoding:
        require_choice("encoding", preferences.states, list(STATE_ENCODINGS))
        return STATE_ENCODINGS[preferences.states](self.count)


@dataclasses.dataclass(frozen=True)
class HashedStates(ObservationSpace):
    """A whole observation, as its hash: an integer of 1 or more."""

    places: int  # number of places for different ones; a power of 2 that is not smaller is taken

    def encoding(self, preferences: Preferences) -> Encoding:
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
        vector = self._vector(asked.scaling, left_out)
        if asked.features == "hashed":
            return HashedNumbers(1 << (asked.hash_size - 1).bit_length(), vector)
        if asked.features == "random" or (asked.features == "auto" and self.continuous):
            return RandomFeatures(vector, asked.num_features, asked.length_scale, asked.feature_norm)
        return vector

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
