"""Multilayer perceptrons: their settings, and how outputs follow from their arrays."""

import dataclasses
from typing import Any, Literal

from jaxtyping import Array, Float

from uppertail.encodings import Encoding
from uppertail.errors import InputError, require_choice
from uppertail.networks.base import NetworkBuilder
from uppertail.networks.layers import ACTIVATIONS, NORMALIZATIONS, Activation, Normalization

OutputInit = Literal["glorot", "zero"]
"""The names of `--network.output_init`."""

Weights = tuple[Float[Array, "_inputs _outputs"], ...]
Biases = tuple[Float[Array, " _outputs"], ...]


@dataclasses.dataclass(frozen=True)
class Perceptrons(NetworkBuilder):
    """What builds networks of perceptrons, one per action: the settings that all of them have.

    Args:
        width: units in each hidden layer.
        hidden_layers: number of hidden layers of each action's network.
        bias: whether the layers have biases.
        activation: what hidden units go through.
        normalization: what is done to hidden units before that.
        output_init: how the weights of the last layer start.
    """

    width: int = 256
    hidden_layers: int = 2
    bias: bool = False
    activation: Activation = "elu"
    normalization: Normalization = "none"
    output_init: OutputInit = "glorot"

    def require_layers(self) -> None:
        """Does nothing if there are such perceptrons.

        Raises:
            InputError: a setting is none that it may be.
        """
        require_count("width", self.width, 1)
        require_count("hidden_layers", self.hidden_layers, 1)
        if not isinstance(self.bias, bool):
            raise InputError(f"bias is {self.bias!r}: use true or false.")
        require_choice("activation", self.activation, list(ACTIVATIONS))
        require_choice("normalization", self.normalization, list(NORMALIZATIONS))
        require_choice("output_init", self.output_init, ["glorot", "zero"])


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
        self, encoder: Any, weights: Weights, biases: Biases, observation: Array, masks: tuple[Array, ...] = ()
    ) -> Float[Array, " outputs"]:
        """The outputs for one observation.

        Args:
            encoder: what the encoding learned or saw.
            weights: those of each layer.
            biases: those of each layer; empty for a perceptron without.
            observation: what is observed.
            masks: what the units of each hidden layer are multiplied by; empty for nothing.
        """
        if len(weights) == 1:
            hidden = self.encoding.project(encoder, weights[0], observation)
        else:
            hidden = self.features(encoder, weights, biases, observation, masks) @ weights[-1]
        return hidden + biases[-1] if biases else hidden

    def features(
        self, encoder: Any, weights: Weights, biases: Biases, observation: Array, masks: tuple[Array, ...] = ()
    ) -> Float[Array, " units"]:
        """The units of the last hidden layer, likewise."""
        activate, normalize = ACTIVATIONS[self.activation], NORMALIZATIONS[self.normalization]
        hidden = self.encoding.project(encoder, weights[0], observation)
        for layer in range(len(weights) - 1):
            hidden = hidden if layer == 0 else hidden @ weights[layer]
            hidden = activate(normalize(hidden + biases[layer] if biases else hidden))
            hidden = hidden * masks[layer] if masks else hidden
        return hidden


def require_count(name: str, value: object, least: int) -> None:
    """Raises InputError unless a setting is a whole number that is not too small."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
        raise InputError(f"{name} is {value}: use a whole number, {least} or more, below 2^31.")


def require_members(members: object) -> None:
    """Raises InputError unless there are enough members to differ."""
    if isinstance(members, bool) or not isinstance(members, int) or not 2 <= members < 2**31:
        raise InputError(
            f"members is {members}, but how far members differ takes at least 2: use a whole number, 2 or more, or "
            "--network PerAction for a single network."
        )
