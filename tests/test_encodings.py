"""Encodings of vectors and images against float64 NumPy, and that no update moves what they keep."""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from uppertail.agent import Agent
from uppertail.distributions import Gaussian
from uppertail.encodings import Encoding, Image, RandomFeatures, Vector
from uppertail.encodings.random_features import SCALES, Waves, cosine
from uppertail.encodings.vector import Bounds
from uppertail.errors import InputError
from uppertail.learners import GradientDescent, Gradients
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.networks import PerAction
from uppertail.policies import Greedy
from uppertail.replay import Sample, Uniform
from uppertail.targets import Online
from uppertail.types import POLICY_CHOICE, Transition

INF = math.inf
ACTIONS = 2
VECTOR = Vector((-INF, -1.0, 0.0), (INF, 1.0, 1.0))
OBSERVATIONS = np.random.default_rng(0).uniform(0, 1, (6, 3)).astype(np.float32)


def scaled(vector: Vector, seen: list[np.ndarray], observation: np.ndarray) -> np.ndarray:
    """The network's input, in float64."""
    encoder = vector.init(jax.random.key(0))
    for batch in seen:
        encoder = vector.observe(encoder, jnp.asarray(batch, jnp.float32))
    ours = vector.scaled(encoder, jnp.asarray(observation, jnp.float32))
    assert ours.dtype == jnp.float32
    return np.asarray(ours, np.float64)


def test_declared_bounds_become_minus_1_and_1() -> None:
    random = np.random.default_rng(0)
    low, high = np.array([-2.0, 0.0, 5.0]), np.array([2.0, 10.0, 6.0])
    vector = Vector(tuple(low), tuple(high))
    np.testing.assert_allclose(scaled(vector, [], low), [-1, -1, -1])
    np.testing.assert_allclose(scaled(vector, [], high), [1, 1, 1])
    np.testing.assert_allclose(scaled(vector, [], np.array([0.0, 7.5, 5.25])), [0, 0.5, -0.5])
    seen = [random.normal(size=(5, 3)) * 100]
    np.testing.assert_allclose(scaled(vector, seen, np.array([4.0, -10.0, 7.0])), [2, -3, 3])  # whatever was seen


def test_without_declared_bounds_those_of_all_batches_count() -> None:
    """Also where only one of the two is declared."""
    random, vector = np.random.default_rng(0), Vector((-INF, 0.0, -INF), (INF, INF, 7.0))
    batches = [random.normal(size=(count, 3)).astype(np.float32) * [1, 5, 0.1] for count in (4, 1, 6)]
    everything = np.concatenate(batches).astype(np.float64)
    low, high = everything.min(axis=0), everything.max(axis=0)
    for observation in (low, high, everything[3], np.array([3.0, -40.0, 1.0])):
        expected = 2 * (observation - low) / (high - low) - 1
        np.testing.assert_allclose(scaled(vector, batches, observation), expected, rtol=1e-4, atol=1e-5)


def test_each_place_goes_its_own_way() -> None:
    """Declared; running; declared between 0 and 1; declared constant; seen constant; declared, but for one side."""
    vector = Vector((-4.0, -INF, 0.0, 3.0, -INF, -INF), (4.0, INF, 1.0, 3.0, INF, 1.0))
    seen = [np.array([[0.0, 10.0, 0.5, 3.0, 7.0, -1.0], [0.0, 30.0, 0.5, 3.0, 7.0, 0.0]])]
    observation = np.array([1.0, 15.0, 0.25, 3.0, 7.0, 0.0])
    np.testing.assert_allclose(scaled(vector, seen, observation), [0.25, -0.5, 0.25, 0.0, 0.0, 1.0])
    other = np.array([1.0, 15.0, 0.75, 3.5, 9.0, 0.0])
    np.testing.assert_allclose(scaled(vector, seen, other), [0.25, -0.5, 0.75, 0.0, 0.0, 1.0])


def test_what_was_one_hot_stays_one_hot() -> None:
    vector = Vector((0.0,) * 4, (1.0,) * 4)
    for row in np.eye(4):
        np.testing.assert_array_equal(scaled(vector, [np.eye(4)[:1]], row), row)


def test_before_the_first_observation_all_that_is_not_declared_is_0() -> None:
    vector = Vector((-INF, -1.0, 0.0), (INF, 1.0, 1.0))
    np.testing.assert_array_equal(scaled(vector, [], np.array([9.0, 0.5, 0.5])), [0.0, 0.5, 0.5])
    one = np.array([[9.0, 0.5, 0.5]])
    np.testing.assert_array_equal(scaled(vector, [one], one[0]), [0.0, 0.5, 0.5])


