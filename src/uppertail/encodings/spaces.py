"""What an environment's observations are, and how they enter the network; the one place that settles it."""

import abc
import dataclasses
from typing import Literal

import numpy as np

from uppertail.encodings.base import Encoding
from uppertail.encodings.hashed import Hashed
from uppertail.encodings.image import Image
from uppertail.encodings.nearest import Nearest
from uppertail.encodings.random_features import RandomFeatures
from uppertail.encodings.states import STATE_ENCODINGS, StateEncoding
from uppertail.encodings.vector import Vector
from uppertail.errors import InputError, require_choice

Scaling = Literal["auto", "declared", "running"]  # the names of `--env.scaling`

Features = Literal["auto", "random", "scaled"]  # the names of `--env.features`


@dataclasses.dataclass(frozen=True)
class Preferences:
    """The user's choices of how observations enter the network."""

    states: StateEncoding = "one_hot"  # how integer states enter the network
    scaling: Scaling = "auto"  # numbers to [-1, 1] by bounds declared or observed; auto: observed if continuous
    features: Features = "auto"  # numbers become random features or stay scaled; auto: random if continuous
    num_features: int = 300  # how many random features, or states within a radius
    length_scale: float = 1.0  # distance at which observations begin to differ in their random features
    feature_norm: float = 1.0  # sum of the absolute values of the random features
    radius: float | None = None  # within it, two observations show one state; None: they stay numbers


class ObservationSpace(abc.ABC):
    """What an environment's observations are. A space is a frozen dataclass.

    Examples:
        >>> import uppertail as ut
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
        >>> import uppertail as ut
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
        del preferences  # hashes have no order
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
        >>> import uppertail as ut
        >>> ut.Numbers(low=(-1.0, -math.inf), high=(1.0, math.inf))  # the second has no bounds
        Numbers(low=(-1.0, -inf), high=(1.0, inf), continuous=True)
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    continuous: bool = True

    def encoding(self, preferences: Preferences) -> Encoding:
        if preferences.radius is not None:
            return Nearest(len(self.low), preferences.num_features, preferences.radius)
        vector = self._vector(preferences.scaling)
        if preferences.features == "random" or (preferences.features == "auto" and self.continuous):
            return RandomFeatures(vector, preferences.num_features, preferences.length_scale, preferences.feature_norm)
        return vector

    def _vector(self, scaling: Scaling) -> Vector:
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
        return Vector(tuple(low.tolist()), tuple(high.tolist()))


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
        >>> import uppertail as ut
        >>> ut.Pixels(height=84, width=84, channels=3)
        Pixels(height=84, width=84, channels=3, channels_first=False, peak=255.0)
    """

    height: int
    width: int
    channels: int
    channels_first: bool = False
    peak: float = 255.0

    def encoding(self, preferences: Preferences) -> Encoding:
        del preferences  # images are always encoded in the same way
        return Image(self.height, self.width, self.channels, self.channels_first, self.peak)
