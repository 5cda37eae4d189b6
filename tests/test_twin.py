"""Networks for vectors: the lower of two critics, the mean of the greedy action, and a range of returns that grows."""

import dataclasses
import os
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.agent import Agent
from uppertail.distributions.gaussian import GaussianReturn
from uppertail.encodings import OneHot, Vector
from uppertail.errors import InputError
from uppertail.learners import GradientDescent, Gradients
from uppertail.policies import UCB
from uppertail.training.method import Adam
from uppertail.types import POLICY_CHOICE, ReturnRange, Transition

LARGE = """
import jax
import uppertail as ut
from uppertail.encodings import OneHot
init = jax.jit(jax.vmap(lambda key: ut.Twin().init(key, OneHot(1000), num_actions=2, num_outputs=2).weights))
print([weights.shape for weights in jax.block_until_ready(init(jax.random.split(jax.random.key(0), 2)))])
"""


def twin(seed: int = 0, **settings: Any) -> Any:
    """Critics whose heads are drawn, so that they differ."""
    network: Any = ut.Twin(width=8, **settings).init(jax.random.key(seed), OneHot(5), num_actions=3, num_outputs=2)
    heads = jax.random.normal(jax.random.key(seed + 1), network.heads.shape)
    return dataclasses.replace(network, heads=heads)


def test_the_lower_mean_and_the_lower_spread_of_two_critics_count() -> None:
    family, network = ut.Gaussian(scale=2.0), twin()
    critics = jax.vmap(lambda state: network.predictions(family, state))(jnp.arange(5))
    assert critics.mean.shape == (5, 2, 3)
    first_is_lower = np.asarray(critics.mean[:, 0] < critics.mean[:, 1])
    assert first_is_lower.any() and not first_is_lower.all()
    lower = jax.vmap(lambda state: network.returns(family, state))(jnp.arange(5))
    np.testing.assert_allclose(lower.mean, np.min(critics.mean, axis=1, keepdims=True))
    np.testing.assert_allclose(lower.std, np.min(critics.std, axis=1, keepdims=True))


def test_the_lower_critic_counts_as_much_as_there_is_doubt_and_their_mean_with_the_rest() -> None:
    family, network = ut.Gaussian(scale=2.0), twin(critics=3)
    critics = network.predictions(family, jnp.array(4))
    doubted = network.doubted(family, jnp.array(4), jnp.array([1.0, 0.25, 0.0]))
    for own, each in ((doubted.mean, critics.mean), (doubted.std, critics.std)):
        lowest, mean = np.min(each, axis=0), np.mean(each, axis=0)
        expected = [lowest[0], 0.25 * lowest[1] + 0.75 * mean[1], mean[2]]
        np.testing.assert_allclose(own, [expected], rtol=1e-5)


def test_the_lower_of_two_quantile_functions_is_taken_at_each_level_and_of_others_the_lower_mean() -> None:
    family = ut.Quantile(quantiles=2)
    first, second = (family.from_coordinates(jnp.array(values)) for values in ([0.0, 3.0], [1.0, 2.0]))
    assert family.lower(first, second).quantiles.tolist() == [0.0, 2.0]
    categorical = ut.Categorical(bins=3, low=0.0, high=2.0)
    left, right = (categorical.from_outputs(jnp.array(values)) for values in ([5.0, 0.0, 0.0], [0.0, 0.0, 5.0]))
    for each in (categorical.lower(left, right), categorical.lower(right, left)):
        assert float(categorical.mean(each)) == float(categorical.mean(left))


def test_outputs_of_a_new_network_are_zero_and_a_single_critic_is_its_own_lower_one() -> None:
    network: Any = ut.Twin(width=8, critics=1).init(jax.random.key(0), OneHot(5), num_actions=3, num_outputs=2)
    assert network.outputs(jnp.array(0)).tolist() == [[[0.0, 0.0]] * 3]
    family = ut.Gaussian(scale=1.0)
    np.testing.assert_array_equal(
        network.returns(family, jnp.array(0)).mean, network.predictions(family, jnp.array(0)).mean
    )


@pytest.mark.slow
def test_weights_for_many_numbers_are_drawn_where_xla_has_two_threads() -> None:
    given = {**os.environ, "PJRT_NPROC": "2"}  # as a run of two seeds has
    done = subprocess.run(
        [sys.executable, "-c", LARGE], check=True, capture_output=True, text=True, timeout=60, env=given
    )
    assert done.stdout.strip() == "[(2, 2, 1000, 128), (2, 2, 128, 128)]"