@pytest.mark.parametrize("first", [False, True], ids=["channels last", "channels first"])
def test_an_image_is_its_pixels_row_by_row(first: bool) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 13, 3), np.uint8)
    image = Image(9, 13, 3, channels_first=first)
    ours = image.features((), jnp.asarray(np.moveaxis(pixels, -1, 0) if first else pixels))
    assert (image.num_features, image.image_shape) == (9 * 13 * 3, (9, 13, 3))
    np.testing.assert_allclose(ours, pixels.reshape(-1) / 255, rtol=1e-6)


def test_an_image_of_one_channel_may_have_no_axis_for_it() -> None:
    image, pixels = Image(9, 12, 1), np.random.default_rng(0).integers(0, 256, (9, 12), np.uint8)
    flat, deep = (image.features((), jnp.asarray(each)) for each in (pixels, pixels[..., None]))
    np.testing.assert_array_equal(flat, deep)


def test_the_peak_becomes_1() -> None:
    pixels = jnp.asarray([[-3.0, 0.0], [1.5, 3.0]])
    np.testing.assert_allclose(Image(2, 2, 1, peak=3.0).features((), pixels), [-1.0, 0.0, 0.5, 1.0])


@pytest.mark.parametrize("norm", [1.0, 100.0])
def test_random_features_are_cosines_of_the_scaled_numbers(norm: float) -> None:
    random, waves = np.random.default_rng(0), RandomFeatures(VECTOR, 64, 0.5, norm)
    encoder = waves.observe(waves.init(jax.random.key(0)), jnp.asarray(OBSERVATIONS))
    assert isinstance(encoder, Waves)
    assert (waves.num_features, encoder.frequencies.shape, encoder.phases.shape) == (64, (3, 64), (64,))
    weight = random.normal(size=(64, 4)).astype(np.float32)
    for observation in OBSERVATIONS:
        numbers = scaled(VECTOR, [OBSERVATIONS], observation)
        angles = numbers @ np.asarray(encoder.frequencies, float) + np.asarray(encoder.phases, float)
        expected = np.sqrt(2 / 64) * np.cos(angles)
        np.testing.assert_allclose(waves.features(encoder, jnp.asarray(observation)), expected, atol=2e-6)
        ours = waves.project(encoder, jnp.asarray(weight), jnp.asarray(observation))
        projected = norm * np.pi / 128 * np.cos(angles) @ weight  # absolute values sum to the norm
        np.testing.assert_allclose(ours, projected, atol=1e-4 * norm)


@pytest.mark.parametrize("size", [1.0, 10.0, 100.0])
def test_the_cosine_is_numpys_to_float32_rounding_of_the_angle(size: float) -> None:
    angles = np.concatenate([np.linspace(-size, size, 100_001), np.arange(-8, 9) * np.pi / 4]).astype(np.float32)
    rounding = 2 * float(np.finfo(np.float32).eps) * max(size, 3.0)
    np.testing.assert_allclose(cosine(jnp.asarray(angles)), np.cos(angles.astype(float)), rtol=0, atol=rounding)


@pytest.mark.parametrize("length_scale", [0.2, 1.0])
def test_near_observations_share_random_features_and_far_ones_do_not(length_scale: float) -> None:
    """The product of two is the mean over three scales l of exp(- d^2 / 2 l^2), within 5 errors.

    d is the root mean square of the difference of the observations.
    """
    count, entries = 20_000, 6
    waves = RandomFeatures(Vector((-1.0,) * entries, (1.0,) * entries), count, length_scale)
    encoder, random = waves.init(jax.random.key(3)), np.random.default_rng(0)
    start = random.uniform(-1, 1, entries)
    there = [start + shift * random.normal(size=entries) for shift in (0.0, 0.05, 0.2, 0.5, 2.0)]
    features = np.stack([waves.features(encoder, jnp.asarray(each, jnp.float32)) for each in there]).astype(float)
    np.testing.assert_allclose((features**2).sum(axis=1), 1.0, rtol=0.03)
    products = features @ features[0]
    distance = np.sqrt(np.mean((np.stack(there) - start) ** 2, axis=1))
    kernels = [np.exp(-(distance**2) / (2 * (scale * length_scale) ** 2)) for scale in SCALES]
    np.testing.assert_allclose(products, np.mean(kernels, axis=0), atol=5 / np.sqrt(count))


