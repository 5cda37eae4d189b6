"""Replay of distinct pairs: against a plain dictionary, exact on tables, and `Uniform` where no pair repeats."""

import functools
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from uppertail.replay.distinct import PairBuffer
from uppertail.replay.fingerprints import fingerprints

from uppertail.errors import InputError
from uppertail.replay import Distinct, Replay, Sample, Uniform
from uppertail.types import Transition

CAPACITY = 6
ACTIONS = 2


class Model:
    """The pairs in the order in which they were first seen, each with the numbers of its latest transitions."""

    def __init__(self, slots: int, latest: int) -> None:
        self.slots, self.latest = slots, latest
        self.held: dict[Any, list[int]] = {}

    def add(self, batch: Sequence[tuple[Any, int]]) -> None:
        for start in range(0, len(batch), self.slots):
            self._add_piece(batch[start : start + self.slots])

    def _add_piece(self, piece: Sequence[tuple[Any, int]]) -> None:
        """Oldest out; a pair that the piece itself would push out and has again is a new one."""
        pairs, out = list(dict.fromkeys(pair for pair, _ in piece)), list[Any]()
        while True:
            new = [pair for pair in pairs if pair not in self.held or pair in out]
            more = list(self.held)[: max(len(self.held) + len(new) - self.slots, 0)]
            if more == out:
                break
            out = more
        for pair in out:
            del self.held[pair]
        self.held |= {pair: [] for pair in new}
        for pair, number in piece:
            self.held[pair] = [*self.held[pair], number][-self.latest :]


@functools.partial(jax.jit, static_argnums=0)
def add(part: Replay, state: Any, batch: Transition) -> Any:
    return part.add(state, batch)


def batch_of(observations: Any, actions: Any, first: int) -> Transition:
    """Transitions that are told apart by their reward, 1, 2, ... over the whole stream."""
    number = np.arange(first, first + len(actions), dtype=np.int32)
    fields: Any = (observations, np.asarray(actions, np.int32), number.astype(np.float32), number % 2 == 0)
    rest: Any = (observations, number)
    return Transition(*fields, *rest)


def contents(state: PairBuffer) -> list[list[int]]:
    """The numbers of the transitions of each pair, oldest pair first; within a pair, oldest first."""
    pairs, slots, latest = int(state.pairs), state.slots, state.latest
    rewards = np.asarray(state.transitions.reward).astype(int).reshape(slots, latest)
    counts, numbers = np.minimum(np.asarray(state.counts), latest), range(max(pairs - slots, 0), pairs)
    return [sorted(rewards[n % slots, : counts[n % slots]].tolist()) for n in numbers]


def test_the_model_by_hand() -> None:
    """Two slots: a, b, then b again and c, which pushes a out; then b and d, where d pushes out b: b begins anew."""
    model = Model(2, 1)
    model.add([("a", 1), ("b", 2)])
    model.add([("b", 3), ("c", 4)])
    assert model.held == {"b": [3], "c": [4]}
    model.add([("b", 5), ("d", 6)])
    assert model.held == {"b": [5], "d": [6]}


VECTORS = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, -1e-9], [-0.5, 3.0], [1e30, 1.0], [0.5, 0.0], [2.0, 2.0]], np.float32)
OBSERVATIONS = {
    "states": np.arange(7, dtype=np.int32),
    "vectors": VECTORS,
    "images": np.random.default_rng(0).integers(0, 3, (7, 3, 2, 1)).astype(np.uint8),
}


@pytest.mark.slow
@pytest.mark.parametrize("latest", [1, 3])
@pytest.mark.parametrize("kind", OBSERVATIONS)
@settings(max_examples=30)
@given(stream=st.lists(st.lists(st.integers(0, 13), min_size=5, max_size=5), min_size=1, max_size=10))
def test_it_holds_what_a_dictionary_would(kind: str, latest: int, stream: list[list[int]]) -> None:
    """Fourteen pairs, six slots or two: pairs repeat within a batch and between them, and push each other out."""
    follow(Distinct(latest), kind, stream)