def test_rescaled_outputs_are_the_same_returns_in_another_unit() -> None:
    before, network = ut.Gaussian(scale=2.0, std_bias=-6.0), twin()
    network = dataclasses.replace(network, heads=0.1 * network.heads)
    after = dataclasses.replace(before, scale=5.0)
    one, other = before, network.rescaled(after.rescaling(before))
    first, second = network.returns(one, jnp.array(2)), other.returns(after, jnp.array(2))
    np.testing.assert_allclose(second.mean, first.mean, rtol=1e-5)
    np.testing.assert_allclose(second.std, first.std, rtol=1e-2)  # a narrow spread is an exponential but for its square
    value = ut.PointMass(scale=2.0, start=1.5)
    wider = dataclasses.replace(value, scale=8.0)
    outputs = jnp.array([0.25])
    factor, shift = wider.rescaling(value)
    assert float(wider.from_outputs(outputs * factor + shift).mean) == pytest.approx(2.0 * 1.75)
    bins = (
        ut.Categorical(bins=3).as_wide_as_returns().fit(ReturnRange(0.0, 2.0, known=False))
    )  # bins of 1 about 0, 1 and 2
    wider = ut.Categorical(bins=3).as_wide_as_returns().fit(ReturnRange(0.0, 6.0, known=False))
    factor, shift = wider.rescaling(bins)
    stretched = wider.mean(wider.from_outputs(jnp.array([0.5, 1.0, 3.0]) * factor + shift))
    assert float(stretched) == pytest.approx(3.0 * float(bins.mean(bins.from_outputs(jnp.array([0.5, 1.0, 3.0])))))
    quantiles = ut.Quantile(quantiles=4, scale=2.0)
    wider, outputs = dataclasses.replace(quantiles, scale=8.0), jnp.array([3.0, -1.0, 0.5, 0.0])
    factor, shift = wider.rescaling(quantiles)
    same = wider.from_outputs(outputs * factor + shift).quantiles
    np.testing.assert_allclose(same, quantiles.from_outputs(outputs).quantiles, rtol=1e-5)


@pytest.mark.parametrize(
    "target", [ut.Online(), ut.Periodic(every=3), ut.RunningMean()], ids=lambda kind: type(kind).__name__
)
def test_what_bootstraps_follows_another_range_as_the_network_does(target: ut.Target) -> None:
    """The copy of Periodic stayed in the old unit, so that targets were wrong until it was renewed."""
    encoding = ut.KernelCounts().encoding(Vector((-1.0, -1.0), (1.0, 1.0)))
    ranges = ReturnRange(0.0, 1.0), ReturnRange(0.0, 8.0)
    agents = [
        Agent(ut.Gaussian().as_wide_as_returns().fit(each), UCB(), encoding, 0.9, greedy_mean=True) for each in ranges
    ]
    steps: Any = {"rollout_steps": 1, "updates_per_rollout": 1, "batch_size": 2, "replay_size": 8}
    parts = Gradients(ut.Twin(width=4), ut.Uniform(), target, Adam(1e-3), evidence=ut.KernelCounts(), **steps)
    before, after = (GradientDescent().build(agent, parts) for agent in agents)
    state = before.init(jax.random.key(0), jnp.ones((1, 2)), 3)
    state = after.refitted(before, state)
    bootstrapping = target.network(state.memory.target, state.network.regressor())
    seen = jnp.array([0.5, -0.5])
    expected = state.network.regressor().outputs(seen)
    assert np.any(np.asarray(expected))  # the shift of a spread: 0 before
    np.testing.assert_array_equal(bootstrapping.outputs(seen), expected)


def test_the_mean_is_backed_up_greedily_and_the_bound_by_the_policy() -> None:
    """By hand: the policy takes the action with bound 6, the greedy mean is 3; c is 2, so 1.5 is left as spread."""
    z = GaussianReturn(jnp.array([3.0, 2.0]), jnp.array([0.5, 2.0]))
    never = jnp.array(POLICY_CHOICE)
    zero = jnp.zeros((), jnp.int32)
    transition = Transition(zero, zero, jnp.zeros(()), jnp.zeros((), bool), zero, never)
    agent = Agent(ut.Gaussian(scale=1.0), UCB(), OneHot(5), 0.9)
    assert agent.bootstrap(jax.random.key(0), z, transition) == (2.0, 2.0)
    mean, std = dataclasses.replace(agent, greedy_mean=True).bootstrap(jax.random.key(0), z, transition)
    assert (float(mean), float(std)) == (3.0, 1.5)
    assert float(mean + 2 * std) == 6.0  # the same bound


def test_no_mean_is_bootstrapped_from_beyond_its_bounds_and_the_spread_stays() -> None:
    z = GaussianReturn(jnp.array([30.0, -30.0, 2.0]), jnp.array([0.5, 2.0, 1.0]))
    zero = jnp.zeros((), jnp.int32)
    agent = Agent(ut.Gaussian(scale=1.0), UCB(), OneHot(5), 0.9, bounds=(-1.0, 11.0))
    kept = [(11.0, 0.5), (-1.0, 2.0), (2.0, 1.0)]
    for action, expected in enumerate(kept):
        transition = Transition(zero, zero, jnp.zeros(()), jnp.zeros((), bool), zero, jnp.array(action))
        assert agent.bootstrap(jax.random.key(0), z, transition) == expected
    value = dataclasses.replace(agent, family=ut.PointMass(scale=1.0))
    assert float(value.within_bounds(value.family.from_outputs(jnp.array([30.0]))).mean) == 11.0


