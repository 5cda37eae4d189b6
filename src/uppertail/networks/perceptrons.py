"""Multilayer perceptrons: their settings, their layers, and one of them per action (Implementation Details)."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.networks.base import EncodedNetwork, NetworkBuilder
from uppertail.schema import settle
from uppertail.types import PyTree

MOST_LAYERS = 1_000
"""The most hidden layers: more would take minutes to compile, if they fit into memory."""

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
class Perceptron:
    """How the outputs of one perceptron follow from its arrays."""

    encoding: Encoding
    activation: Activation = "elu"
    normalization: Normalization = "none"

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
        return dataclasses.replace(network, form=Perceptron(encoding, self.activation, self.normalization))


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

    Without biases and with one-hot states, no parameter is shared by all states.
    """

    weights: tuple[Float[Array, "actions _inputs _outputs"], ...]
    biases: tuple[Float[Array, "actions _outputs"], ...]  # or none
    encoder: PyTree  # shared by all actions
    form: Perceptron = eqx.field(static=True)

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
        return cls(weights, biases, encoder, Perceptron(encoding))

    @property
    def encoding(self) -> Encoding:
        return self.form.encoding

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        perceptrons = jax.vmap(self.form.outputs, in_axes=(None, 0, 0, None))
        return perceptrons(self.encoder, self.weights, self.biases, observation)