@pytest.mark.parametrize(
    ("count", "length_scale", "norm", "words"),
    [
        (0, 0.2, 1.0, "num_features is 0: use 1"),
        (9, 0.0, 1.0, "length_scale is 0.0: use a number"),
        (9, INF, 1.0, "length_scale is inf"),
        (9, 0.2, 0.0, "feature_norm is 0.0: use a number"),
        (9, 0.2, INF, "norm is inf"),
    ],
)
def test_random_features_refuse_what_cannot_be(count: int, length_scale: float, norm: float, words: str) -> None:
    with pytest.raises(InputError, match=f"^{words}"):
        RandomFeatures(Vector((0.0,), (2.0,)), count, length_scale, norm)


# What is learned


def learner_of(encoding: Encoding) -> GradientLearner:
    optimizer = optax.chain(optax.clip(1.0), optax.adam(0.01))
    parts = Gradients(PerAction(8, 1), Uniform(), Online(), optimizer, 6, 1, 12, 6)
    return GradientDescent().build(Agent(Gaussian(), Greedy(), encoding, 0.5), parts)


def transitions(observations: np.ndarray) -> Transition:
    rows = np.arange(len(observations))
    return Transition(
        jnp.asarray(observations),
        jnp.asarray(rows % ACTIONS),
        jnp.asarray(rows * 0.5, jnp.float32),
        jnp.asarray(rows % 3 == 0),
        jnp.asarray(observations[::-1].copy()),
        jnp.full(len(rows), POLICY_CHOICE),
    )


def sample_of(data: Transition) -> Sample:
    """A minibatch of these transitions, none of them replayed."""
    count = len(data.action)
    return Sample(data, jnp.zeros(0, jnp.int32), jnp.ones(count))


@functools.cache
def after_updates(encoding: Encoding) -> tuple[Any, Any, Any]:
    """What has seen its data, after five updates, and the gradient of the first."""
    learner, data = learner_of(encoding), transitions(OBSERVATIONS)
    begun = learner.init(jax.random.key(0), data.observation, ACTIONS)

    def loss(network: Any) -> jax.Array:
        outputs = jax.vmap(network.outputs)(data.observation)
        return jnp.sum(outputs**2)

    gradient, update, state = jax.jit(jax.grad(loss))(begun.network), jax.jit(learner.update), begun
    for key in jax.random.split(jax.random.key(1), 5):
        state, metrics = update(state, key, sample_of(data))
        assert np.isfinite(metrics.loss)
        assert np.isfinite(metrics.gradient_norm)
    return begun, state, gradient


@pytest.mark.slow
def test_bounds_have_no_gradient_and_no_update_moves_them() -> None:
    begun, state, gradient = after_updates(VECTOR)
    assert isinstance(begun.network.encoder, Bounds)
    for bound in gradient.encoder:
        np.testing.assert_array_equal(bound, 0.0)
    assert all(np.asarray(weight != 0).any() for weight in gradient.weights)
    jax.tree.map(np.testing.assert_array_equal, state.network.encoder, begun.network.encoder)
    assert (state.network.weights[0] != begun.network.weights[0]).any()
    np.testing.assert_array_equal(state.network.encoder.low, OBSERVATIONS.min(axis=0))
    np.testing.assert_array_equal(state.network.encoder.high, OBSERVATIONS.max(axis=0))


@pytest.mark.slow
def test_what_random_features_drew_has_no_gradient_and_no_update_moves_it() -> None:
    begun, state, gradient = after_updates(RandomFeatures(VECTOR, 32))
    for leaf in jax.tree.leaves(gradient.encoder):
        np.testing.assert_array_equal(leaf, 0.0)
    jax.tree.map(np.testing.assert_array_equal, state.network.encoder, begun.network.encoder)
    assert (state.network.weights[0] != begun.network.weights[0]).any()
    np.testing.assert_array_equal(state.network.encoder.bounds.high, OBSERVATIONS.max(axis=0))
    drawn = RandomFeatures(VECTOR, 32).init(jax.random.fold_in(jax.random.key(0), ACTIONS))
    np.testing.assert_array_equal(state.network.encoder.frequencies, drawn.frequencies)


def test_no_update_moves_bounds_that_are_still_infinite() -> None:
    learner, data = learner_of(VECTOR), transitions(OBSERVATIONS)
    begun = learner.init(jax.random.key(0), data.observation, ACTIONS)
    unseen = dataclasses.replace(begun.network, encoder=VECTOR.init(jax.random.key(0)))
    begun = begun._replace(network=unseen)
    state: Any
    state, metrics = jax.jit(learner.update)(begun, jax.random.key(1), sample_of(data))
    assert np.isfinite(metrics.gradient_norm)
    np.testing.assert_array_equal(state.network.encoder.low, INF)
    np.testing.assert_array_equal(state.network.encoder.high, -INF)
    assert all(np.isfinite(weight).all() for weight in state.network.weights)
