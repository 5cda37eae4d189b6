"""Policies on members, the two spreads, the risky arm, returns within a time limit: worked cases and exact oracles."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import uppertail as ut
from experiments.paper.calibration import INTERVALS, coverage, crps, reliability
from experiments.paper.sources import sources
from experiments.tasks.horizon import best_return, greedy_policy, mean_return
from uppertail.distributions import spread
from uppertail.distributions.gaussian import GaussianReturn
from uppertail.exact import exact_returns, optimal_policy, uniform_policy
from uppertail.exact.discrete import ExactReturn
from uppertail.exact.markov import MarkovReward

# Two members, three actions: they agree on action 0, differ on action 1, and see much chance in action 2.
MEANS = np.array([[1.0, 0.0, 0.5], [1.0, 1.0, 0.5]])
STDS = np.array([[0.1, 0.1, 3.0], [0.1, 0.1, 4.0]])
Z = GaussianReturn(jnp.asarray(MEANS, jnp.float32), jnp.asarray(STDS, jnp.float32))
SEEN = ut.Decision(ut.Gaussian(), Z)
BETWEEN, WITHIN = [0.0, 0.5, 0.0], [0.1, 0.1, np.sqrt(12.5)]


@functools.partial(jax.jit, static_argnums=0)
def choices(policy: Any) -> jax.Array:
    """What each of many episodes' first decisions is."""
    keys = jax.random.split(jax.random.key(0), 4000)
    return jax.vmap(lambda key: policy.first_action(key, SEEN))(keys)


def test_the_spreads_by_hand_and_their_squares_add_up_to_that_of_draws() -> None:
    returns = spread(ut.Gaussian(), Z)
    np.testing.assert_allclose(returns.mean, [1.0, 0.5, 0.5], rtol=1e-6)
    np.testing.assert_allclose(returns.between, BETWEEN, atol=1e-7)
    np.testing.assert_allclose(returns.within, WITHIN, rtol=1e-6)
    generator = np.random.default_rng(0)
    member = generator.integers(0, 2, 400_000)
    draws = MEANS[member] + STDS[member] * generator.standard_normal((400_000, 3))
    np.testing.assert_allclose(returns.total, draws.std(axis=0), rtol=0.01)


def test_a_single_member_has_no_spread_between() -> None:
    alone = jax.tree.map(lambda leaf: leaf[:1], Z)
    assert (spread(ut.Gaussian(), alone).between == 0).all()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (ut.DoubleUCB(between=0.0, within=0.0, jitter=0.0), {0}),
        (ut.DoubleUCB(between=0.9, within=0.0, jitter=0.0), {0}),
        (ut.DoubleUCB(between=1.1, within=0.0, jitter=0.0), {1}),
        (ut.DoubleUCB(between=1.3, within=0.0, jitter=0.0), {1}),
        (ut.DoubleUCB(between=0.0, within=1.0, jitter=0.0), {2}),
        (ut.DoubleUCB(between=0.0, within=0.0), {0}),
        (ut.DoubleUCB(between=8.0, within=0.1, jitter=0.0), {1}),
        (ut.UCB(2.0, 2.0), {2}),
    ],
    ids=str,
)
def test_what_a_bound_on_each_spread_chooses(policy: Any, expected: set[int]) -> None:
    """Means 1, 0.5, 0.5: the spread between members favours action 1, the spread of the return action 2."""
    assert set(np.asarray(choices(policy)).tolist()) == expected


def test_the_optimism_of_members_is_drawn_for_each_action_and_episode() -> None:
    """1 against 0.5 + c / 2 with c uniform in [0.5, 1.5]: action 1 in half of the episodes."""
    assert 0.45 < np.mean(np.asarray(choices(ut.DoubleUCB(between=1.0, within=0.0, jitter=0.5))) == 1) < 0.55


def test_a_member_is_believed_for_a_whole_episode() -> None:
    policy = ut.MemberThompson()
    chosen = np.asarray(choices(policy))
    assert 0.2 < np.mean(chosen == 1) < 0.3  # the second member's two best are tied, half of half of the episodes
    assert set(chosen.tolist()) == {0, 1}
    begun = policy.begun(jax.random.key(5), SEEN)
    np.testing.assert_array_equal(policy.advance(jax.random.key(6), begun, jnp.asarray(2)), begun.memory)


def test_draws_of_the_believed_members_return_take_its_chance_as_well() -> None:
    assert np.mean(np.asarray(choices(ut.MemberThompson(draws=1))) == 2) > 0.3


