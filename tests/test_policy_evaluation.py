"""Learned against exact: the distances of distributions that are known, and how they are summed up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from experiments.paper import policy_evaluation
from experiments.paper.against_exact import against_exact, reachable_states
from experiments.paper.form import PARTS
from experiments.paper.policy_evaluation import UNIFORM
from experiments.paper.snapshots import action_probabilities, curve, learned_returns, snapshot
from uppertail.distributions import Gaussian
from uppertail.environments import Chain, FrozenLake, Gym, Toy
from uppertail.policies import UCB, Greedy, Thompson
from uppertail.training.settings import Settings
from uppertail.training.train import train

STD = float(np.log1p(np.exp(1.0)))
"""Of a Gaussian whose outputs are 0."""


@pytest.fixture(scope="module")
def untaught():
    """A snapshot of networks that give 0 everywhere: N(0, softplus(1)) for each state and action."""
    settings = Settings(seeds=2)
    at = snapshot(Toy(), Gaussian(scale=1.0), UNIFORM, settings, 0, lambda progress: None)
    return at._replace(networks=jax.tree.map(jnp.zeros_like, at.networks))


def test_distances_of_a_known_gaussian_from_the_exact_returns(untaught):
    rows = against_exact(untaught, 0, 20_000)
    assert [(row["state"], row["action"]) for row in rows] == [(s, a) for s in range(3) for a in range(2)]
    by_pair = {(row["state"], row["action"]): row for row in rows}
    sure = by_pair[1, 0]  # pays 4
    assert (sure["exact_mean"], sure["exact_std"]) == (4.0, 0.0)
    assert sure["mean"] == 0.0
    assert sure["std"] == pytest.approx(STD, rel=1e-6)
    assert sure["wasserstein"] == pytest.approx(_mean_distance_from(4.0), abs=0.03)  # three standard errors
    grid = np.linspace(-12.0, 16.0, 200_001)
    difference = scipy.stats.norm.cdf(grid, 0.0, STD) - (grid >= 4.0)
    assert sure["cramer"] == pytest.approx(np.sqrt(np.trapezoid(difference**2, grid)), abs=0.02)
    coin = by_pair[0, 0]  # -1, then 4 or 1
    values = -1 + 0.995 * np.array([4.0, 1.0])
    assert coin["exact_mean"] == pytest.approx(values.mean())
    assert coin["exact_std"] == pytest.approx(values.std())


def _mean_distance_from(point):
    """E|X - point| of X ~ N(0, STD)."""
    z = point / STD
    return STD * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + point * (1 - 2 * scipy.stats.norm.cdf(-z))


def test_only_states_in_which_the_policy_acts_are_compared():
    lake = FrozenLake(map_name="4x4").build(jax.random.key(0))
    holes_and_goal = {5, 7, 11, 12, 15}
    assert reachable_states(lake) == set(range(16)) - holes_and_goal
    island = Gym("FrozenLake-v1", kwargs={"desc": ["SFHF", "HHHG"], "is_slippery": False}).build(jax.random.key(0))
    assert reachable_states(island) == {0, 1}
    assert reachable_states(Chain(length=4).build(jax.random.key(3))) == {0, 1, 2, 3}


def test_the_table_is_the_mean_and_the_largest_over_pairs_then_the_mean_over_seeds():
    pairs = {
        "seed": [0, 0, 1, 1],
        "wasserstein": [0.1, 0.3, 0.0, 0.2],
        "cramer": [0.0] * 4,
        "mean": [1.0, -1.0, 0.0, 0.0],
        "exact_mean": [0.5, 0.0, 0.0, 0.0],
        "std": [1.0] * 4,
        "exact_std": [1.0, 0.0, 1.0, 1.0],
    }
    row = policy_evaluation._summary({"env": "E", "family": "F", "pairs": pairs, "seconds": 1.2, "hardware": {}})
    assert row["wasserstein_mean"][0] == pytest.approx(0.15)
    assert row["wasserstein_largest"][0] == pytest.approx(0.25)
    assert row["error_of_mean_largest"][0] == pytest.approx(0.5)
    assert row["error_of_std_mean"][0] == pytest.approx(0.25)


def test_the_uniform_policy_is_uniform(untaught):
    shares = action_probabilities(UNIFORM, untaught.agent.family, untaught.returns(0))
    np.testing.assert_allclose(shares, 0.5, atol=0.02)


def test_action_probabilities_of_known_gaussians():
    family = Gaussian(scale=1.0)
    z = jax.vmap(jax.vmap(family.from_outputs))(jnp.array([[[1.0, 0.0], [0.0, 0.0]]]))
    thompson = action_probabilities(Thompson(), family, z)
    assert thompson[0, 0] == pytest.approx(scipy.stats.norm.cdf(1.0 / (np.sqrt(2) * STD)), abs=0.02)
    np.testing.assert_array_equal(action_probabilities(Greedy(), family, z), [[1.0, 0.0]])


@pytest.mark.slow
def test_a_snapshot_is_the_network_of_a_run_that_ends_there():
    settings = Settings(seeds=2)
    at = snapshot(Chain(length=3), Gaussian(), UCB(), settings, 30, lambda progress: None)
    settings_to_the_end = Settings(seeds=2, episodes=30)
    ended = train(Chain(length=3), Gaussian(), UCB(), settings_to_the_end, **PARTS)
    for ours, theirs in zip(jax.tree.leaves(at.networks), jax.tree.leaves(ended.networks), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    start = snapshot(Chain(length=3), Gaussian(), UCB(), settings, 0, lambda progress: None)
    assert not np.array_equal(jax.tree.leaves(start.networks)[0], jax.tree.leaves(at.networks)[0])


def test_what_is_drawn_of_a_density_integrates_to_one(untaught):
    drawn = learned_returns(untaught, 1, {"UCB": UCB()}, curve)
    assert len(drawn) == 6
    for learned in drawn:
        assert np.trapezoid(learned.density, learned.returns) == pytest.approx(1.0, abs=1e-3)
        assert set(learned.chosen) == {"UCB"}