@pytest.mark.parametrize("family", [ut.Gaussian(scale=1.0), ut.Quantile(quantiles=8, scale=1.0)])
def test_no_spread_hopes_for_more_than_three_widths_above_its_mean(family: Any) -> None:
    """A spread that feeds on itself grew to 150 widths; beyond three of the 12 between the bounds it is narrowed."""
    agent = Agent(family, UCB(), OneHot(5), 0.9, bounds=(-1.0, 11.0))
    wide, usual = (
        family.backup(family.from_outputs(jnp.zeros(family.num_outputs)), jnp.array(2.0), jnp.array(factor))
        for factor in (500.0, 2.0)
    )
    narrowed = agent.within_bounds(wide)
    assert float(family.mean(narrowed)) == pytest.approx(2.0, abs=1e-3)
    assert float(family.std(narrowed)) == pytest.approx(3 * 12 / float(UCB().optimism), rel=1e-4)
    assert all(jax.tree.leaves(jax.tree.map(jnp.array_equal, agent.within_bounds(usual), usual)))


def test_the_bounds_reach_beyond_the_returns_as_the_start_does() -> None:
    """Two standard deviations of a uniform distribution; the bound of the start of Gaussian beside kernel counts."""
    low, high = ReturnRange(-2.0, 4.0).bounds
    assert (low, high) == pytest.approx((1 - 6 / 3**0.5, 1 + 6 / 3**0.5))
    family = ut.Gaussian().fit(ReturnRange(-2.0, 4.0)).as_wide_as_returns()
    start = family.centered(family.from_outputs(jnp.zeros(2)))
    assert float(start.mean + 2 * start.std) == pytest.approx(high, rel=5e-3)
    low, high = ReturnRange(0.0, 0.0).bounds  # in the unit of a run that has seen no reward
    assert (low, high) == pytest.approx((-(3**-0.5), 3**-0.5))


def test_one_target_teaches_both_critics() -> None:
    agent = Agent(ut.Gaussian(scale=1.0), UCB(), OneHot(5), 0.9, greedy_mean=True)
    learning, bootstrapping = twin(0), twin(7)
    zero, no = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    transition = Transition(zero, jnp.array(1), jnp.array(0.5), no, jnp.array(4), jnp.array(POLICY_CHOICE))
    losses, _ = agent.loss(learning, bootstrapping, jax.random.split(jax.random.key(0)), transition)
    lower = bootstrapping.returns(agent.family, jnp.array(4))
    upper = np.max(np.asarray(lower.mean + 2 * lower.std))
    mean = np.max(np.asarray(lower.mean))
    target = np.array([0.5 + 0.9 * mean, 0.9 * (upper - mean) / 2])
    own = learning.predictions(agent.family, zero)
    wanted = [(own.mean[n, 1] - target[0]) ** 2 + (own.std[n, 1] - target[1]) ** 2 for n in range(2)]
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)


@pytest.mark.parametrize("name", ["width", "hidden_layers", "critics"])
def test_settings_below_one_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is 0: use a whole number"):
        ut.Twin(**dict[str, Any]({name: 0}))


def test_the_start_lies_in_the_middle_of_the_returns_with_its_bound_above_the_best() -> None:
    family: Any = ut.KernelCounts().family(ut.Gaussian()).fit(ReturnRange(-100.0, -20.0, known=False))
    from uppertail.evidence.kernel_counts import centered

    start = centered(family)
    assert float(start.mean) == -60.0
    assert -20.0 < float(start.mean + 2 * start.std) < -10.0


@pytest.mark.slow
def test_the_car_climbs_by_the_defaults() -> None:
    """The worst of ten other seeds has -106 there (docs/evidence.md)."""
    result = ut.train(ut.Gym("MountainCar-v0"), settings=ut.Settings(seeds=1, seed=7919, episodes=100))
    record = result.record
    assert record.asked["learner"]["name"] == "GradientDescent" and record.asked["evidence"]["name"] == "KernelCounts"
    assert record.episodes[0].returns[50:].mean() >= -115
    assert record.asked["measured_returns"][0] < -50, "the range follows what was seen"


@pytest.mark.slow
def test_the_pole_stays_up_by_the_defaults_and_what_was_learned_is_kept() -> None:
    """With four updates and no bounds, seed 100 fell to 255 after its 50th episode (decision 32)."""
    record = ut.train(ut.Gym("CartPole-v1"), settings=ut.Settings(seeds=1, seed=100, episodes=80)).record
    assert record.episodes[0].returns[50:].mean() >= 450
