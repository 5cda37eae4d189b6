"""Observations that are images."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from uppertail.encodings.base import Encoding


@dataclasses.dataclass(frozen=True)
class Image(Encoding):
    """The pixels of an image, row by row, each of them channel by channel; a network's torso learns from them."""

    has_features: ClassVar[bool] = False
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
