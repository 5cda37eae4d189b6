"""Hidden layers: their units, and torsos, the learned layers that all actions share below the perceptrons."""

import abc
import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.types import PyTree

Hidden = Float[Array, "*units"]

Activation = Literal["elu", "relu", "tanh", "silu"]  # the names of `--network.activation`
Normalization = Literal["none", "layer", "rms"]  # the names of `--network.normalization`
TINY = 1e-6  # added to a variance before its root is taken
TorsoName = Literal["auto", "mlp", "conv"]  # the names of `--network.torso`
SIDE = 3  # rows and columns of a kernel

# kernels of each layer by default; layers are added, at most these, until halving makes both sides SMALL at most
KERNELS, SMALL = (16, 32, 64, 64), 8


def elu(x: Hidden) -> Hidden:
    """x above 0, exp(x) - 1 below; as precise as sums of units need it, at a third of the price of expm1."""
    return jnp.where(x > 0, x, jnp.exp(jnp.where(x > 0, 0.0, x)) - 1.0)


def rms_normalized(x: Hidden) -> Hidden:
    """Units with root mean square 1 (Zhang and Sennrich 2019), without learned scales."""
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x)) + TINY)


ACTIVATIONS: dict[Activation, Callable[[Hidden], Hidden]] = {
    "elu": elu,
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "silu": jax.nn.silu,
}
NORMALIZATIONS: dict[Normalization, Callable[[Hidden], Hidden]] = {
    "none": lambda x: x,
    "layer": lambda x: rms_normalized(x - jnp.mean(x)),  # mean 0 and variance 1 (Ba et al. 2016)
    "rms": rms_normalized,
}


@dataclasses.dataclass(frozen=True)
class Units:
    """What becomes of the sums of a hidden layer."""

    activation: Activation = "elu"
    normalization: Normalization = "none"

    def __call__(self, sums: Hidden) -> Hidden:
        return ACTIVATIONS[self.activation](NORMALIZATIONS[self.normalization](sums))


class Learned(NamedTuple):
    """The arrays of a torso."""

    below: PyTree  # the encoder of the encoding below
    weights: tuple[Float[Array, "*_shape"], ...]
    biases: tuple[Float[Array, " _outputs"], ...]  # or none


@dataclasses.dataclass(frozen=True)
class Torso(Encoding):
    """Layers on the features of the encoding `below`; together they are an encoding again, which learns."""

    below: Encoding
    sizes: tuple[int, ...]  # outputs of each layer
    units: Units
    bias: bool

    @abc.abstractmethod
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of the weights of each layer; the last two axes are its inputs and its outputs."""

    def init(self, key: PRNGKeyArray) -> Learned:
        """Glorot-uniform weights and zero biases."""
        keys, glorot = jax.random.split(key, len(self.sizes)), jax.nn.initializers.glorot_uniform()
        weights = tuple(glorot(k, shape) for k, shape in zip(keys, self.shapes(), strict=True))
        biases = tuple(jnp.zeros(size) for size in self.sizes) if self.bias else ()
        return Learned(self.below.init(jax.random.fold_in(key, len(self.sizes))), weights, biases)

    def layer(self, encoder: Learned, place: int, sums: Float[Array, "*units"]) -> Float[Array, "*units"]:
        """The hidden units of the layer at this place, from its sums without biases."""
        biased = sums + jnp.broadcast_to(encoder.biases[place], sums.shape) if encoder.biases else sums
        return self.units(biased)

    def observe(self, encoder: Learned, observations: Array) -> Learned:
        return encoder._replace(below=self.below.observe(encoder.below, observations))

    def with_observed(self, encoder: Learned, other: Learned) -> Learned:
        return encoder._replace(below=self.below.with_observed(encoder.below, other.below))

    def seen_bounds(self, encoder: Learned) -> tuple[Array, Array] | None:
        return self.below.seen_bounds(encoder.below)

    def remark(self, encoder: Learned) -> str | None:
        return self.below.remark(encoder.below)


@dataclasses.dataclass(frozen=True)
class Dense(Torso):
    """Each unit of a layer sees all units of the layer below."""

    @property
    def num_features(self) -> int:
        return self.sizes[-1]

    def shapes(self) -> list[tuple[int, ...]]:
        return [*itertools.pairwise((self.below.num_features, *self.sizes))]

    def features(self, encoder: Learned, observation: Array) -> Float[Array, " features"]:
        first, *others = encoder.weights
        values = self.layer(encoder, 0, self.below.project(encoder.below, first, observation))
        for place, weight in enumerate(others, 1):
            values = self.layer(encoder, place, values @ weight)
        return values


@dataclasses.dataclass(frozen=True)
class Convolutions(Torso):
    """Each unit of a layer sees 3x3 pixels of the layer below, padded with zeros; `below` gives an image."""

    stride: int = 2

    @property
    def image_shape(self) -> tuple[int, int, int]:
        rows, columns, _ = self.shape_below
        for _ in self.sizes:
            rows, columns = (math.ceil(side / self.stride) for side in (rows, columns))
        return rows, columns, self.sizes[-1]

    @property
    def shape_below(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the observation."""
        assert self.below.image_shape is not None
        return self.below.image_shape

    @property
    def num_features(self) -> int:
        return math.prod(self.image_shape)

    def shapes(self) -> list[tuple[int, ...]]:
        return [(SIDE, SIDE, *pair) for pair in itertools.pairwise((self.shape_below[2], *self.sizes))]

    def features(self, encoder: Learned, observation: Array) -> Float[Array, " features"]:
        image = self.below.features(encoder.below, observation).reshape(self.shape_below)
        for place, kernels in enumerate(encoder.weights):
            image = self.layer(encoder, place, patches(image, self.stride) @ kernels.reshape(-1, kernels.shape[-1]))
        return image.reshape(-1)


def patches(image: Float[Array, "rows columns channels"], stride: int) -> Float[Array, "places_down places_across _"]:
    """The 3x3 pixels that each place of a kernel sees; XLA's own convolution is slow inside of a compiled loop."""
    sides = image.shape[:2]
    padded = jnp.pad(image, [*(padding(side, stride) for side in sides), (0, 0)])
    ends = [(math.ceil(side / stride) - 1) * stride + 1 for side in sides]
    shifted = [
        padded[down : down + ends[0] : stride, across : across + ends[1] : stride]
        for down, across in itertools.product(range(SIDE), repeat=2)
    ]
    return jnp.concatenate(shifted, axis=-1)


def padding(side: int, stride: int) -> tuple[int, int]:
    """How many zeros stand before and after a side of an image, so that kernels have a place for each `stride`."""
    missing = max((math.ceil(side / stride) - 1) * stride + SIDE - side, 0)
    return missing // 2, missing - missing // 2


def usual_kernels(shape: tuple[int, int, int]) -> tuple[int, ...]:
    """The kernels of each layer for an image of this shape."""
    halvings = math.ceil(math.log2(max(shape[:2]) / SMALL))
    return KERNELS[: max(halvings, 1)]
