"""experiments/chance/colosseum.py: sizes, chances and rewards of its tables by their definitions, and exact values."""

import dataclasses
import math
from typing import Any

import jax
import numpy as np
import pytest
import scipy.stats

import uppertail as ut
from experiments.chance.colosseum import COMMUNICATING, ERGODIC, Colosseum, average_reward, two_points
from experiments.chance.play import measure
from experiments.chance.tasks import TASKS

KEY = jax.random.key(0)


def dense(mdp: ut.FiniteMDP) -> tuple[np.ndarray, np.ndarray]:
    """P[s, a, s'] and the mean reward R[s, a]."""
    states, actions, _ = mdp.next_state.shape
    chance, (state, action) = np.zeros((states, actions, states)), np.ogrid[:states, :actions]
    np.add.at(chance, (state[..., None], action[..., None], np.asarray(mdp.next_state)), np.asarray(mdp.probability))
    return chance, np.sum(np.asarray(mdp.probability) * np.asarray(mdp.reward), axis=2)


@pytest.mark.parametrize("beta", [(1.0, 0.11), (0.3, 49.0), (399.0, 1.0), (4.0, 4.0)])
def test_two_points_have_the_moments_of_the_beta(beta: Any) -> None:
    points = two_points(beta)
    assert all(0 < value < 1 and 0 < chance < 1 for value, chance in points)
    for power in range(4):
        moment = sum(chance * value**power for value, chance in points)
        np.testing.assert_allclose(moment, 1 if power == 0 else scipy.stats.beta(*beta).moment(power), rtol=1e-9)


@pytest.mark.slow
def test_all_tables_have_their_sizes_and_are_distributions() -> None:
    """Triangles, grids, grids with four directions, rooms with doors; 12 cells of 6 + 3 requests of the taxi."""
    assert (len(ERGODIC), len(COMMUNICATING)) == (20, 20)
    for of in [*ERGODIC, *COMMUNICATING]:
        if of.size > 16 and of.kind != "RiverSwim":
            continue  # they are built like the smaller ones, and slowly
        mdp, row = dataclasses.replace(of, layouts=1).build(KEY), math.isqrt(of.rooms)
        states = {
            "RiverSwim": of.size,
            "SimpleGrid": of.size**2,
            "FrozenLake": of.size**2,
            "MiniGridEmpty": 4 * of.size**2,
            "MiniGridRooms": 4 * (of.rooms * of.size**2 + 2 * row * (row - 1)),
            "Taxi": 12 * 9,
        }
        actions = {"RiverSwim": 2, "SimpleGrid": 5, "FrozenLake": 4, "Taxi": 6}.get(of.kind, 3)
        assert mdp.num_actions == actions and mdp.num_states == states.get(of.kind, mdp.num_states)
        np.testing.assert_allclose(np.asarray(mdp.probability).sum(axis=2), 1.0, atol=1e-5)
        assert np.asarray(mdp.reward).min() >= 0 and np.asarray(mdp.reward).max() <= 1
        assert mdp.start_state.shape[0] == {"Taxi": 72}.get(of.kind, of.starts)
    assert Colosseum("DeepSea", 6, betas=False).build(KEY).num_states == 21


def test_the_river_by_hand() -> None:
    """Lazy 0.1, random 0.2: the chosen way with 0.9 * 0.9, the other with 0.9 * 0.1; the chosen action is paid."""
    chance, reward = dense(Colosseum("RiverSwim", 4, 0.1, 0.2, betas=False).build(KEY))
    np.testing.assert_allclose(chance[1, 1], [0.09, 0.1, 0.81, 0], atol=1e-6)
    np.testing.assert_allclose(chance[3, 0], [0, 0, 0.81, 0.19], atol=1e-6)
    np.testing.assert_allclose(reward, [[0.005, 0], [0, 0], [0, 0], [0, 1]], atol=1e-6)
    _, drawn = dense(Colosseum("RiverSwim", 4).build(KEY))
    np.testing.assert_allclose(drawn[[0, 1, 3], [0, 0, 1]], [0.2, 0.02, 0.9], atol=1e-6)


def test_mean_rewards_in_the_long_run_by_hand() -> None:
    """Always right pays 1 in the last state, so the rate is 0.81 to 0.09 detailed balance; the sea pays 1 once in 5
    steps, or at least 1 / 25 for a single move to the left."""
    weights = 9.0 ** np.arange(4)
    river = Colosseum("RiverSwim", 4, 0.1, 0.2, betas=False).build(KEY)
    np.testing.assert_allclose(average_reward(river), weights[-1] / weights.sum(), rtol=1e-5)
    sea = Colosseum("DeepSea", 5, betas=False).build(KEY)
    np.testing.assert_allclose([average_reward(sea), average_reward(sea, -1.0)], [1 / 5, 1 / 25 / 5], atol=1e-5)
    grid = Colosseum("SimpleGrid", 3, betas=False).build(KEY)
    np.testing.assert_allclose([average_reward(grid), average_reward(grid, -1.0)], [1.0, 0.0], atol=1e-5)


def test_goals_pay_and_taxis_are_paid_for_deliveries() -> None:
    empty = Colosseum("MiniGridEmpty", 3, betas=False, starts=3).build(KEY)
    np.testing.assert_allclose(average_reward(empty), 1.0, atol=1e-5)  # it turns around at the goal
    _, reward = dense(empty)
    assert (reward[:, 1] == 1).sum() == 4  # the four directions there
    lake = Colosseum("FrozenLake", 4, betas=False, frozen=1.0).build(KEY)
    chance, reward = dense(lake)
    np.testing.assert_allclose(chance[15], np.eye(16)[0] * np.ones((4, 1)))  # the goal leads back
    np.testing.assert_allclose(reward[14], [0.25, 0.0, 0.25, 0.5], atol=1e-6)  # beside the goal, on its last side
    _, reward = dense(Colosseum("Taxi", 4, betas=False).build(KEY))
    assert (reward[:, 5] == 1).sum() == 3  # on board, at each of the three ranks
    np.testing.assert_allclose(np.unique(reward[:, 4]), [0.0, 0.1], atol=1e-6)
    np.testing.assert_allclose(reward[:, :4], 0.1, atol=1e-6)


def test_each_seed_draws_a_layout() -> None:
    """Within a compiled run, too: goals differ between seeds, and all rewards are 1 at the goal."""
    tables = jax.jit(jax.vmap(Colosseum("MiniGridEmpty", 3, betas=False, starts=2).build))(jax.random.split(KEY, 16))
    goals = {tuple(np.flatnonzero(rewards.sum(axis=(1, 2)))) for rewards in np.asarray(tables.reward)}
    assert len(goals) > 1 and tables.start_state.shape == (16, 2)


@pytest.mark.slow
def test_little_is_lost_in_a_tenth_of_the_steps() -> None:
    """DeepSea, a lake, a grid with four directions, a river and a taxi, as docs/chance.md has them."""
    for table, most in ((0, 0.13), (3, 0.06), (7, 0.2), (14, 0.05), (19, 0.2)):
        task = TASKS[f"communicating_{table}"]._replace(steps=50_000)
        found = measure(task, "least_squares", [7919, 7920], 0.995, {})
        assert max(found["normalized_regret"]) < most and found["good_seeds"] == 2, (table, found["normalized_regret"])
