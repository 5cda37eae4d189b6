"""Multilayer perceptrons: their settings, their layers, and one of them per action (Implementation Details)."""

import dataclasses
import itertools
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.networks import layers
from uppertail.networks.base import EncodedNetwork, NetworkBuilder
from uppertail.schema import settle
from uppertail.types import PyTree

PLAIN = layers.Units()
MOST_LAYERS = 1_000  # the most hidden layers: more would take minutes to compile, if they fit into memory


@dataclasses.dataclass(frozen=True)
class Perceptrons(NetworkBuilder):
    """Builds networks of perceptrons, one per action: the settings that all of them share.

    Args:
        width: units in each hidden layer.
        hidden_layers: number of hidden layers of each perceptron.
        bias: whether the layers have biases; null: true for images, false else.
        activation: function of the hidden units: elu (the paper's), relu, tanh or silu; null: relu for images, else
            elu.
        normalization: normalization of the hidden units before it: none, layer or rms.
        torso: layers that all actions share, below the perceptrons. mlp: dense layers. conv: convolutions of an image,
            then dense layers. auto: conv for images; for all else, dense layers if torso_widths is given.
        torso_widths: units of each dense layer of the torso, for example [128]; null: one layer of `width` units if
            torso is mlp, else none.
        kernels: kernels of each convolution, for example [16, 32]; each kernel sees 3x3 pixels. null: 16, 32, 64, 64;
            of these, as many as halve the image until no side is longer than 8.
        stride: pixels from one place of a kernel to the next; 2 halves the image.

    Examples:
        >>> ut.PerAction(width=8, hidden_layers=2, activation="relu").normalization
        'none'
    """

    width: int = 64
    hidden_layers: int = 1
    bias: bool | None = None
    activation: layers.Activation | None = None
    normalization: layers.Normalization = "none"
    torso: layers.TorsoName = "auto"
    torso_widths: tuple[int, ...] | None = None
    kernels: tuple[int, ...] | None = None
    stride: int = 2

    def __post_init__(self) -> None:
        settle(self)
        for name in ("width", "hidden_layers", "stride"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: use a whole number, 1 or more.")
        for name in ("torso_widths", "kernels"):
            if min(sizes := getattr(self, name) or (1,)) < 1:
                raise InputError(f"{name} is {list(sizes)}: use whole numbers, 1 or more.")
        if self.torso == "mlp" and self.kernels:
            raise InputError(
                f"kernels is {list(self.kernels)}, but torso is mlp: leave one out, or use --network.torso conv."
            )
        if self.hidden_layers > MOST_LAYERS:
            raise InputError(f"hidden_layers is {self.hidden_layers}: use {MOST_LAYERS} at most.")
        if self.members is not None and self.members < 2:
            raise InputError(
                f"members is {self.members}, but members can differ only if there are 2: use a whole number, 2 or "
                "more, or --network PerAction for a single network."
            )

    @property
    def units(self) -> layers.Units:
        """What becomes of the sums of a hidden layer."""
        return layers.Units(self.activation or "elu", self.normalization)

    def for_images(self) -> Self:
        bias = True if self.bias is None else self.bias
        return dataclasses.replace(self, bias=bias, activation=self.activation or "relu")

    def with_torso(self) -> Self:
        bias = True if self.bias is None else self.bias
        return dataclasses.replace(self, bias=bias, torso="mlp" if self.torso == "auto" else self.torso)

    def torso_on(self, encoding: Encoding) -> Encoding:
        """The encoding with the layers of the torso on it; InputError for convolutions of what is no image."""
        image, widths = encoding.image_shape, self.torso_widths
        if image and self.torso != "mlp":
            kernels = self.kernels or layers.usual_kernels(image)
            encoding = layers.Convolutions(encoding, kernels, self.units, bool(self.bias), self.stride)
        elif self.torso == "conv" or self.kernels:
            raise InputError(
                f"The torso has convolutions, but observations enter as {type(encoding).__name__}, which is no image: "
                "leave torso and kernels out, or use an environment that shows images of at least 10 x 10 pixels."
            )
        if widths is None and self.torso == "mlp":
            widths = (self.width,)
        return layers.Dense(encoding, widths, self.units, bool(self.bias)) if widths else encoding

    def per_action(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, outputs: int) -> "PerActionNetwork":
        """New perceptrons of these settings, one per action, and the encoding's own arrays."""
        encoding = self.torso_on(encoding)
        encoder = encoding.init(jax.random.fold_in(key, num_actions))
        sizes = (encoding.num_features, *(self.width,) * self.hidden_layers, outputs)
        return PerActionNetwork.init(key, encoding, sizes, num_actions, bool(self.bias), encoder, self.units)


@dataclasses.dataclass(frozen=True)
class PerAction(Perceptrons):
    """A multilayer perceptron for each action; actions share nothing but a torso, if there is one.

    Its settings are those of `Perceptrons`.

    Examples:
        >>> from uppertail.encodings import OneHot
        >>> network = ut.PerAction(width=8).init(jax.random.key(0), OneHot(5), num_actions=3, num_outputs=2)
        >>> network.outputs(jnp.array(4)).shape  # actions, outputs
        (3, 2)
    """

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "PerActionNetwork":
        return self.per_action(key, encoding, num_actions, num_outputs)


class PerceptronNetwork(EncodedNetwork):
    """A network of perceptrons that have the same layers."""

    encoding: Encoding = eqx.field(static=True)
    units: layers.Units = eqx.field(static=True)

    def perceptron(
        self, encoder: PyTree, weights: PyTree, biases: PyTree, observation: Array, masks: tuple[Array, ...] = ()
    ) -> Float[Array, " outputs"]:
        """The outputs of one perceptron; no `biases`: there are none; `masks` multiply the units of hidden layers."""
        values = self.encoding.project(encoder, weights[0], observation)
        for layer, weight in enumerate(weights):
            values = values if layer == 0 else values @ weight
            values = values + biases[layer] if biases else values
            if layer < len(weights) - 1:
                values = self.units(values)
                values = values * masks[layer] if masks else values
        return values

    def of_members(self, encoder: PyTree, own: PyTree, observation: Array) -> Float[Array, "members actions outputs"]:
        """The outputs of perceptrons whose weights and biases have leading axes [actions, members]."""
        of_each, (weights, biases) = jax.vmap(self.perceptron, in_axes=(None, 0, 0, None)), own
        return jax.vmap(of_each, in_axes=(None, 0, 0, None), out_axes=1)(encoder, weights, biases, observation)


class PerActionNetwork(PerceptronNetwork):
    """A multilayer perceptron for each action; the leading axis of every weight and bias is the action.

    Without biases and with one-hot states, no parameter is shared by all states.
    """

    weights: tuple[Float[Array, "actions _inputs _outputs"], ...]
    biases: tuple[Float[Array, "actions _outputs"], ...]  # or none
    encoder: PyTree  # shared by all actions

    @classmethod
    def init(
        cls,
        key: PRNGKeyArray,
        encoding: Encoding,
        sizes: tuple[int, ...],
        num_actions: int,
        bias: bool,
        encoder: PyTree = (),
        units: layers.Units = PLAIN,
    ) -> Self:
        """Glorot-uniform weights and zero biases; `sizes` are those of features, hidden layers and outputs."""
        glorot = jax.nn.initializers.glorot_uniform(batch_axis=0)
        keys, shapes = jax.random.split(key, len(sizes) - 1), list(itertools.pairwise(sizes))
        weights = tuple(glorot(k, (num_actions, *shape)) for k, shape in zip(keys, shapes, strict=True))
        biases = tuple(jnp.zeros((num_actions, outputs)) for _, outputs in shapes) if bias else ()
        return cls(encoding, units, weights, biases, encoder)

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        perceptrons = jax.vmap(self.perceptron, in_axes=(None, 0, 0, None))
        return perceptrons(self.encoder, self.weights, self.biases, observation)