def test_the_spread_of_the_believed_members_return_attracts() -> None:
    """Scores with within 0.18: 1.018, 0.018, 1.04 by the first member, and 1.018, 1.018, 1.22 by the second."""
    assert set(np.asarray(choices(ut.MemberThompson(within=0.18))).tolist()) == {2}
    barely = np.asarray(choices(ut.MemberThompson(within=0.15)))  # 1.015, 0.015, 0.95; then 1.015, 1.015, 1.1
    assert set(barely.tolist()) == {0, 2} and 0.45 < np.mean(barely == 2) < 0.55


@pytest.mark.parametrize(
    ("policy", "settings", "words"),
    [
        (ut.MemberThompson, {"draws": -1}, "draws is -1: use 0, the member's means, or more"),
        (ut.MemberThompson, {"within": -0.5}, "within is -0.5: use a finite number, 0 or more; 0 leaves the spread"),
        (ut.MemberThompson, {"draws": 1, "within": 2.0}, "draws is 1 and within is 2.0, but draws contain the spread"),
        (ut.DoubleUCB, {"between": -1.0}, "between is -1.0: use a finite number, 0 or more; 0 leaves it out"),
        (ut.DoubleUCB, {"within": float("inf")}, "within is inf: use a finite number"),
        (ut.DoubleUCB, {"jitter": 2.0}, "jitter is 2.0, but optimism is not negative"),
    ],
)
def test_settings_that_cannot_be_are_sentences(policy: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ut.InputError, match=words):
        policy(**settings)


# RiskyArm


def test_the_arms_are_what_they_say_by_exact_returns() -> None:
    mdp = ut.RiskyArm(length=3, sure=1.5, mean=0.8, chance=0.25).build(jax.random.key(2))
    exact = exact_returns(mdp, uniform_policy(mdp), 1.0)
    arms = sorted((exact[3, action] for action in range(2)), key=lambda z: z.std)
    assert (arms[0].mean, arms[0].std) == (1.5, 0.0)
    np.testing.assert_allclose([arms[1].mean, arms[1].std], [0.8, 0.8 * np.sqrt(3)], rtol=1e-6)
    best = exact_returns(mdp, optimal_policy(mdp, 0.9), 0.9)
    for state in range(3):
        ends = [best[state, action].mean for action in range(2)]
        np.testing.assert_allclose(sorted(ends), [0.0, 1.5 * 0.9 ** (3 - state)], rtol=1e-6)


def test_both_the_way_and_the_lottery_are_drawn_for_each_seed() -> None:
    tables = [ut.RiskyArm(length=4).build(jax.random.key(seed)) for seed in range(20)]
    ways = np.stack([np.asarray(mdp.next_state[:4, :, 0]) - np.arange(4)[:, None] for mdp in tables])
    assert (ways.sum(axis=2) == 1).all() and 0 < ways[..., 0].mean() < 1
    lotteries = np.stack([np.asarray(mdp.reward[4, :, 0]) for mdp in tables])
    assert {tuple(row.round(3).tolist()) for row in lotteries} == {(8.0, 1.0), (1.0, 8.0)}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"length": -1}, "length is -1, but a corridor cannot have fewer than 0 states"),
        ({"sure": 0.0}, "sure is 0.0, but both arms pay: use a finite number above 0"),
        ({"chance": 1.0}, "chance is 1.0, but a lottery can be won or lost"),
    ],
)
def test_an_arm_that_cannot_be_is_a_sentence(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ut.InputError, match=words):
        ut.RiskyArm(**settings)


# Returns within a time limit


def test_returns_within_a_time_limit() -> None:
    """The Chain's by hand; where no limit binds, those of the linear equations; the limit itself by hand."""
    chain = ut.Chain(5, slip=0.1, reward_std=0.5).build(jax.random.key(0))
    np.testing.assert_allclose(best_return(chain), 0.9**5, rtol=1e-6)
    lake = ut.FrozenLake(map_name="4x4", is_slippery=True, time_limit=5000).build(jax.random.key(0))
    mean, _ = MarkovReward.of(lake, uniform_policy(lake), 1.0).moments()
    np.testing.assert_allclose(mean_return(lake, uniform_policy(lake)), mean[0], rtol=1e-6)
    short = ut.FrozenLake(map_name="4x4", time_limit=5).build(jax.random.key(0))
    assert (best_return(short), best_return(lake) > 0.8) == (0.0, True)


