"""Observations that are numbers: vectors, brought to a common scale, and images."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.encodings.base import Encoding


class Bounds(NamedTuple):
    """The lowest and highest number observed so far at each place of the vector."""

    low: Float[Array, " features"]
    high: Float[Array, " features"]


@dataclasses.dataclass(frozen=True)
class Vector(Encoding):
    """Each number from -1 at its lower bound to 1 at its upper one; where a bound is infinite, by the bounds so far.

    Numbers that are declared to lie between 0 and 1 stay as they are, so that one-hot numbers stay one-hot.
    """

    low: tuple[float, ...]  # declared lower bound of each number; minus infinity: none
    high: tuple[float, ...]  # declared upper bound of each number; infinity: none
    left_out: tuple[int, ...] = ()  # places of numbers that count for nothing

    @property
    def kept(self) -> Int[np.ndarray, " kept"]:
        """The places of the numbers that count."""
        return np.setdiff1d(np.arange(self.num_features), self.left_out)

    @property
    def num_features(self) -> int:
        return len(self.low)

    @property
    def bounded(self) -> Bool[np.ndarray, " features"]:
        """Where both bounds are declared."""
        return np.isfinite(np.array(self.low)) & np.isfinite(np.array(self.high))

    def init(self, key: PRNGKeyArray) -> Bounds:
        nothing = jnp.full(self.num_features, math.inf)
        return Bounds(nothing, -nothing)

    def observe(self, encoder: Bounds, observations: Float[Array, "batch features"]) -> Bounds:
        low, high = jnp.min(observations, axis=0), jnp.max(observations, axis=0)
        return Bounds(jnp.minimum(encoder.low, low), jnp.maximum(encoder.high, high))

    def seen_bounds(self, encoder: Bounds) -> Bounds:
        return encoder

    def features(self, encoder: Bounds, observation: Float[Array, " features"]) -> Float[Array, " features"]:
        return self.scaled(encoder, observation)

    def scaled(self, encoder: Bounds, observation: Float[Array, " features"]) -> Float[Array, " features"]:
        """The observation on the common scale; 0 where only one number was ever observed, or where it is left out."""
        seen = jax.lax.stop_gradient(encoder)
        declared_low, declared_high = (np.array(bound, np.float32) for bound in (self.low, self.high))
        low = jnp.where(self.bounded, declared_low, seen.low)
        span = jnp.where(self.bounded, declared_high, seen.high) - low
        known = jnp.isfinite(span) & (span > 0)
        scaled = jnp.where(known, 2.0 * (observation - low) / jnp.where(known, span, 1.0) - 1.0, 0.0)
        as_it_is = (declared_low == 0) & (declared_high == 1)
        scaled = jnp.where(as_it_is, observation, scaled)
        return scaled.at[np.array(self.left_out, int)].set(0.0) if self.left_out else scaled


@dataclasses.dataclass(frozen=True)
class Image(Encoding):
    """The pixels of an image, row by row, each of them channel by channel; a network's torso learns from them."""

    height: int
    width: int
    channels: int
    channels_first: bool = False  # whether an observation is [channels, height, width], not [height, width, channels]
    peak: float = 255.0  # the largest declared number of a pixel, which becomes 1

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels

    @property
    def num_features(self) -> int:
        return self.height * self.width * self.channels

    def features(self, encoder: tuple[()], observation: Array) -> Float[Array, " features"]:
        pixels = observation.astype(jnp.float32) / self.peak
        if self.channels_first:
            pixels = jnp.moveaxis(pixels.reshape(self.channels, self.height, self.width), 0, -1)
        return pixels.reshape(-1)
