"""Draws from the posterior of a table's values against plain NumPy."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.agent import Agent
from uppertail.encodings import OneHot
from uppertail.errors import InputError
from uppertail.learners.table import NOISE_COUNT
from uppertail.training.loop import Actor
from uppertail.training.method import Method, sanity_warnings
from worlds import recorded

STATES, ACTIONS, DISCOUNT, DRAWS = 4, 2, 0.9, 3
POLICY = ut.PosteriorSampling(c=1.5, scale=0.8, draws=DRAWS)
FAMILIES = [ut.Gaussian(scale=1.0), ut.Categorical(bins=5, low=-1.0, high=3.0), ut.PointMass(scale=1.0, start=2.0)]


def learned(family: Any, data: dict[str, Any], rollouts: int, policy: Any = POLICY) -> tuple[Any, float]:
    """The state of a table after these transitions, and the value of what was never seen."""
    learner = ut.LeastSquares(tolerance=1e-6).build(Agent(family, policy, OneHot(STATES), DISCOUNT), None)
    rows = recorded(data)
    state, learn = learner.init(jax.random.key(0), rows.observation[:1], ACTIONS), jax.jit(learner.learn)
    size = len(data["state"]) // rollouts
    for number in range(rollouts):
        fresh = jax.tree.map(lambda leaf: leaf[number * size : (number + 1) * size], rows)  # noqa: B023
        state, _ = learn(jax.random.key(number), state, fresh, jnp.asarray(number))
    z = family.from_outputs(jnp.zeros(family.num_outputs))
    return state, float(family.mean(z) + policy.c * family.std(z))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_without_noise_every_draw_is_optimistic_dynamic_programming(family: Any) -> None:
    """By value iteration in NumPy: one outcome for each pair that was seen, and the bound for all others."""
    random = np.random.default_rng(3)
    state, action = np.array([0, 1, 2, 0, 3, 1]), np.array([0, 1, 0, 1, 1, 0])  # (2, 1) and (3, 0) were never seen
    following, terminated = (state + 1 + action) % STATES, np.array([0, 0, 0, 0, 1, 0], bool)
    reward = random.normal(size=6) / 5
    data = {"state": state, "action": action, "reward": reward, "terminated": terminated, "next": following}
    data = {name: np.tile(column, 4) for name, column in data.items()}
    found, bound = learned(family, data, rollouts=4)
    values = np.full((STATES, ACTIONS), bound)
    for _ in range(500):
        best = values.max(axis=1)
        values[state, action] = np.minimum(reward + DISCOUNT * np.where(terminated, 0.0, best[following]), bound)
    assert values.min() < bound - 0.1
    assert found.network.plans.shape == (STATES, ACTIONS, DRAWS)
    np.testing.assert_allclose(found.network.plans, np.repeat(values[..., None], DRAWS, axis=2), atol=2e-4)


def test_with_noise_draws_are_as_far_apart_as_the_standard_errors() -> None:
    """Rewards alone, by hand: mean + error * scale * sqrt(variance / visits), variance by each pair's rewards."""
    random = np.random.default_rng(4)
    state, action = random.integers(STATES, size=80), random.integers(ACTIONS, size=80)
    reward = 0.3 * state + (0.1 + 0.2 * action) * random.normal(size=80)
    data = {"state": state, "action": action, "reward": reward, "terminated": np.ones(80, bool), "next": 0 * state}
    found, _ = learned(ut.Gaussian(scale=3.0), data, rollouts=5)
    errors = np.asarray(found.memory.errors).reshape(DRAWS, STATES, ACTIONS)
    assert np.std(errors, axis=(1, 2)).min() > 0.3  # each draw was renewed
    groups = [[reward[(state == s) & (action == a)] for a in range(ACTIONS)] for s in range(STATES)]
    noisiest = max(np.var(each) for row in groups for each in row)
    for s in range(STATES):
        for a in range(ACTIONS):
            seen = groups[s][a]
            squares = np.sum((seen - seen.mean()) ** 2) + NOISE_COUNT * noisiest
            variance = squares / (len(seen) - 1 + NOISE_COUNT)
            wanted = seen.mean() + errors[:, s, a] * POLICY.scale * np.sqrt(variance / len(seen))
            np.testing.assert_allclose(found.network.plans[s, a], wanted, rtol=2e-3, atol=2e-3)


