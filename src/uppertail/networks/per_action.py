"""One perceptron per action (Implementation Details): networks of different actions share nothing."""

import dataclasses
import itertools
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.networks.base import EncodedNetwork
from uppertail.networks.layers import Activation, Normalization
from uppertail.networks.perceptrons import Perceptron, Perceptrons
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class PerAction(Perceptrons):
    """A multilayer perceptron for each action.

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

    def __post_init__(self) -> None:
        self.require_layers()

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "PerActionNetwork":
        return perceptrons_of(self, key, encoding, num_actions, num_outputs)


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
        """Glorot-uniform weights and zero biases.

        Args:
            key: randomness of the weights.
            encoding: turns an observation into the input of the first layer.
            sizes: number of features, of units in each hidden layer, and of outputs.
            num_actions: how many networks.
            bias: whether the layers have biases.
            encoder: the encoding's own arrays.
        """
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


def perceptrons_of(
    settings: Perceptrons, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int
) -> PerActionNetwork:
    """New perceptrons of these settings, one per action, and the encoding's own arrays."""
    encoder = encoding.init(jax.random.fold_in(key, num_actions))
    sizes = (encoding.num_features, *(settings.width,) * settings.hidden_layers, num_outputs)
    network = PerActionNetwork.init(key, encoding, sizes, num_actions, settings.bias, encoder)
    return dataclasses.replace(network, activation=settings.activation, normalization=settings.normalization)
