"""Prioritized replay against NumPy: probabilities, weights, priorities."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from uppertail.errors import InputError
from uppertail.replay.prioritized import SMALLEST, Prioritized
from uppertail.types import Transition

DRAWS = 40_000


def transitions(count: int, first: int = 0) -> Transition:
    number = jnp.arange(first, first + count, dtype=jnp.int32)
    return Transition(number, number, number.astype(jnp.float32), number < 0, number, number)


def filled(part: Prioritized, capacity: int, count: int) -> Any:
    return part.add(part.init(capacity, jax.tree.map(lambda leaf: leaf[0], transitions(1))), transitions(count))


def priorities(state: Any) -> np.ndarray:
    """The priority of each row."""
    return np.asarray(state.priorities, np.float64).reshape(-1)[: state.ring.transitions.action.shape[0]]


@pytest.mark.slow
@pytest.mark.parametrize(("capacity", "count"), [(1, 1), (7, 7), (30, 23), (36, 36)])
@pytest.mark.parametrize(("alpha", "beta"), [(0.6, 0.4), (1.0, 1.0), (0.0, 0.5)])
def test_probabilities_and_weights(capacity: int, count: int, alpha: float, beta: float) -> None:
    """|loss|^alpha over its sum, and (number * probability)^-beta over the largest of the draw."""
    part, draws = Prioritized(alpha, beta), np.random.default_rng(0)
    losses = draws.exponential(size=count) * draws.choice([-1, 1], count)
    state = part.update(filled(part, capacity, count), jnp.arange(count), jnp.asarray(losses, jnp.float32))
    expected = (np.abs(losses) + SMALLEST) ** alpha
    np.testing.assert_allclose(priorities(state)[:count], expected, rtol=1e-5)
    np.testing.assert_array_equal(priorities(state)[count:], 0.0)
    probabilities = expected / expected.sum()
    drawn = jax.jit(part.sample, static_argnums=2)(state, jax.random.key(1), DRAWS)
    counts = np.bincount(drawn.indices, minlength=count)
    assert len(counts) == count
    if count > 1:
        often = probabilities * DRAWS > 5
        assert (
            scipy.stats.chisquare(
                [*counts[often], counts[~often].sum() + 1e-9],
                [*probabilities[often] * DRAWS, probabilities[~often].sum() * DRAWS + 1e-9],
            ).pvalue
            > 1e-4
        )
    weights = (count * probabilities[np.asarray(drawn.indices)]) ** -beta
    np.testing.assert_allclose(drawn.weights, weights / weights.max(), rtol=1e-4)
    np.testing.assert_array_equal(drawn.transitions.observation, drawn.indices)


@pytest.mark.slow
def test_new_transitions_have_the_highest_priority_so_far() -> None:
    """1 before the first update; then the largest there ever was, also after it has fallen again."""
    part = Prioritized(alpha=1.0)
    state = filled(part, 5, 2)
    np.testing.assert_allclose(priorities(state), [1, 1, 0, 0, 0])
    state = part.update(state, jnp.array([0]), jnp.array([4.0]))
    state = part.add(state, transitions(2, 2))
    np.testing.assert_allclose(priorities(state), [4, 1, 4, 4, 0], rtol=1e-5)
    state = part.update(state, jnp.array([0, 2]), jnp.array([0.5, 0.25]))
    state = part.add(state, transitions(3, 4))
    np.testing.assert_allclose(priorities(state), [4, 4, 0.25, 4, 4], rtol=1e-5)
    assert np.asarray(state.ring.transitions.observation).tolist() == [5, 6, 2, 3, 4]


def test_data_of_another_origin_leave_no_trace() -> None:
    """Before replay starts, indices lie beyond the buffer: neither priorities nor the highest of them move."""
    part = Prioritized()
    state = filled(part, 5, 3)
    after = part.update(state, jnp.array([5, 6, 2**31 - 1]), jnp.array([9.0, 99.0, 999.0]))
    jax.tree.map(np.testing.assert_array_equal, after, state)


@pytest.mark.slow
def test_a_transition_without_loss_stays_possible() -> None:
    part = Prioritized(alpha=0.6)
    state = part.update(filled(part, 4, 4), jnp.arange(4), jnp.zeros(4))
    drawn = part.sample(state, jax.random.key(0), 1000)
    assert set(np.asarray(drawn.indices).tolist()) == {0, 1, 2, 3}
    assert np.isfinite(drawn.weights).all()


@pytest.mark.slow
def test_what_is_not_stored_is_never_drawn() -> None:
    """A table of priorities has rooms to spare, and a float its rounding: 49,999 rows, of which 30,011 are filled."""
    part = Prioritized()
    state = filled(part, 49_999, 30_011)
    losses = jnp.asarray(np.random.default_rng(0).lognormal(0.0, 3.0, 30_011), jnp.float32)
    state = part.update(state, jnp.arange(30_011), losses)
    drawn = jax.jit(part.sample, static_argnums=2)(state, jax.random.key(0), 100_000)
    assert int(drawn.indices.max()) < 30_011
    assert np.isfinite(drawn.weights).all()
    assert float(drawn.weights.min()) > 0


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Prioritized(alpha=-0.1), "alpha is -0.1: use 0 or more"),
        (lambda: Prioritized(alpha=float("nan")), "alpha is nan"),
        (lambda: Prioritized(beta=1.5), r"beta is 1.5: use a number in \[0, 1\]"),
    ],
)
def test_bad_settings_are_sentences(build: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        build()
