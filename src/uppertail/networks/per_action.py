"""One perceptron per action (Implementation Details): networks of different actions share nothing."""

import dataclasses
import itertools
from typing import Any, Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import InputError, require_choice
from uppertail.networks.base import NetworkBuilder
from uppertail.networks.by_action import DividedNetwork
from uppertail.networks.layers import ACTIVATIONS, NORMALIZATIONS, Activation, Normalization
from uppertail.types import PyTree

OutputInit = Literal["glorot", "zero"]
"""The names of `--network.output_init`."""


@dataclasses.dataclass(frozen=True)
class PerAction(NetworkBuilder):
    """A multilayer perceptron for each action.

    Args:
        width: units in each hidden layer.
        hidden_layers: number of hidden layers of each action's network.
        bias: whether the layers have biases. See docs/decisions for why they do not.
        activation: what hidden units go through: elu (the paper's), relu, tanh or silu.
        normalization: what is done to hidden units before that: none, layer or rms.
        output_init: how the weights of the last layer start: glorot, or zero, where all states begin exactly alike.
    """

    width: int = 256
    hidden_layers: int = 2
    bias: bool = False
    activation: Activation = "elu"
    normalization: Normalization = "none"
    output_init: OutputInit = "glorot"

    def __post_init__(self) -> None:
        for name in ("width", "hidden_layers"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
                raise InputError(f"{name} is {value}: use a whole number, 1 or more, below 2^31.")
        if not isinstance(self.bias, bool):
            raise InputError(f"bias is {self.bias!r}: use true or false.")
        require_choice("activation", self.activation, list(ACTIVATIONS))
        require_choice("normalization", self.normalization, list(NORMALIZATIONS))
        require_choice("output_init", self.output_init, ["glorot", "zero"])

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "PerActionNetwork":
        encoder = encoding.init(jax.random.fold_in(key, num_actions))
        sizes = (encoding.num_features, *(self.width,) * self.hidden_layers, num_outputs)
        network = PerActionNetwork.init(key, encoding, sizes, num_actions, self.bias, encoder)
        if self.output_init == "zero":
            weights = (*network.weights[:-1], jnp.zeros_like(network.weights[-1]))
            network = dataclasses.replace(network, weights=weights)
        return dataclasses.replace(network, activation=self.activation, normalization=self.normalization)


class PerActionNetwork(DividedNetwork):
    """A multilayer perceptron for each action; the leading axis of every weight and bias is the action.

    `biases` is empty for a network without biases: then, with one-hot states, no parameter is shared by all states.
    `encoder`, shared by all actions, is what the encoding of the observations learns or keeps of them.
    """

    weights: tuple[Float[Array, "actions _inputs _outputs"], ...]
    biases: tuple[Float[Array, "actions _outputs"], ...]
    encoder: Any
    encoding: Encoding = eqx.field(static=True)
    activation: Activation = eqx.field(static=True, default="elu")
    normalization: Normalization = eqx.field(static=True, default="none")

    @classmethod
    def init(
        cls,
        key: PRNGKeyArray,
        encoding: Encoding,
        sizes: tuple[int, ...],
        num_actions: int,
        bias: bool,
        encoder: Any = (),
    ) -> Self:
        """Glorot-uniform weights and zero biases.

        Args:
            key: randomness of the weights.
            encoding: turns an observation into the input of the first layer.
            sizes: number of features, of units in each hidden layer, and of outputs.
            num_actions: how many networks.
            bias: whether the layers have biases.
            encoder: what the encoding begins with.
        """
        glorot = jax.nn.initializers.glorot_uniform(batch_axis=0)
        keys = jax.random.split(key, len(sizes) - 1)
        shapes = list(itertools.pairwise(sizes))
        weights = tuple(glorot(k, (num_actions, *shape)) for k, shape in zip(keys, shapes, strict=True))
        biases = tuple(jnp.zeros((num_actions, outputs)) for _, outputs in shapes) if bias else ()
        return cls(weights, biases, encoder, encoding)

    @property
    def num_actions(self) -> int:
        """How many networks there are."""
        return self.weights[0].shape[0]

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        perceptrons = jax.vmap(self._outputs_of_one, in_axes=(0, 0, None))
        return perceptrons(self.weights, self.biases, observation)

    def observe(self, observations: Array) -> Self:
        return dataclasses.replace(self, encoder=self.encoding.observe(self.encoder, observations))

    def remark(self) -> str | None:
        return self.encoding.remark(self.encoder)

    @property
    def own(self) -> PyTree:
        """The arrays that belong to one action each; their leading axis is the action."""
        return self.weights, self.biases

    @property
    def shared(self) -> PyTree:
        """The arrays that belong to all actions."""
        return self.encoder

    def rebuilt(self, own: PyTree, shared: PyTree) -> Self:
        """A network of this kind from other arrays."""
        weights, biases = own
        return dataclasses.replace(self, weights=weights, biases=biases, encoder=shared)

    def _outputs_of_one(
        self,
        weights: tuple[Float[Array, "_inputs _outputs"], ...],
        biases: tuple[Float[Array, " _outputs"], ...],
        observation: Array,
    ) -> Float[Array, " outputs"]:
        """The outputs of one action's perceptron for one observation."""
        activate, normalize = ACTIVATIONS[self.activation], NORMALIZATIONS[self.normalization]
        hidden = self.encoding.project(self.encoder, weights[0], observation)
        for layer, weight in enumerate(weights[1:]):
            if biases:
                hidden = hidden + biases[layer]
            hidden = activate(normalize(hidden)) @ weight
        return hidden + biases[-1] if biases else hidden
