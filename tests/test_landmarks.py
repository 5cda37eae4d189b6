"""Landmarks against the kernel in float64 NumPy, and transitions that stand for others."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.agent import Agent
from uppertail.encodings import Encoding, RandomFeatures, Vector
from uppertail.encodings.landmarks import GROWTH, SCALES, UNEXPLAINED, Landmarks, Places
from uppertail.errors import InputError
from uppertail.learners.transitions import Transitions, gram_of
from uppertail.types import POLICY_CHOICE, Transition

BOTH = Vector((-math.inf,) * 2, (math.inf,) * 2)


def kernel(a: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray, length_scale: float) -> np.ndarray:
    a, b = (2 * (each.astype(float) - low) / (high - low) - 1 for each in (a, b))
    distance = ((a[:, None] - b[None]) ** 2).mean(axis=2)
    return np.mean([np.exp(-distance / (2 * (length_scale * scale) ** 2)) for scale in SCALES], axis=0)


def seen(encoding: Landmarks, points: np.ndarray, batch: int = 10) -> tuple[Places, np.ndarray]:
    places, observe = encoding.init(jax.random.key(0)), jax.jit(encoding.observe)
    for start in range(0, len(points), batch):
        places = observe(places, jnp.asarray(points[start : start + batch]))
    return places, np.asarray(jax.vmap(encoding.features, in_axes=(None, 0))(places, jnp.asarray(points)), float)


def test_products_of_features_are_the_kernel_where_landmarks_explain_it() -> None:
    points = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    places, features = seen(Landmarks(BOTH, 120, 0.3), points)
    count = int(places.used)
    assert 10 < count < 120 and float(places.length_scale) == np.float32(0.3)
    low, high = (np.asarray(bound, float) for bound in places.bounds)
    expected = kernel(points, points, low, high, 0.3)
    left = 1 - (features**2).sum(axis=1)
    assert left.max() < 1.5 * UNEXPLAINED + 0.01  # bounds that grew after a point was seen change its share a little
    np.testing.assert_allclose(features @ features.T, expected, atol=1.6 * UNEXPLAINED + 0.01)
    assert not features[:, count:].any()


def test_far_from_all_landmarks_nothing_is_known() -> None:
    encoding = Landmarks(BOTH, 30, 0.02)
    places, _ = seen(encoding, np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.01]], np.float32))
    assert float(jnp.sum(jnp.square(encoding.features(places, jnp.array([1.0, 0.0]))))) < 1e-6


def test_length_scales_grow_where_there_is_no_room() -> None:
    points = np.random.default_rng(1).uniform(size=(300, 2)).astype(np.float32)
    encoding = Landmarks(BOTH, 12, 0.05)
    places, features = seen(encoding, points)
    assert float(places.length_scale) > 0.1 and int(places.version) > 0
    low, high = (np.asarray(bound, float) for bound in places.bounds)
    expected = kernel(points, points, low, high, float(places.length_scale))
    assert (np.diag(expected) + 1e-3 >= (features**2).sum(axis=1)).all()


def test_random_features_become_two_thirds_as_many_landmarks() -> None:
    assert RandomFeatures(BOTH, 300, 2.0).for_least_squares() == Landmarks(BOTH, 200, 0.6)
    assert BOTH.for_least_squares() is BOTH


class ComputedAnew(Landmarks):
    feature = Encoding.feature


@pytest.mark.parametrize(("kind", "radius"), [(Landmarks, 1.9), (Landmarks, 5.0), (ComputedAnew, 1.9)])
def test_further_landmarks_add_features_to_the_stored_transitions(kind: type[Landmarks], radius: float) -> None:
    random, encoding = np.random.default_rng(6), kind(BOTH, 90, 0.2)
    points = np.r_[[[-2, -2], [2, 2]], random.uniform(-0.2, 0.2, (40, 2)), random.uniform(-radius, radius, (40, 2))]
    observe = jax.jit(encoding.observe)
    before = observe(encoding.init(jax.random.key(0)), jnp.asarray(points[:10], jnp.float32))
    after = observe(before, jnp.asarray(points, jnp.float32))
    grew = bool(before.version != after.version)
    assert grew == (radius > 2)  # beyond the bounds, all features change
    assert int(before.used) > 2 and (grew or int(before.used) + 3 < int(after.used) < 90)
    first = encoding.first_changed(before, after)
    assert int(first) == (0 if grew else int(before.used)) and int(encoding.first_changed(after, after)) >= after.used
    count = 700  # two blocks
    here, there = (jnp.asarray(random.uniform(-2, 2, (count, 2)), jnp.float32) for _ in range(2))
    action, ends = jnp.asarray(random.integers(3, size=count), jnp.int32), jnp.zeros(count, bool)
    fresh = Transition(here, action, here[:, 0], ends, there, jnp.full(count, POLICY_CHOICE, jnp.int32))
    stored = Transitions.none(1024, 2, 90, 3).added(encoding, before, fresh)
    encoded = jax.jit(lambda stored: stored.encoded(encoding, after, first))(stored)
    of_each = jax.jit(jax.vmap(encoding.features, in_axes=(None, 0)))
    for found, observations in ((encoded.rows.features, here), (encoded.rows.next_features, there)):
        np.testing.assert_allclose(found[:count], of_each(after, observations), atol=2e-5)
    expected = [np.asarray(of_each(after, here[action == each]), float) for each in range(3)]
    np.testing.assert_allclose(encoded.gram, [each.T @ each for each in expected], atol=1e-2)


def stored(count: int) -> Transitions:
    random = np.random.default_rng(3)
    none = Transitions.none(512, 2, 4, 2)
    features = random.normal(size=(512, 4)) * (random.random((512, 1)) < 0.2) + 0.1
    there = np.arange(512) < count
    weight = jnp.asarray(there * random.uniform(1, 3, 512), jnp.float32)
    action = jnp.asarray(random.integers(2, size=512), jnp.int32)
    features = jnp.asarray(features * there[:, None], jnp.float32)
    gram = gram_of(features, weight, action, 2)
    size, reward = jnp.asarray(count, jnp.int32), jnp.arange(512.0)
    rows = none.rows._replace(features=features, action=action, reward=reward, weight=weight)
    return Transitions(rows, size, gram)


def test_half_of_the_transitions_stand_for_all_of_them() -> None:
    before = stored(500)
    thinned = jax.jit(jax.vmap(lambda key: before.thinned(key, jnp.asarray(0.1))))(
        jax.random.split(jax.random.key(2), 300)
    )
    sizes = np.asarray(thinned.size)
    assert abs(sizes.mean() - 256) < 5 and sizes.max() < 320
    kept = thinned.rows
    grams = np.asarray(jax.vmap(gram_of, in_axes=(0, 0, 0, None))(kept.features, kept.weight, kept.action, 2))
    error = np.abs(grams.mean(axis=0) - np.asarray(before.gram)) / np.sqrt(np.maximum(grams.var(axis=0), 1e-9) / 300)
    assert error.max() < 5  # standard errors of the mean
    assert np.abs(grams - np.asarray(before.gram)).mean() < 0.1 * np.abs(np.asarray(before.gram)).mean()
    first = jax.tree.map(lambda leaf: np.asarray(leaf[0]), thinned)
    assert (first.rows.weight[: first.size] > 0).all() and not first.rows.weight[first.size :].any()
    rows = first.rows.reward[: first.size].astype(int)
    np.testing.assert_array_equal(first.rows.features[: first.size], np.asarray(before.rows.features)[rows])


def test_a_learner_goes_on_when_its_room_is_full() -> None:
    agent = Agent(ut.Gaussian(scale=1.0), ut.UCB(), RandomFeatures(BOTH, 30), 0.9)
    builder = ut.LeastSquares(transitions=512)
    agent = Agent(agent.family, agent.policy, builder.encoding(agent.encoding), 0.9)
    learner = builder.build(agent, None)
    random, state = np.random.default_rng(0), learner.init(jax.random.key(0), jnp.zeros((1, 2)), 2)
    learn = jax.jit(learner.learn)
    drawn = jnp.asarray(random.uniform(size=(12, 2, 64, 2)), jnp.float32)
    for number, points in enumerate(drawn):
        action, ends = jnp.asarray(random.integers(2, size=64), jnp.int32), jnp.ones(64, bool)
        fresh = Transition(points[0], action, points[0, :, 0], ends, points[1], jnp.full(64, POLICY_CHOICE, jnp.int32))
        state, _ = learn(jax.random.key(number), state, fresh, jnp.asarray(number))
    memory = state.memory
    assert int(memory.total) == 768 and int(memory.transitions.size) <= 512
    assert float(jnp.sum(memory.transitions.rows.weight)) == pytest.approx(768, rel=0.1)
    rewards = jax.vmap(state.network.outputs)(drawn[-1, 0])[:, :, 0]  # every transition ends: the mean is the reward
    np.testing.assert_allclose(rewards, np.repeat(np.asarray(drawn[-1, 0, :, :1]), 2, axis=1), atol=0.1)


@pytest.mark.parametrize(("asked", "room"), [(512, 512), (513, 1024), (16_384, 16_384)])
def test_there_is_room_for_a_whole_number_of_blocks(asked: int, room: int) -> None:
    """A block beyond the last row would be read from earlier rows, which would count twice."""
    agent = Agent(ut.Gaussian(scale=1.0), ut.UCB(), Landmarks(BOTH, 4, 0.3), 0.9)
    learner = ut.LeastSquares(transitions=asked).build(agent, None)
    state = jax.eval_shape(lambda: learner.init(jax.random.key(0), jnp.zeros((1, 2)), 2))
    assert state.memory.transitions.rows.weight.shape == (room,)


def test_only_numbers_without_declared_bounds_change_the_scale() -> None:
    encoding = Landmarks(Vector((-1.0, -math.inf), (1.0, math.inf)), 20, 0.3)
    places = encoding.observe(encoding.init(jax.random.key(0)), jnp.array([[0.0, 0.0], [0.1, 1.0]]))
    declared = encoding.observe(places, jnp.array([[0.9, 0.5]]))
    assert int(declared.version) == int(places.version) and int(declared.used) > int(places.used)
    assert int(encoding.observe(places, jnp.array([[0.0, 1.5]])).version) == int(places.version) + 1


def test_bounds_that_are_exceeded_grow_by_a_share_of_their_span() -> None:
    encoding, places = Landmarks(BOTH, 20, 0.3), None
    low_to_high = []
    for numbers in ([[0.0, 0.0], [1.0, 2.0]], [[1.01, 1.0], [0.5, -1.0]]):
        places = encoding.observe(encoding.init(jax.random.key(0)) if places is None else places, jnp.array(numbers))
        low_to_high.append(np.asarray(places.bounds))
    np.testing.assert_allclose(low_to_high[0], [[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(low_to_high[1], [[0.0, -1.0], [1.0 + GROWTH, 2.0]])


def test_features_that_are_0_change_no_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweeps on the first half of the features, where the others are 0, against the sweeps on all of them."""
    encoding, count = Landmarks(BOTH, 80, 0.3), 100
    agent = Agent(ut.Gaussian(scale=1.0), ut.UCB(), encoding, 0.9)
    points = jnp.asarray(np.random.default_rng(4).uniform(size=(2, count, 2)), jnp.float32)
    action, ends = jnp.arange(count) % 2, jnp.arange(count) % 5 == 0
    fresh = Transition(points[0], action, points[0, :, 0], ends, points[1], jnp.full(count, POLICY_CHOICE, jnp.int32))
    learned = []
    for parts in (1, 2):
        monkeypatch.setattr("uppertail.learners.features.PARTS", parts)
        learner = ut.LeastSquares(transitions=1024, sweeps=5).build(agent, None)
        state = learner.init(jax.random.key(0), points[0, :1], 2)
        learned.append(jax.jit(learner.learn)(jax.random.key(1), state, fresh, jnp.asarray(0))[0])
    assert int(learned[0].network.encoder.used) <= 40
    whole, half = (np.asarray(state.network.weights) for state in learned)
    np.testing.assert_allclose(half, whole, atol=1e-4 * np.abs(whole).max())
    assert np.abs(whole).max() > 0.1


def test_a_rollout_that_does_not_fit_is_a_sentence() -> None:
    learner = ut.LeastSquares(transitions=512)
    settings = ut.Settings(seeds=1, episodes=2, rollout_steps=256)
    with pytest.raises(InputError, match=r"256 transitions, and transitions is 512: use --learner.transitions 1024"):
        ut.train(ut.RichChain(3, dim=4), settings=settings, learner=learner)


def test_a_number_that_is_left_out_does_not_have_landmarks_chosen_again() -> None:
    """Every restart clears what was learned, and noise that is left out would go on growing."""
    encoding = Landmarks(Vector((-math.inf,) * 2, (math.inf,) * 2, left_out=(1,)), 8, 1.0)
    places = encoding.observe(encoding.init(jax.random.key(0)), jnp.array([[0.0, 0.0], [1.0, 1.0]]))
    assert int(encoding.observe(places, jnp.array([[0.5, 100.0]])).version) == int(places.version)
    assert int(encoding.observe(places, jnp.array([[3.0, 0.0]])).version) == int(places.version) + 1
