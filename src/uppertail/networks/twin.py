"""Perceptrons that all actions share, two of them, of which the lower prediction counts."""

import dataclasses
import functools
import itertools
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.networks import layers
from uppertail.networks.base import EncodedNetwork, NetworkBuilder, mean_of_parts
from uppertail.schema import settle
from uppertail.types import PyTree, Rescaling


@dataclasses.dataclass(frozen=True)
class Twin(NetworkBuilder):
    """Critics that learn the same targets from different first weights; to act and to bootstrap takes the lower one.

    Errors of one network that are too high are chosen by its own policy, and spread; two networks seldom have the same
    ones (clipped double Q-learning, Fujimoto et al. 2018). Where there is chance, the lower one is too low, so beside
    evidence the mean of both counts the more, the more often an action was tried (`GradientDescent.stochastic`). All
    actions share the hidden layers, and outputs start at 0. Of images, both see the same convolutions, those of
    `PerAction`.

    Args:
        width: units in each hidden layer.
        hidden_layers: number of hidden layers.
        critics: how many there are; 1: a single network.
        normalization: normalization of the hidden units: none, layer or rms.

    Examples:
        >>> from uppertail.encodings import OneHot
        >>> network = ut.Twin(width=8).init(jax.random.key(0), OneHot(5), num_actions=3, num_outputs=2)
        >>> network.outputs(jnp.array(4)).shape  # critics, actions, outputs
        (2, 3, 2)
    """

    can_rescale: ClassVar[bool] = True
    width: int = 128
    hidden_layers: int = 2
    critics: int = 2
    normalization: layers.Normalization = "layer"

    def __post_init__(self) -> None:
        settle(self)
        for name in ("width", "hidden_layers", "critics"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: use a whole number, 1 or more.")

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "TwinNetwork":
        if encoding.image_shape:
            kernels = layers.usual_kernels(encoding.image_shape)
            encoding = layers.Convolutions(encoding, kernels, layers.Units("relu"), True)
        sizes = (encoding.num_features, *(self.width,) * self.hidden_layers)
        orthogonal = jax.nn.initializers.orthogonal(2**0.5)
        keys = jax.random.split(key, (self.hidden_layers, self.critics))
        weights = list[Array]()
        for of_layer, shape in zip(keys, itertools.pairwise(sizes), strict=True):
            # one after another: side by side, decompositions of large layers wait for threads that the others hold
            after = jnp.where(jnp.isnan(weights[-1]).any(), keys[0], of_layer) if weights else of_layer
            weights.append(jax.vmap(lambda each, shape=shape: orthogonal(each, shape))(after))
        biases = tuple(jnp.zeros((self.critics, self.width)) for _ in weights)
        heads = jnp.zeros((self.critics, self.width, num_actions, num_outputs))
        encoder, units = encoding.init(jax.random.fold_in(key, num_actions)), layers.Units("relu", self.normalization)
        return TwinNetwork(encoding, units, tuple(weights), biases, heads, heads[:, 0], encoder)


class TwinNetwork(EncodedNetwork):
    """The critics, whose arrays have a leading axis."""

    encoding: Encoding = eqx.field(static=True)
    units: layers.Units = eqx.field(static=True)
    weights: tuple[Float[Array, "critics _inputs _outputs"], ...]
    biases: tuple[Float[Array, "critics width"], ...]
    heads: Float[Array, "critics width actions outputs"]
    offsets: Float[Array, "critics actions outputs"]
    encoder: PyTree  # shared by the critics
    sizes: tuple[int, ...] | None = eqx.field(static=True, default=None)  # of the numbers that actions are made of

    def outputs(self, observation: Array) -> Float[Array, "critics actions outputs"]:
        def of_critic(weights: tuple[Array, ...], biases: tuple[Array, ...], heads: Array, offsets: Array) -> Array:
            values = self.units(self.encoding.project(self.encoder, weights[0], observation) + biases[0])
            for weight, bias in zip(weights[1:], biases[1:], strict=True):
                values = self.units(values @ weight + bias)
            outputs = jnp.tensordot(values, heads, 1) + offsets
            return outputs if self.sizes is None else jnp.asarray(mean_of_parts(self.sizes)) @ outputs

        return jax.vmap(of_critic)(self.weights, self.biases, self.heads, self.offsets)

    def combining(self, sizes: tuple[int, ...]) -> Self:
        return dataclasses.replace(self, sizes=sizes)

    def predictions(self, family: Any, observation: Array) -> PyTree:
        return jax.vmap(jax.vmap(family.from_outputs))(self.outputs(observation))

    def returns(self, family: Any, observation: Array) -> PyTree:
        lowest = functools.reduce(jax.vmap(family.lower), self.each(family, observation))
        return jax.tree.map(lambda leaf: leaf[None], lowest)

    def doubted(self, family: Any, observation: Array, doubt: Float[Array, " actions"]) -> PyTree:
        mixed, mean = jax.vmap(family.mixed), self.each(family, observation)
        for n in range(1, len(mean)):
            mean[n] = mixed(jnp.full_like(doubt, 1.0 / (n + 1)), mean[n], mean[n - 1])
        lowest = self.returns(family, observation)
        return jax.vmap(mixed, in_axes=(None, 0, 0))(doubt, lowest, jax.tree.map(lambda leaf: leaf[None], mean[-1]))

    def each(self, family: Any, observation: Array) -> list[PyTree]:
        """The returns that each critic predicts, with a leading axis of the actions."""
        critics = self.predictions(family, observation)
        return [jax.tree.map(lambda leaf, n=n: leaf[n], critics) for n in range(self.heads.shape[0])]

    def rescaled(self, rescaling: Rescaling) -> Self:
        factor, shift = rescaling.factor[None, None], rescaling.shift[None, None]
        heads, offsets = self.heads * factor[None], self.offsets * factor + shift
        return dataclasses.replace(self, heads=heads, offsets=offsets)