def test_a_draw_backs_up_its_own_values() -> None:
    """What leads to state 1 is worth the best of state 1 in the same draw, discounted, and an error of its own."""
    random = np.random.default_rng(5)
    state, action = np.tile([0, 1, 1], 40), np.tile([0, 0, 1], 40)
    reward = np.where(state == 1, random.normal(size=120), 0.0)
    data = {"state": state, "action": action, "reward": reward, "terminated": state == 1, "next": 1 - state}
    found, _ = learned(ut.Gaussian(scale=3.0), data, rollouts=10)
    plans, errors = np.asarray(found.network.plans), np.asarray(found.memory.errors)[:, 0]
    noisiest = max(np.var(reward[(state == 1) & (action == a)]) for a in range(ACTIONS))
    own = NOISE_COUNT * noisiest / (40 - 1 + NOISE_COUNT)
    wanted = DISCOUNT * plans[1].max(axis=0) + errors * POLICY.scale * np.sqrt(own / 40)
    assert np.ptp(wanted) > 0.05
    np.testing.assert_allclose(plans[0, 0], wanted, atol=1e-3)


@pytest.mark.slow
def test_one_draw_is_followed_for_an_episode() -> None:
    """The memory changes only where an episode begins, and the action is that of the draw in it."""
    result = ut.train(ut.Chain(4), policy=POLICY, settings=ut.Settings(seeds=1, episodes=30))
    network: Any = result.network(0)
    plans = jax.random.normal(jax.random.key(1), network.plans.shape)
    network = dataclasses.replace(network, plans=plans)
    actor, state = Actor(result.agent, POLICY), jnp.asarray(1)
    choose = jax.jit(lambda key, memory, begins: actor.next(key, actor.view(network, state), state, memory, begins))
    kept = [choose(jax.random.key(k), jnp.asarray(2), jnp.asarray(False)) for k in range(20)]
    assert {int(choice.memory) for choice in kept} == {2}
    assert {int(choice.action) for choice in kept} == {int(jnp.argmax(plans[1, :, 2]))}
    begun = {int(choose(jax.random.key(k), jnp.asarray(2), jnp.asarray(True)).memory) for k in range(40)}
    assert begun == set(range(DRAWS))


def test_without_noise_it_explores_as_the_upper_bound_does() -> None:
    settings = ut.Settings(seeds=3, episodes=60)
    first = [ut.train(ut.Chain(20), policy=each, settings=settings) for each in (ut.UCB(), ut.PosteriorSampling())]
    assert first[0].record.first_success_episode == first[1].record.first_success_episode
    assert max(each or 100 for each in first[1].record.first_success_episode) < 40


def test_learners_without_draws_refuse_it() -> None:
    words = (
        r"^The policy PosteriorSampling needs draws from the posterior of a table, .* --env.radius 0.1\), or use --pol"
    )
    for learner, env in ((ut.GradientDescent(), ut.Chain(3)), (None, ut.RichChain(3))):
        with pytest.raises(InputError, match=words):
            ut.train(env, policy=POLICY, settings=ut.Settings(seeds=1, episodes=2), learner=learner)


BAD = [({"c": -1.0}, "c is -1.0: use a finite number, 0 or more"), ({"draws": 0}, "draws is 0: use a whole number")]


@pytest.mark.parametrize(("setting", "words"), BAD)
def test_impossible_settings_are_refused(setting: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ut.PosteriorSampling(**setting)


@pytest.mark.parametrize(("start", "warned"), [(0.0, True), (2.63, False)])
def test_a_value_without_an_optimistic_start_is_warned_of(start: float, warned: bool) -> None:
    method = Method.of(distribution=ut.PointMass(start=start), policy=POLICY)
    assert (
        any("use an optimistic --distribution.start" in each for each in sanity_warnings(method, OneHot(3))) == warned
    )
