"""RiverSwim and SixArms against their published tables, and against exact values."""

from typing import Any

import jax
import numpy as np
import pytest

import uppertail as ut
from experiments.tasks.horizon import best_return, mean_return
from uppertail.errors import InputError

KEY = jax.random.key(0)


def transitions(mdp: ut.FiniteMDP) -> tuple[np.ndarray, np.ndarray]:
    """P[s, a, s'] and the mean reward R[s, a] of a table."""
    states, actions, _ = mdp.next_state.shape
    dense = np.zeros((states, actions, states))
    state, action = np.ogrid[:states, :actions]
    np.add.at(dense, (state[..., None], action[..., None], np.asarray(mdp.next_state)), np.asarray(mdp.probability))
    return dense, np.sum(np.asarray(mdp.probability) * np.asarray(mdp.reward), axis=2)


def test_the_river_is_the_papers() -> None:
    mdp = ut.RiverSwim(length=4).build(KEY)
    chance, reward = transitions(mdp)
    down = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    up = [[0.7, 0.3, 0, 0], [0.1, 0.6, 0.3, 0], [0, 0.1, 0.6, 0.3], [0, 0, 0.7, 0.3]]
    np.testing.assert_allclose(chance, np.stack([down, up], axis=1), atol=1e-6)
    np.testing.assert_allclose(reward, [[5, 0], [0, 0], [0, 0], [0, 3000]], rtol=1e-6)
    assert not np.asarray(mdp.terminated).any()
    assert (mdp.start_state.tolist(), mdp.start_probability.tolist()) == ([1, 2], [0.5, 0.5])


def test_six_arms_are_the_papers() -> None:
    chance, reward = transitions(ut.SixArms().build(KEY))
    enters = [1, 0.15, 0.1, 0.05, 0.03, 0.01]
    for action, p in enumerate(enters):
        expected = np.zeros(7)
        expected[0] += 1 - p
        expected[action + 1] += p
        np.testing.assert_allclose(chance[0, action], expected, atol=1e-6)
    np.testing.assert_array_equal(chance[1, :, 1], [1, 1, 1, 1, 0, 1])
    for arm in range(2, 7):
        np.testing.assert_array_equal(chance[arm, :, arm], np.arange(6) == arm - 1)
        np.testing.assert_array_equal(chance[arm, :, 0], np.arange(6) != arm - 1)
    np.testing.assert_array_equal(reward[0], 0)
    np.testing.assert_array_equal(reward[1], [50, 50, 50, 50, 0, 50])
    np.testing.assert_array_equal(reward[2:].max(axis=1), [133, 300, 800, 1660, 6000])
    assert (reward[2:] > 0).sum() == 5


@pytest.mark.parametrize(
    ("builder", "best"), [(ut.RiverSwim(), 3.336e6), (ut.SixArms(), 2.94e7), (ut.SixArms(scale=0.001), 2.94e4)]
)
def test_the_best_of_5000_steps(builder: Any, best: float) -> None:
    """SixArms by hand: an arm that is entered after 100 steps on average, and 6,000 in each step from then on."""
    np.testing.assert_allclose(best_return(builder.build(KEY)), best, rtol=1e-3)


def test_always_up_earns_the_stationary_rate_of_its_chain() -> None:
    """By detailed balance each state has 3 times the weight of the one before, and the last 3 / 7 of that."""
    weights = np.array([*3.0 ** np.arange(5), 3.0**4 * 3 / 7])
    rate = weights[-1] / weights.sum() * 0.3 * 10_000
    mdp = ut.RiverSwim(time_limit=20_000).build(KEY)
    np.testing.assert_allclose(mean_return(mdp, np.tile([0.0, 1.0], (6, 1))) / 20_000, rate, rtol=1e-3)


@pytest.mark.slow
def test_a_run_of_the_papers_length_is_one_episode_that_holds_all_rewards() -> None:
    result = ut.train(ut.RiverSwim(time_limit=64), settings=ut.Settings(seeds=2, steps=64))
    assert [each.lengths.tolist() for each in result.record.episodes] == [[64], [64]]
    assert all(value is not None and value % 5 == 0 for value in result.record.final_returns)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ut.RiverSwim(length=2), "length is 2, but a river starts in state 1 or 2: use 3 or more"),
        (lambda: ut.RiverSwim(time_limit=0), "time_limit is 0, but an episode has at least 1 step"),
        (lambda: ut.RiverSwim(large=float("inf")), "large is inf: use a finite number"),
        (lambda: ut.SixArms(scale=0.0), "scale is 0.0: use a finite number above 0"),
    ],
)
def test_a_task_that_cannot_be_is_a_sentence(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