@settings(max_examples=30)
@given(
    stream=st.lists(
        st.sampled_from([1, 5, 6]).flatmap(lambda n: st.lists(st.integers(0, 6), min_size=n, max_size=n)),
        min_size=1,
        max_size=12,
    )
)
def test_hardly_more_pairs_than_slots(stream: list[list[int]]) -> None:
    """Seven pairs, six slots, batches of all sizes: most of what is seen is held, and about to be pushed out."""
    follow(Distinct(), "states", stream)


@functools.cache
def empty(part: Replay, capacity: int, kind: str) -> Any:
    return part.init(capacity, jax.tree.map(lambda leaf: leaf[0], batch_of(OBSERVATIONS[kind][:1], [0], 0)))


@functools.partial(jax.jit, static_argnums=(0, 3))
def sample(part: Replay, state: Any, key: jax.Array, count: int) -> Sample:
    return part.sample(state, key, count)


def follow(part: Distinct, kind: str, stream: list[list[int]]) -> None:
    """The buffer and the model through one stream of pairs, compared after every batch."""
    observations = OBSERVATIONS[kind]
    state, first = empty(part, CAPACITY, kind), 1
    model = Model(CAPACITY // part.latest, part.latest)
    for batch in stream:
        pairs = [divmod(pair, ACTIONS) for pair in batch]
        where, actions = zip(*pairs, strict=True)
        state = add(part, state, batch_of(observations[list(where)], actions, first))
        model.add([(pair, first + row) for row, pair in enumerate(pairs)])
        first += len(batch)
        assert contents(state) == list(model.held.values())
    by_number = {number: pair for pair, numbers in model.held.items() for number in numbers}
    drawn = jax.tree.map(np.asarray, sample(part, state, jax.random.key(0), 50).transitions)
    for row, number in enumerate(np.asarray(drawn.reward).astype(int).tolist()):
        where, action = by_number[number]
        np.testing.assert_array_equal(drawn.observation[row], observations[where])
        assert (int(drawn.action[row]), int(drawn.next_action[row])) == (action, number)


def test_0_and_minus_0_are_one_pair() -> None:
    observations = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0]], np.float32)
    example = jax.tree.map(lambda leaf: leaf[0], batch_of(observations[:1], [0], 0))
    state = add(Distinct(), Distinct().init(CAPACITY, example), batch_of(observations, [1, 1, 1], 1))
    assert contents(state) == [[2], [3]]


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [20_000, 50_000])
def test_a_table_is_kept_without_exception(capacity: int) -> None:
    """20,000 pairs, 100,000 steps: each pair has one number, which the lookup finds ever after, and its last step."""
    states, actions, size = 5_000, 4, 250
    draws = np.random.default_rng(0)
    pairs = draws.permutation(np.concatenate([np.arange(20_000), draws.integers(0, 20_000, 80_000)]))
    stream = batch_of((pairs // actions).astype(np.int32), pairs % actions, 0)
    batches = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), stream)
    empty = Distinct().init(capacity, jax.tree.map(lambda leaf: leaf[0], stream))
    state, _ = jax.jit(lambda state: jax.lax.scan(lambda s, batch: (Distinct().add(s, batch), None), state, batches))(
        empty
    )
    assert int(state.pairs) == states * actions
    np.testing.assert_array_equal(
        state.counts[:20_000], np.bincount(pairs)[pairs[np.sort(np.unique(pairs, return_index=True)[1])]]
    )
    last = np.zeros(20_000, int)
    last[pairs] = np.arange(len(pairs))
    stored = jax.tree.map(lambda leaf: np.asarray(leaf)[:20_000], state.transitions)
    np.testing.assert_array_equal(stored.next_action, last[stored.observation * actions + stored.action])


def test_where_nothing_repeats_it_holds_and_draws_what_uniform_does() -> None:
    """The same rows with the same key, before and after it is full."""
    draws, shape = np.random.default_rng(1), (2,)
    distinct, uniform = (empty(part, 50, "vectors") for part in (Distinct(), Uniform()))
    for first in range(1, 130, 16):
        batch = batch_of(draws.normal(size=(16, *shape)).astype(np.float32), draws.integers(0, 2, 16), first)
        distinct, uniform = add(Distinct(), distinct, batch), add(Uniform(), uniform, batch)
        jax.tree.map(np.testing.assert_array_equal, distinct.transitions, uniform.transitions)
        ours, theirs = (
            sample(part, state, jax.random.key(first), 40)
            for part, state in ((Distinct(), distinct), (Uniform(), uniform))
        )
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)


