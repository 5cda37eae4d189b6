"""Observations that are images, through a small convolutional encoder that all actions share."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings.base import Encoding

CHANNELS, SMALL = (16, 32, 64, 64), 8
"""Kernels of each layer; layers are added, at most these, until the image is no larger than SMALL either way."""


Kernels = tuple[Float[Array, "3 3 _in _out"], ...]


@dataclasses.dataclass(frozen=True)
class Image(Encoding):
    """An image through 3x3 convolutions of stride 2 with ELU, each of which halves it; then flat."""

    height: int
    width: int
    channels: int
    channels_first: bool = False  # whether an observation is [channels, height, width], not [height, width, channels]
    peak: float = 255.0  # the largest declared number of a pixel, which becomes 1

    @property
    def has_features(self) -> bool:
        return False

    @property
    def num_layers(self) -> int:
        """Number of convolutions."""
        halvings = math.ceil(math.log2(max(self.height, self.width) / SMALL))
        return min(max(halvings, 1), len(CHANNELS))

    @property
    def num_features(self) -> int:
        rows, columns = (math.ceil(size / 2**self.num_layers) for size in (self.height, self.width))
        return rows * columns * CHANNELS[self.num_layers - 1]

    def init(self, key: PRNGKeyArray) -> Kernels:
        """Glorot-uniform kernels."""
        depths = (self.channels, *CHANNELS[: self.num_layers])
        shapes = [(3, 3, before, after) for before, after in itertools.pairwise(depths)]
        glorot = jax.nn.initializers.glorot_uniform()
        return tuple(glorot(k, shape) for k, shape in zip(jax.random.split(key, len(shapes)), shapes, strict=True))

    def features(self, encoder: Kernels, observation: Array) -> Float[Array, " features"]:
        pixels, size = observation.astype(jnp.float32) / self.peak, (self.height, self.width)
        if self.channels_first:
            image = jnp.moveaxis(pixels.reshape(self.channels, *size), 0, -1)[None]
        else:
            image = pixels.reshape(1, *size, self.channels)
        for kernel in encoder:
            image = jax.nn.elu(
                jax.lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            )
        return image.reshape(-1)
