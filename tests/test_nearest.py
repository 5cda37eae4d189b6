"""Nearest, the encoding of states that are seen through noise: its places against a plain loop, and a run with it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uppertail import LeastSquares, RichChain, Settings, train
from uppertail.encodings import Nearest, Numbers, Preferences, VectorSettings
from uppertail.errors import InputError

KEY = jax.random.key(0)
CENTERS = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [3.0, 3.0, 3.0]])


def noisy(count: int) -> np.ndarray:
    """Observations of the centers in turn, with noise."""
    noise = 0.3 * np.random.default_rng(0).normal(size=(count, 3))
    return (CENTERS[np.arange(count) % 4] + noise).astype(np.float32)


def places_by_hand(observations: np.ndarray, places: int, radius: float) -> tuple[list[int], list[np.ndarray]]:
    """The place of each observation when it comes, and the mean of each place's observations."""
    taken, members = [], []
    for each in observations:
        distances = [np.sqrt(np.mean((np.mean(own, axis=0) - each) ** 2)) for own in members]
        nearest = int(np.argmin([*distances, np.inf]))
        if len(members) < places and not any(distance <= radius for distance in distances):
            nearest = len(members)
            members.append([])
        members[nearest].append(each)
        taken.append(nearest)
    return taken, [np.mean(own, axis=0) for own in members]


@pytest.mark.parametrize(("places", "radius"), [(8, 0.9), (8, 0.2), (3, 0.9), (1, 0.9)])
def test_places_are_those_of_a_plain_loop(places: int, radius: float) -> None:
    encoding, observations = Nearest(3, places, radius), noisy(60)
    taken, means = places_by_hand(observations, places, radius)
    index, observe, encoder = jax.jit(encoding.index), jax.jit(encoding.observe), encoding.init(KEY)
    for each, place in zip(observations, taken, strict=True):
        assert index(encoder, jnp.asarray(each)) == place, "also before it is observed"
        encoder = observe(encoder, jnp.asarray(each[None]))
    at_once = encoding.observe(encoding.init(KEY), jnp.asarray(observations))
    for found in (encoder, at_once):
        np.testing.assert_allclose(found.points[: len(means)], means, atol=1e-5)
        np.testing.assert_array_equal(found.visits, np.bincount(taken, minlength=places))
    assert len(means) == {(8, 0.9): 4, (8, 0.2): 8, (3, 0.9): 3, (1, 0.9): 1}[places, radius]


def test_an_observation_is_a_unit_vector_in_its_place() -> None:
    encoding = Nearest(3, 8, 0.9)
    encoder = encoding.observe(encoding.init(KEY), jnp.asarray(noisy(8)))
    third = jnp.array([0.1, 2.8, 0.2])
    np.testing.assert_array_equal(encoding.features(encoder, third), np.eye(8)[2])
    np.testing.assert_array_equal(encoding.features(encoder, 9 * jnp.ones(3)), np.eye(8)[4])
    assert encoding.is_one_hot and encoding.num_features == 8


def test_a_full_table_is_remarked_on() -> None:
    encoding = Nearest(3, 4, 0.9)
    seeds = [encoding.observe(encoding.init(KEY), jnp.asarray(noisy(count))) for count in (3, 4)]
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *seeds)
    assert encoding.remark(jax.tree.map(lambda leaf: leaf[:1], both)) is None
    assert "use a larger --env.radius, or --env.num_features 16" in str(encoding.remark(both))


def test_a_radius_makes_numbers_states() -> None:
    space = Numbers((-np.inf,) * 2, (np.inf,) * 2)
    assert space.encoding(Preferences(vectors=VectorSettings(radius=0.5, num_features=7))) == Nearest(2, 7, 0.5)
    for radius in (0.0, -1.0, np.inf):
        with pytest.raises(InputError, match=f"^radius is {radius}: use a finite number above 0, or null for none."):
            space.encoding(Preferences(vectors=VectorSettings(radius=radius)))


@pytest.mark.slow
def test_a_chain_seen_through_noise_is_learned_as_its_table_is() -> None:
    settings = Settings(seeds=3, episodes=100)
    seen = train(RichChain(20, radius=0.1), settings=settings, learner=LeastSquares()).record.summary()
    assert max(seen["first_success_episode"]) <= 30, "the table behind it needs 20"
    assert min(seen["kept"]) == 1.0
