"""Multilayer perceptrons: their settings, and how outputs follow from their arrays."""

import dataclasses

from jaxtyping import Array, Float

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.networks.base import NetworkBuilder
from uppertail.networks.layers import ACTIVATIONS, NORMALIZATIONS, Activation, Normalization
from uppertail.schema import settle
from uppertail.types import PyTree

MOST_LAYERS = 1_000
"""The most hidden layers: more would take minutes to compile, if they fit into memory."""

Weights = tuple[Float[Array, "_inputs _outputs"], ...]
Biases = tuple[Float[Array, " _outputs"], ...]


@dataclasses.dataclass(frozen=True)
class Perceptrons(NetworkBuilder):
    """Builds networks of perceptrons, one per action: the settings that all of them share.

    Args:
        width: units in each hidden layer.
        hidden_layers: number of hidden layers of each perceptron.
        bias: whether the layers have biases.
        activation: function of the hidden units: elu (the paper's), relu, tanh or silu.
        normalization: normalization of the hidden units before it: none, layer or rms.

    Examples:
        >>> import uppertail as ut
        >>> ut.PerAction(width=8, hidden_layers=2, activation="relu").normalization
        'none'
        >>> from uppertail.networks.perceptrons import Perceptrons
        >>> issubclass(ut.Ensemble, Perceptrons)
        True
    """

    width: int = 64
    hidden_layers: int = 1
    bias: bool = False
    activation: Activation = "elu"
    normalization: Normalization = "none"

    def require_layers(self) -> None:
        """Checks the settings of the layers.

        Raises:
            InputError: a setting is not valid.
        """
        settle(self)
        for name in ("width", "hidden_layers"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: use a whole number, 1 or more.")
        if self.hidden_layers > MOST_LAYERS:
            raise InputError(f"hidden_layers is {self.hidden_layers}: use {MOST_LAYERS} at most.")


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
        """The outputs for one observation.

        Args:
            encoder: the encoding's own arrays.
            weights: weights of each layer.
            biases: biases of each layer; empty for a perceptron without.
            observation: the observation.
            masks: factors for the units of each hidden layer; empty for none.
        """
        if len(weights) == 1:
            hidden = self.encoding.project(encoder, weights[0], observation)
        else:
            hidden = self.features(encoder, weights, biases, observation, masks) @ weights[-1]
        return hidden + biases[-1] if biases else hidden

    def features(
        self, encoder: PyTree, weights: Weights, biases: Biases, observation: Array, masks: tuple[Array, ...] = ()
    ) -> Float[Array, " units"]:
        """The units of the last hidden layer, from the same arguments."""
        activate, normalize = ACTIVATIONS[self.activation], NORMALIZATIONS[self.normalization]
        hidden = self.encoding.project(encoder, weights[0], observation)
        for layer in range(len(weights) - 1):
            hidden = hidden if layer == 0 else hidden @ weights[layer]
            hidden = activate(normalize(hidden + biases[layer] if biases else hidden))
            hidden = hidden * masks[layer] if masks else hidden
        return hidden


def require_members(members: int) -> None:
    """Raises InputError unless there are enough members to differ."""
    if members < 2:
        raise InputError(
            f"members is {members}, but how far members differ takes at least 2: use a whole number, 2 or more, or "
            "--network PerAction for a single network."
        )