def test_the_greedy_policy_takes_the_first_of_the_best() -> None:
    np.testing.assert_array_equal(greedy_policy(np.array([[0.0, 2.0], [1.0, 1.0]])), [[0, 1], [1, 0]])


# Where the spread comes from


def slippery(seed: int) -> Any:
    return ut.Chain(4, slip=0.2).build(jax.random.key(seed))


@pytest.mark.parametrize(
    ("mdp", "discount"),
    [
        (slippery(0), 0.9),
        (ut.FrozenLake(map_name="4x4", is_slippery=True).build(jax.random.key(0)), 0.95),
        (ut.Toy().build(jax.random.key(0)), 1.0),
    ],
    ids=["Chain", "FrozenLake", "Toy"],
)
def test_chance_and_choices_add_up_to_the_variance_of_the_exact_return(mdp: Any, discount: float) -> None:
    parts, exact = sources(mdp, uniform_policy(mdp), discount), exact_returns(mdp, uniform_policy(mdp), discount)
    for (state, action), z in exact.items():
        tolerance = 1e-9 if z.error == 0 else 1e-2
        np.testing.assert_allclose(parts.total[state, action], z.std**2, atol=tolerance)
    assert (parts.chance >= 0).all() and (parts.choices >= 0).all()


def test_a_deterministic_environment_has_choices_only_and_a_deterministic_policy_chance_only() -> None:
    toy, chain = ut.Toy().build(jax.random.key(0)), slippery(1)
    of_choices, of_chance = sources(toy, uniform_policy(toy), 0.9), sources(chain, optimal_policy(chain, 0.9), 0.9)
    np.testing.assert_array_equal(of_choices.chance, 0.0)
    np.testing.assert_allclose(of_choices.choices[0], [(0.9 * 1.5) ** 2, (0.9 * 0.5) ** 2], rtol=1e-6)
    np.testing.assert_allclose(of_chance.choices, 0.0, atol=1e-15)
    p = 0.8**4  # the last reward comes through all four states, or not at all
    best = np.max(of_chance.chance[0])
    np.testing.assert_allclose(best, p * (1 - p) * 0.9**6, rtol=1e-6)


# Calibration


def test_the_exact_distribution_is_calibrated_and_a_shifted_one_is_not() -> None:
    atoms = scipy.stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    exact = ExactReturn(atoms, np.full(4000, 1 / 4000))
    draws, levels = np.random.default_rng(0).standard_normal(20_000), np.linspace(0.05, 0.95, 7)
    for level in INTERVALS:
        np.testing.assert_allclose(coverage(exact, draws, level), level, atol=0.01)
        np.testing.assert_allclose(
            coverage(exact, 0.5 * draws, level),
            2 * scipy.stats.norm.cdf(0.5 * scipy.stats.norm.ppf((1 + level) / 2)) - 1,
            atol=0.01,
        )
    np.testing.assert_allclose(reliability(exact, draws, levels), levels, atol=0.01)
    shifted = scipy.stats.norm.cdf(scipy.stats.norm.ppf(levels) + 1.0)
    np.testing.assert_allclose(reliability(exact, draws + 1.0, levels), shifted, atol=0.01)


def test_crps_is_that_of_energies() -> None:
    """E|X - Y| - E|X - X'| / 2, by all pairs; the exact one has none that is lower."""
    exact = ExactReturn(np.array([0.0, 1.0, 3.0]), np.array([0.2, 0.5, 0.3]))
    draws = np.array([-1.0, 0.5, 0.5, 2.0, 4.0])
    to_exact = np.abs(draws[:, None] - exact.atoms) @ exact.probabilities
    expected = to_exact.mean() - np.abs(draws[:, None] - draws).mean() / 2
    score = crps(exact, draws)
    np.testing.assert_allclose(score.learned, expected, rtol=1e-9)
    own = exact.probabilities @ np.abs(exact.atoms[:, None] - exact.atoms) @ exact.probabilities / 2
    np.testing.assert_allclose(score.best, own, rtol=1e-9)
    assert score.best < score.learned


def test_a_certain_return_is_within_a_tolerance() -> None:
    certain, draws = ExactReturn(np.array([1.0]), np.array([1.0])), np.full(10, 0.99)
    assert (coverage(certain, draws, 0.95), coverage(certain, draws, 0.95, tolerance=0.02)) == (0.0, 1.0)
