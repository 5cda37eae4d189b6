"""One ELU network per action (Implementation Details): networks of different actions share nothing."""

import itertools
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding


class PerActionNetwork(eqx.Module):
    """A multilayer perceptron for each action; the leading axis of every array is the action.

    `biases` is empty for a network without biases: then, with one-hot states, no parameter is shared by all states.
    `encoder`, shared by all actions, is what the encoding of the observations learns or keeps of them.
    """

    weights: tuple[Float[Array, "actions _inputs _outputs"], ...]
    biases: tuple[Float[Array, "actions _outputs"], ...]
    encoder: Any = ()

    @classmethod
    def init(cls, key: PRNGKeyArray, sizes: tuple[int, ...], num_actions: int, bias: bool, encoder: Any = ()) -> Self:
        """Glorot-uniform weights and zero biases.

        Args:
            key: randomness of the weights.
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
        return cls(weights, biases, encoder)

    @property
    def num_actions(self) -> int:
        """How many networks there are."""
        return self.weights[0].shape[0]

    @property
    def per_action(self) -> Any:
        """The arrays that belong to one action each; their leading axis is the action."""
        return self.weights, self.biases

    def __call__(self, encoding: Encoding, observation: Array) -> Float[Array, "actions outputs"]:
        """The outputs of every action's network for one observation."""
        perceptrons = jax.vmap(_perceptron, in_axes=(0, 0, None, None, None))
        return perceptrons(self.weights, self.biases, encoding, self.encoder, observation)


def _perceptron(
    weights: tuple[Float[Array, "_inputs _outputs"], ...],
    biases: tuple[Float[Array, " _outputs"], ...],
    encoding: Encoding,
    encoder: Any,
    observation: Array,
) -> Float[Array, " outputs"]:
    """The network of one action for one observation."""
    hidden = encoding.project(encoder, weights[0], observation)
    for layer, weight in enumerate(weights[1:]):
        if biases:
            hidden = hidden + biases[layer]
        hidden = elu(hidden) @ weight
    return hidden + biases[-1] if biases else hidden


def elu(x: Float[Array, " units"]) -> Float[Array, " units"]:
    """x above 0, exp(x) - 1 below; as precise as sums of units need it, at a third of the price of expm1."""
    return jnp.where(x > 0, x, jnp.exp(jnp.where(x > 0, 0.0, x)) - 1.0)
