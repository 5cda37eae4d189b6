"""Multilayer perceptrons: their settings, and one of them per action (Implementation Details)."""

import dataclasses
import itertools
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.networks.base import EncodedNetwork, NetworkBuilder
from uppertail.networks.layers import Activation, Normalization, Perceptron
from uppertail.schema import settle
from uppertail.types import PyTree

MOST_LAYERS = 1_000
"""The most hidden layers: more would take minutes to compile, if they fit into memory."""


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
    """

    width: int = 64
    hidden_layers: int = 1
    bias: bool = False
    activation: Activation = "elu"
    normalization: Normalization = "none"

    def __post_init__(self) -> None:
        settle(self)
        for name in ("width", "hidden_layers"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: use a whole number, 1 or more.")
        if self.hidden_layers > MOST_LAYERS:
            raise InputError(f"hidden_layers is {self.hidden_layers}: use {MOST_LAYERS} at most.")
        if self.members is not None and self.members < 2:
            raise InputError(
                f"members is {self.members}, but members can differ only if there are 2: use a whole number, 2 or "
                "more, or --network PerAction for a single network."
            )

    def per_action(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, outputs: int) -> "PerActionNetwork":
        """New perceptrons of these settings, one per action, and the encoding's own arrays."""
        encoder = encoding.init(jax.random.fold_in(key, num_actions))
        sizes = (encoding.num_features, *(self.width,) * self.hidden_layers, outputs)
        network = PerActionNetwork.init(key, encoding, sizes, num_actions, self.bias, encoder)
        return dataclasses.replace(network, activation=self.activation, normalization=self.normalization)


@dataclasses.dataclass(frozen=True)
class PerAction(Perceptrons):
    """A multilayer perceptron for each action: networks of different actions share nothing.

    Its settings are those of `Perceptrons`.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.encodings import OneHot
        >>> network = ut.PerAction(width=8).init(jax.random.key(0), OneHot(5), num_actions=3, num_outputs=2)
        >>> network.outputs(jnp.array(4)).shape  # actions, outputs
        (3, 2)
    """

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "PerActionNetwork":
        return self.per_action(key, encoding, num_actions, num_outputs)


class PerActionNetwork(EncodedNetwork):
    """A multilayer perceptron for each action; the leading axis of every weight and bias is the action.

    `biases` is empty for a network without biases: then, with one-hot states, no parameter is shared by all states.
    `encoder`, shared by all actions, holds the encoding's own arrays.
    """

    weights: tuple[Float[Array, "actions _inputs _outputs"], ...]
    biases: tuple[Float[Array, "actions _outputs"], ...]
    encoder: PyTree
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
        encoder: PyTree = (),
    ) -> Self:
        """Glorot-uniform weights and zero biases; `sizes` are those of features, hidden layers and outputs."""
        glorot = jax.nn.initializers.glorot_uniform(batch_axis=0)
        keys = jax.random.split(key, len(sizes) - 1)
        shapes = list(itertools.pairwise(sizes))
        weights = tuple(glorot(k, (num_actions, *shape)) for k, shape in zip(keys, shapes, strict=True))
        biases = tuple(jnp.zeros((num_actions, outputs)) for _, outputs in shapes) if bias else ()
        return cls(weights, biases, encoder, encoding)

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        perceptrons = jax.vmap(self.form.outputs, in_axes=(None, 0, 0, None))
        return perceptrons(self.encoder, self.weights, self.biases, observation)

    @property
    def form(self) -> Perceptron:
        """How the outputs of one action follow from its arrays."""
        return Perceptron(self.encoding, self.activation, self.normalization)