@pytest.mark.parametrize("latest", [1, 3])
def test_every_pair_is_drawn_equally_often_and_so_are_its_transitions(latest: int) -> None:
    """One pair was seen twenty times, others once: that is how often they were not drawn."""
    part = Distinct(latest)
    pairs = np.array([0] * 20 + [1] * 2 + [2, 3, 4])
    state = add(part, empty(part, 30, "states"), batch_of(pairs.astype(np.int32), np.zeros(25, int), 1))
    drawn = sample(part, state, jax.random.key(0), 20_000).transitions
    by_pair = np.bincount(drawn.observation)
    assert len(by_pair) == 5
    assert scipy.stats.chisquare(by_pair).pvalue > 1e-4
    numbers = np.asarray(drawn.reward).astype(int)
    kept = {0: range(21 - latest, 21), 1: range(23 - min(latest, 2), 23)}
    for pair, expected in kept.items():
        counts = np.bincount(numbers[np.asarray(drawn.observation) == pair])
        assert set(np.flatnonzero(counts)) == set(expected)
        if latest > 1:
            assert scipy.stats.chisquare(counts[list(expected)]).pvalue > 1e-4


def test_it_never_holds_more_than_its_capacity() -> None:
    example = jax.tree.map(lambda leaf: leaf[0], batch_of(np.zeros(1, np.int32), [0], 0))
    for latest, capacity, slots in ((1, 6, 6), (3, 6, 2), (4, 6, 1), (9, 6, 1)):
        state = Distinct(latest).init(capacity, example)
        assert (state.slots, state.transitions.action.shape[0]) == (slots, slots * min(latest, capacity))
        state = add(Distinct(latest), state, batch_of(np.array([0, 0, 1], np.int32), np.zeros(3, int), 1))
        expected = Model(slots, min(latest, capacity))
        expected.add([(0, 1), (0, 2), (1, 3)])
        assert contents(state) == list(expected.held.values())


def distinct_rows(observations: np.ndarray, actions: np.ndarray) -> int:
    words = np.asarray(jax.jit(fingerprints)(jnp.asarray(observations), jnp.asarray(actions, jnp.int32)))
    return len(np.unique(words[:, 0].astype(np.uint64) << np.uint64(32) | words[:, 1]))


def test_fingerprints_do_not_collide() -> None:
    """Random vectors, a grid of whole numbers, each place of an image changed by one, and every pair of a table."""
    draws, count = np.random.default_rng(0), 100_000
    assert distinct_rows(draws.normal(size=(count, 4)).astype(np.float32), draws.integers(0, 3, count)) == count
    grid = np.stack(np.meshgrid(*[np.arange(10)] * 5, indexing="ij"), axis=-1).reshape(-1, 5)
    assert distinct_rows(grid.astype(np.float32), np.zeros(count, int)) == count
    assert distinct_rows(grid.astype(np.int32), np.zeros(count, int)) == count
    image = draws.integers(1, 255, (16, 16, 1))
    changed = np.stack(
        [image + step * np.eye(256, dtype=int)[place].reshape(16, 16, 1) for place in range(256) for step in (1, -1)]
    )
    assert distinct_rows(changed.astype(np.uint8), np.zeros(512, int)) == 512
    states, actions = np.divmod(np.arange(count, dtype=np.int32), 4)
    assert distinct_rows(states, actions) == distinct_rows(states[:, None], actions) == count


def test_an_observation_s_action_and_places_count() -> None:
    """The same numbers in another order, or another action, are another pair."""
    rows = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]], np.float32)
    assert distinct_rows(rows, np.array([0, 0, 1])) == 3
    assert distinct_rows(rows, np.array([0, 0, 0])) == 2


@pytest.mark.parametrize(
    ("latest", "remedy"),
    [
        (0, "whole number, 1 or more"),
        (-1, "whole number, 1 or more"),
        (2**31, r"below 2\^31"),
        (True, r"whole number\."),
    ],
)
def test_latest_is_a_whole_number(latest: Any, remedy: str) -> None:
    with pytest.raises(InputError, match=rf"latest is {latest}: use a .*{remedy}"):
        Distinct(latest)
