"""Observations that are hashed: the hash of each, and its place."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uppertail.encodings import Encoding, Hashed, HashedStates
from uppertail.encodings.hashed import TRIED, hash_of, hashes_of, place_of
from uppertail.environments import Gym
from uppertail.errors import InputError
from uppertail.parts import PARTS

DIFFERENT: list[Any] = [
    *(0, 1, -1, 0.5, "0", "", (), (0,), ((0,),), {"a": 0}, {"b": 0}, {"a": 0, "b": 0}, None),
    *(
        np.zeros(2),
        np.zeros((2, 1)),
        np.zeros((1, 2)),
        np.array([0, 1]),
        np.array([1, 0]),
        ("a", "b"),
        ("ab",),
        ("a", "b", ""),
    ),
    *({"a": "b"}, ("a", {"b": ()}), np.array([0.1]), np.array([0.1 + 1e-7])),
]


def test_different_observations_have_different_hashes_and_equal_ones_the_same() -> None:
    many = 2**60
    hashes = [place_of(each, many) for each in DIFFERENT]
    clashes = [pair for pair in itertools.combinations(range(len(hashes)), 2) if hashes[pair[0]] == hashes[pair[1]]]
    assert clashes == []
    assert place_of({"a": 1, "b": "x"}, many) == place_of({"b": "x", "a": 1}, many)
    assert place_of(np.array([0.0]), many) == place_of(np.array([-0.0]), many)
    assert place_of(np.uint8(3), many) == place_of(3, many) == place_of(np.int64(3), many)
    assert place_of([1, 2], many) == place_of((1, 2), many)
    assert place_of("a key", 4096) == 2546, "the same in every process, on every machine"


def test_hashes_fill_their_places_evenly() -> None:
    counts = np.bincount(
        [place_of(np.array([x, y], np.uint8), 100) for x in range(100) for y in range(100)], minlength=100
    )
    assert counts.size == 100 and abs(counts - 100).max() < 50


def test_background_does_not_tell_states_apart() -> None:
    """Two fields of three numbers: an object is its three numbers at its place, and all that is no image counts."""
    wall, empty, ball, box = [2, 5, 0], [1, 0, 0], [6, 0, 2], [7, 0, 2]

    def hashes(*fields: list[int], heading: int = 0) -> list[int]:
        seen = {"view": np.array([fields], np.uint8), "heading": heading, "others": (np.zeros(2),)}
        return hashes_of(seen, np.array([wall, empty])).tolist()

    state, whole = hashes(wall, ball)
    assert hashes(empty, ball)[0] == state and hashes(empty, ball)[1] != whole
    different = [[ball, wall], [wall, box], [ball, ball], [wall, wall]]
    others = {state, hashes(wall, ball, heading=1)[0], *(hashes(*fields)[0] for fields in different)}
    assert len(others) == 6
    assert whole == int(hash_of({"view": np.array([[wall, ball]]), "heading": 0, "others": (np.zeros(2),)}))


def test_the_first_of_two_hashes_tells_states_apart() -> None:
    encoding, firsts = Hashed(1024), drawn(300)
    both = jnp.stack([jnp.asarray(firsts), jnp.arange(300)], axis=1)
    alone = encoding.observe(encoding.init(jax.random.key(0)), jnp.asarray(firsts))
    encoder = encoding.observe(encoding.init(jax.random.key(0)), both)
    assert (np.asarray(encoder) == np.asarray(alone)).all()
    places = jax.vmap(encoding.index, in_axes=(None, 0))(encoder, both.at[:, 1].add(1))
    assert len(set(places.tolist())) == 300


def drawn(count: int) -> np.ndarray:
    """So many different observations, hashed."""
    return np.array([hash_of(("observation", each)) for each in range(count)], np.int32)


def shown(encoding: Encoding, encoder: Any, observations: np.ndarray) -> np.ndarray:
    """The place in which each is shown."""
    rows = jnp.arange(float(encoding.num_features))[:, None]
    return np.asarray(jax.vmap(lambda each: encoding.project(encoder, rows, each)[0])(jnp.asarray(observations)))


def test_observations_that_are_hashed_have_places_of_their_own_and_keep_them() -> None:
    encoding = HashedStates(1000).encoding(Gym("CartPole-v1").preferences)
    assert encoding == HashedStates(1024).encoding(Gym("CartPole-v1").preferences) == Hashed(1024)
    first, later = np.split(drawn(700), [300])
    half = encoding.observe(encoding.init(jax.random.key(0)), jnp.asarray(first))
    places = shown(encoding, half, first)
    assert len(set(places)) == 300
    whole = encoding.observe(encoding.observe(half, jnp.asarray(later)), jnp.asarray(first))
    assert (shown(encoding, whole, first) == places).all()
    assert len(set(shown(encoding, whole, np.concatenate([first, later])))) == 700


def test_a_hashed_observation_that_is_new_is_shown_where_nothing_was_learned() -> None:
    encoding, seen, new = Hashed(1024), drawn(500), drawn(700)[500:]
    encoder = encoding.observe(encoding.init(jax.random.key(0)), jnp.asarray(seen))
    assert not set(shown(encoding, encoder, seen)) & set(shown(encoding, encoder, new))


def test_as_many_as_are_tried_all_find_a_place() -> None:
    """All the places that are tried differ: in a table of so many, nobody is turned away."""
    encoding, observations = Hashed(TRIED), drawn(TRIED)
    encoder = encoding.observe(encoding.init(jax.random.key(0)), jnp.asarray(observations))
    assert len(set(shown(encoding, encoder, observations))) == TRIED


@pytest.mark.parametrize(("count", "told"), [(1, False), (3600, False), (3800, True), (4096, True), (9000, True)])
def test_a_full_table_is_told(count: int, told: bool) -> None:
    """The truth: observations that are shown where another was before them. It is told once they may be one in 100."""
    encoding, observations = Hashed(4096), drawn(count)
    encoder = encoding.observe(encoding.init(jax.random.key(0)), jnp.asarray(observations))
    shared = count - len(set(shown(encoding, encoder, observations)))
    assert told or shared <= 0.01 * count
    remark = encoding.remark(jnp.stack([encoding.init(jax.random.key(0)), encoder]))
    assert (remark is not None) == told
    assert remark is None or "with a larger --env.hash_size, such as 16384, fewer do" in remark


def test_what_has_no_place_leaves_the_others_theirs() -> None:
    encoding, (observations, others) = Hashed(64), np.split(drawn(1000), 2)
    full = encoding.observe(encoding.init(jax.random.key(0)), jnp.asarray(observations))
    again = encoding.observe(full, jnp.asarray(others))
    assert (np.asarray(full) == np.asarray(again)).all()
    held = np.asarray(full, np.int64) @ [2**16, 1]
    assert held.size == 64 and np.isin(held, observations).all()


NETWORKS = [*PARTS["network"].classes.values()]


@pytest.mark.parametrize("kind", NETWORKS)
def test_every_network_tells_of_a_full_table(kind: Any) -> None:
    network = kind(width=4).init(jax.random.key(0), Hashed(16), num_actions=2, num_outputs=1)
    full = network.observe(jnp.asarray(drawn(200)))
    remarks = [jax.tree.map(lambda leaf: leaf[None], each).remark() for each in (network, full)]
    assert remarks[0] is None and "16 of 16 places" in str(remarks[1])


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_network_can_see_as_another_one_does(kind: Any) -> None:
    before = kind(width=4).init(jax.random.key(0), Hashed(16), num_actions=2, num_outputs=1)
    after = before.observe(jnp.array([5, 70_000]))
    again = before.with_observed(after)
    assert [leaf.tolist() for leaf in jax.tree.leaves(again)] == [leaf.tolist() for leaf in jax.tree.leaves(after)]
    assert [leaf.tolist() for leaf in jax.tree.leaves(before)] != [leaf.tolist() for leaf in jax.tree.leaves(after)]


@pytest.mark.parametrize("places", [0, 1000])
def test_places_are_a_power_of_two(places: int) -> None:
    with pytest.raises(InputError, match=f"places is {places}: use a power of 2"):
        Hashed(places)
