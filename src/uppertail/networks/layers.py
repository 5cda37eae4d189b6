"""One perceptron: how its outputs follow from its arrays, by the names of its activation and its normalization."""

import dataclasses
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from uppertail.encodings import Encoding
from uppertail.types import PyTree

Hidden = Float[Array, " units"]
Weights = tuple[Float[Array, "_inputs _outputs"], ...]
Biases = tuple[Float[Array, " _outputs"], ...]

Activation = Literal["elu", "relu", "tanh", "silu"]
"""The names of `--network.activation`."""

Normalization = Literal["none", "layer", "rms"]
"""The names of `--network.normalization`."""

TINY = 1e-6
"""Added to a variance before its root is taken."""


def elu(x: Hidden) -> Hidden:
    """x above 0, exp(x) - 1 below; as precise as sums of units need it, at a third of the price of expm1."""
    return jnp.where(x > 0, x, jnp.exp(jnp.where(x > 0, 0.0, x)) - 1.0)


def layer_normalized(x: Hidden) -> Hidden:
    """Units with mean 0 and variance 1 (Ba et al. 2016), without learned scales."""
    return rms_normalized(x - jnp.mean(x))


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
    "layer": layer_normalized,
    "rms": rms_normalized,
}


@dataclasses.dataclass(frozen=True)
class Perceptron:
    """How the outputs of one perceptron follow from its arrays.

    Args:
        encoding: turns an observation into the input of the first layer.
        activation: what hidden units go through.
        normalization: what is done to hidden units before that.
    """

    encoding: Encoding
    activation: Activation
    normalization: Normalization

    def outputs(
        self, encoder: PyTree, weights: Weights, biases: Biases, observation: Array, masks: tuple[Array, ...] = ()
    ) -> Float[Array, " outputs"]:
        """The outputs for one observation; no `biases`: there are none; `masks` multiply the units of hidden layers."""
        activate, normalize = ACTIVATIONS[self.activation], NORMALIZATIONS[self.normalization]
        values = self.encoding.project(encoder, weights[0], observation)
        for layer, weight in enumerate(weights):
            values = values if layer == 0 else values @ weight
            values = values + biases[layer] if biases else values
            if layer < len(weights) - 1:
                values = activate(normalize(values))
                values = values * masks[layer] if masks else values
        return values
