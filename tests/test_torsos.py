"""Torsos against convolutions and products by hand in float64, and what of them is learned."""

import dataclasses
import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uppertail.distributions import Gaussian
from uppertail.encodings import Encoding, Image, OneHot, RandomFeatures, Vector
from uppertail.encodings.vector import Bounds
from uppertail.errors import InputError
from uppertail.evidence import NoEvidence
from uppertail.learners import GradientDescent
from uppertail.networks import NetworkBuilder, PerAction
from uppertail.networks.layers import TINY, Convolutions, Dense, Learned, Units, usual_kernels
from uppertail.parts import PARTS
from uppertail.targets import Online, Periodic, RunningMean
from uppertail.training.method import Method, resolved
from uppertail.training.settings import Settings

ACTIONS, OUTPUTS = 3, 2
VECTOR = Vector((-math.inf, -1.0, 0.0), (math.inf, 1.0, 1.0))
NUMBERS = np.random.default_rng(0).uniform(0, 1, (6, 3)).astype(np.float32)
PIXELS = np.random.default_rng(1).integers(0, 256, (10, 9, 4), np.uint8)


def elu(sums: np.ndarray) -> np.ndarray:
    return np.where(sums > 0, sums, np.expm1(np.minimum(sums, 0)))


def convolved(image: np.ndarray, kernels: np.ndarray, stride: int) -> np.ndarray:
    """A 3x3 convolution, padded with zeros so that one in `stride` pixels comes out, rounded up; no activation.

    What is odd of the padding goes below and to the right.
    """
    sides = [-(-size // stride) for size in image.shape[:2]]
    pads = [max(stride * (out - 1) + 3 - size, 0) for out, size in zip(sides, image.shape[:2], strict=True)]
    padded = np.pad(image, [*((pad // 2, pad - pad // 2) for pad in pads), (0, 0)])
    sums = np.zeros((*sides, kernels.shape[3]))
    for row, column in np.ndindex(*sides):
        top, left = stride * row, stride * column
        sums[row, column] = np.einsum("hwc,hwco->o", padded[top : top + 3, left : left + 3], kernels)
    return sums


def moved(arrays: Any) -> Any:
    """Arrays far from their start: no bias is zero."""
    return jax.tree.map(lambda leaf: leaf + 0.3 * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape), arrays)


@pytest.mark.parametrize("first", [False, True], ids=["channels last", "channels first"])
@pytest.mark.parametrize(
    ("shape", "kernels", "stride"),
    [((8, 8, 1), (5,), 2), ((9, 13, 3), (4, 6), 1), ((17, 10, 2), (3, 4, 5), 2), ((10, 10, 7), (4,), 3)],
    ids=str,
)
def test_convolutions_are_those_by_hand(
    shape: tuple[int, int, int], kernels: tuple[int, ...], stride: int, first: bool
) -> None:
    torso = Convolutions(Image(*shape, channels_first=first), kernels, Units(), True, stride)
    learned = moved(torso.init(jax.random.key(5)))
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    expected = pixels / 255
    for weight, bias in zip(learned.weights, learned.biases, strict=True):
        expected = elu(convolved(expected, np.asarray(weight, np.float64), stride) + np.asarray(bias, np.float64))
    assert (torso.image_shape, torso.num_features) == (expected.shape, expected.size)
    ours = torso.features(learned, jnp.asarray(np.moveaxis(pixels, -1, 0) if first else pixels))
    np.testing.assert_allclose(ours, expected.reshape(-1), rtol=1e-4, atol=1e-4)
    assert expected.std() > 0.1


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("below", [OneHot(6), VECTOR, RandomFeatures(VECTOR, 8), Image(10, 9, 4)], ids=str)
def test_dense_layers_are_products_by_hand(below: Encoding, bias: bool) -> None:
    torso = Dense(below, (7, 5), Units("tanh", "rms"), bias)
    learned = moved(torso.observe(torso.init(jax.random.key(5)), jnp.asarray(NUMBERS)))
    observation = jnp.asarray({OneHot: np.array(4), Image: PIXELS}.get(type(below), NUMBERS[2]))
    values = below.gain * np.asarray(below.features(learned.below, observation), np.float64)
    for place, weight in enumerate(learned.weights):
        values = values @ np.asarray(weight, np.float64)
        values = values + np.asarray(learned.biases[place], np.float64) if bias else values
        values = np.tanh(values / np.sqrt(np.mean(values**2) + TINY))
    assert torso.num_features == 5 and len(learned.biases) == 2 * bias
    np.testing.assert_allclose(torso.features(learned, observation), values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("sides", "layers"), [((8, 8), 1), ((16, 16), 1), ((17, 8), 2), ((32, 9), 2), ((84, 84), 4), ((210, 160), 4)]
)
def test_images_get_convolutions_until_they_are_small(sides: tuple[int, int], layers: int) -> None:
    kernels = usual_kernels((*sides, 3))
    assert kernels == (16, 32, 64, 64)[:layers]
    torso = PerAction().torso_on(Image(*sides, 3))
    assert torso == Convolutions(Image(*sides, 3), kernels, Units(), False, 2)
    weights = torso.init(jax.random.key(0)).weights
    for weight, (inputs, outputs) in zip(weights, itertools.pairwise((3, *kernels)), strict=True):
        assert weight.shape == (3, 3, inputs, outputs)
        bound = math.sqrt(6 / (9 * (inputs + outputs)))  # Glorot
        assert 0.95 * bound <= np.abs(weight).max() <= bound * (1 + 1e-6)


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        (Image(8, 8, 1), (3e-4, (0.9, 0.999), 1e-8, True, "relu", -3.0)),
        (VECTOR, (1e-3, (0.0, 0.9), 1e-4, None, None, None)),
    ],
)
def test_images_have_defaults_of_their_own(encoding: Encoding, expected: tuple[Any, ...]) -> None:
    method, settings = resolved(Method(learner=GradientDescent(), evidence=NoEvidence()), Settings(), encoding)
    network, family = method.network, method.distribution
    assert isinstance(network, PerAction)
    assert isinstance(family, Gaussian)
    found = (
        settings.learning_rate,
        settings.adam_betas,
        settings.adam_epsilon,
        network.bias,
        network.activation,
        family.std_bias,
    )
    assert found == expected


def test_what_a_user_gives_is_kept_for_images() -> None:
    network, family = PerAction(activation="tanh", width=8, bias=False), Gaussian(std_bias=0.5)
    asked = Settings(learning_rate=0.1, adam_betas=(0.5, 0.6), adam_epsilon=0.01)
    method, settings = resolved(Method(family, network=network), asked, Image(8, 8, 1))
    assert (settings.learning_rate, settings.adam_betas, settings.adam_epsilon) == (0.1, (0.5, 0.6), 0.01)
    assert method.distribution == family
    assert method.network == PerAction(activation="tanh", width=8, bias=False)


@pytest.mark.parametrize(
    ("encoding", "expected"), [(Image(8, 8, 1), (4, 1, Periodic(every=250))), (VECTOR, (16, 4, Online()))]
)
def test_images_are_learned_from_less_fresh_data_and_by_a_copy(encoding: Encoding, expected: tuple[Any, ...]) -> None:
    alone = Method(learner=GradientDescent(), evidence=NoEvidence())
    method, settings = resolved(alone, Settings(), encoding)
    assert (settings.rollout_steps, settings.updates_per_rollout, method.target) == expected
    asked = Settings(rollout_steps=8, updates_per_rollout=3)
    method, settings = resolved(dataclasses.replace(alone, target=RunningMean()), asked, encoding)
    assert (settings.rollout_steps, settings.updates_per_rollout, method.target) == (8, 3, RunningMean())


@pytest.mark.parametrize(
    ("settings", "below", "expected"),
    [
        ({}, VECTOR, VECTOR),
        ({"torso": "mlp", "width": 9}, VECTOR, Dense(VECTOR, (9,), Units(), False)),
        ({"torso": "mlp", "torso_widths": ()}, Image(8, 8, 1), Image(8, 8, 1)),
        ({"torso_widths": (4, 3), "bias": True}, OneHot(5), Dense(OneHot(5), (4, 3), Units(), True)),
        (
            {"kernels": (4,), "stride": 1, "torso_widths": (3,), "activation": "relu"},
            Image(8, 8, 1),
            Dense(Convolutions(Image(8, 8, 1), (4,), Units("relu"), False, 1), (3,), Units("relu"), False),
        ),
    ],
)
def test_a_torso_is_that_of_the_settings(settings: dict[str, Any], below: Encoding, expected: Encoding) -> None:
    assert PerAction(**settings).torso_on(below) == expected


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"torso": "conv"}, r"^The torso has convolutions, but observations enter as Vector, which is no image: leave"),
        ({"kernels": (4,)}, r"^The torso has convolutions, but observations enter as Vector, which is no image: leave"),
        ({"torso": "mlp", "kernels": (4,)}, r"^kernels is \[4\], but torso is mlp: leave one out, or use --network"),
        ({"kernels": (4, 0)}, r"^kernels is \[4, 0\]: use whole numbers, 1 or more"),
        ({"torso_widths": (-1,)}, r"^torso_widths is \[-1\]: use whole numbers, 1 or more"),
        ({"stride": 0}, "^stride is 0: use a whole number, 1 or more"),
    ],
)
@pytest.mark.parametrize("kind", ["PerAction", "Ensemble"])
def test_a_torso_that_cannot_be_is_a_sentence(kind: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        PARTS["network"].classes[kind](**settings).init(jax.random.key(0), VECTOR, ACTIONS, OUTPUTS)


# Networks on a torso

BUILT_IN = [
    kind(width=5, torso_widths=(6,), kernels=(4,), **{} if name == "PerAction" else {"members": 2})
    for name, kind in PARTS["network"].classes.items()
    if name != "Twin"  # which has no torso
]


@pytest.mark.parametrize("builder", BUILT_IN, ids=lambda builder: type(builder).__name__)
def test_all_actions_and_members_share_a_torso_and_each_of_them_moves_it(builder: NetworkBuilder) -> None:
    network: Any = builder.init(jax.random.key(0), Image(10, 9, 4), ACTIONS, OUTPUTS)
    assert [leaf.shape for leaf in jax.tree.leaves(network.encoder)] == [(3, 3, 4, 4), (100, 6)]

    def total(network: Any, action: Any) -> jax.Array:
        return jnp.sum(network.outputs(jnp.asarray(PIXELS))[..., action, :] ** 2)

    gradients = jax.jit(jax.vmap(jax.grad(total), in_axes=(None, 0)))(network, jnp.arange(ACTIONS))
    for leaf in jax.tree.leaves(gradients.encoder):
        assert (np.abs(leaf).reshape(ACTIONS, -1).max(axis=1) > 0).all()


def test_perceptrons_take_the_torsos_units() -> None:
    network = PerAction(width=5, torso_widths=(6,), kernels=(4,)).init(
        jax.random.key(0), Image(10, 9, 4), ACTIONS, OUTPUTS
    )
    dense, (kernels,) = network.encoder.weights[0], network.encoder.below.weights
    units = elu(elu(convolved(PIXELS / 255, np.asarray(kernels, float), 2)).reshape(-1) @ np.asarray(dense, float))
    for action, outputs in enumerate(np.asarray(network.outputs(jnp.asarray(PIXELS)))):
        first, last = (np.asarray(weight[action], float) for weight in network.weights)
        np.testing.assert_allclose(outputs, elu(units @ first) @ last, rtol=1e-4, atol=1e-5)


@functools.cache
def two_networks(kind: str) -> tuple[Any, Any]:
    """Networks on a torso on a vector, of different keys, that have seen different observations."""
    builder = PARTS["network"].classes[kind](width=4, torso="mlp")
    first, second = (builder.init(jax.random.key(key), VECTOR, ACTIONS, OUTPUTS) for key in (0, 1))
    return first.observe(jnp.asarray(NUMBERS[:3])), second.observe(jnp.asarray(NUMBERS))


@pytest.mark.parametrize("kind", [kind for kind in PARTS["network"].kinds if kind != "Twin"])
def test_a_running_mean_has_a_torso_of_its_own_and_the_bounds_of_what_was_seen(kind: str) -> None:
    mean, online = two_networks(kind)
    target = RunningMean()
    bootstrapping = target.network(target.init(mean), online).encoder
    assert isinstance(bootstrapping, Learned) and isinstance(bootstrapping.below, Bounds)
    np.testing.assert_array_equal(bootstrapping.weights[0], mean.encoder.weights[0])
    assert (mean.encoder.weights[0] != online.encoder.weights[0]).any()
    np.testing.assert_array_equal(bootstrapping.below.high, NUMBERS.max(axis=0))
    assert (mean.encoder.below.high != online.encoder.below.high).any()


def test_a_torso_tells_the_bounds_of_what_was_seen() -> None:
    _, network = two_networks("PerAction")
    np.testing.assert_array_equal(network.seen_bounds(), [NUMBERS.min(axis=0), NUMBERS.max(axis=0)])
    assert network.remark() is None
