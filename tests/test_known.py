"""learners/known.py: the best plan through what was tried, by plain Python, and what the greedy policy earns of it."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import PRNGKeyArray

import uppertail as ut
from uppertail.agent import Agent
from uppertail.encodings import OneHot
from uppertail.environments import EnvironmentBuilder, FiniteMDP
from uppertail.learners.known import known_returns
from uppertail.learners.outcomes import Outcomes
from worlds import recorded

STATES, ACTIONS, DISCOUNT = 6, 3, 0.9


def data_of(seed: int, by_chance: bool, count: int = 24, masks: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Random transitions of a small process, of which some pairs are never tried; only allowed ones are."""
    random = np.random.default_rng(seed)
    allowed = np.argwhere(np.ones((STATES - 1, ACTIONS), bool) if masks is None else masks[:-1])
    states, actions = allowed[random.integers(len(allowed), size=count)].T
    slips = random.integers(2, size=count) if by_chance else np.zeros(count, np.int64)
    return {
        "state": states,
        "action": actions,
        "next": (2 * states + actions + slips) % STATES,
        "reward": ((states * 7 + actions * 3) % 5 - 2.0) * 0.5,
        "terminated": (states + actions) % 5 == 4,
    }


@functools.cache
def programs(by_chance: bool, has_masks: bool) -> tuple[Any, Any, Any]:
    """A table learner, and how it learns and plays, compiled."""
    agent = Agent(ut.Gaussian(scale=1.0), ut.UCB(), OneHot(STATES), DISCOUNT, has_masks=has_masks)
    learner: Any = ut.LeastSquares(stochastic=by_chance, tolerance=1e-6).build(agent, None)
    return learner, jax.jit(learner.learn), jax.jit(learner.played)


def learned(data: dict[str, np.ndarray], by_chance: bool, masks: np.ndarray | None = None) -> tuple[Any, Any, Any]:
    """The table learner, its state after these transitions, and what it plays."""
    learner, learn, play = programs(by_chance, masks is not None)
    fresh = recorded(data, next_action_mask=None if masks is None else jnp.asarray(masks[data["next"]]))
    state = learner.init(jax.random.key(0), jnp.zeros(1, jnp.int32), ACTIONS)
    state, _ = learn(jax.random.key(1), state, fresh, jnp.asarray(0))
    return learner, state, play(state)


def by_hand(data: dict[str, np.ndarray]) -> np.ndarray:
    """The best mean return through pairs that were tried, by 300 sweeps in plain Python; NaN elsewhere.

    A state that was reached three times and never left is one in which time runs out, worth 0.
    """
    seen: dict[tuple[int, int], list[tuple[float, int, bool]]] = {}
    for state, action, after, reward, ends in zip(*data.values(), strict=True):
        seen.setdefault((int(state), int(action)), []).append((float(reward), int(after), bool(ends)))
    worst = min(0.0, float(data["reward"].min())) / (1 - DISCOUNT)
    arrivals = np.bincount(data["next"][~data["terminated"]], minlength=STATES)
    ended = (arrivals >= 3) & ~np.isin(np.arange(STATES), data["state"])
    values = np.where(ended, 0.0, worst)
    found = np.full((STATES, ACTIONS), np.nan)
    for _ in range(300):
        for pair, rows in seen.items():
            found[pair] = np.mean([reward + DISCOUNT * (0 if ends else values[after]) for reward, after, ends in rows])
        for state in range(STATES):
            tried = [found[state, action] for action in range(ACTIONS) if (state, action) in seen]
            values[state] = max(tried, default=values[state])
    return found


@pytest.mark.parametrize("by_chance", [False, True])
@pytest.mark.parametrize("with_masks", [False, True])
def test_means_are_those_of_the_best_plan_through_what_was_tried(by_chance: bool, with_masks: bool) -> None:
    for seed in range(5):
        masks = np.random.default_rng(seed).random((STATES, ACTIONS)) < 0.7 if with_masks else None
        data = data_of(seed, by_chance, masks=masks)
        _, _, played = learned(data, by_chance, masks)
        expected = by_hand(data)
        mean, tried = np.asarray(played.values)[..., 0], ~np.isnan(expected)
        np.testing.assert_allclose(mean[tried], expected[tried], atol=2e-4)
        lowest = np.where(tried, mean, np.inf).min(axis=1, keepdims=True)
        assert (mean < lowest)[~tried].all(), "what was not tried is expected to earn less"


@pytest.mark.parametrize("by_chance", [False, True])
def test_upper_bounds_are_left_as_they_are(by_chance: bool) -> None:
    learner, state, played = learned(data_of(3, by_chance), by_chance)
    optimism = float(learner.agent.policy.optimism)

    def bounds(network: Any) -> np.ndarray:
        mean, variance = np.moveaxis(np.asarray(network.values, np.float64), -1, 0)
        return mean + optimism * np.sqrt(np.maximum(variance, 0.0))

    np.testing.assert_allclose(bounds(played), bounds(state.network), atol=2e-3)


def test_sweeps_end_by_their_error() -> None:
    """A way that leads on with a chance of 1% only: its value changes by little in each sweep, and for long."""
    outcomes, add = Outcomes.none(2, 4), jax.jit(Outcomes.add)
    for end in (*[0] * 99, 1):
        outcomes = add(outcomes, jnp.asarray(0), jnp.asarray(end), jnp.float32(end), jnp.asarray(end == 1))
    tried, ended = jnp.array([[True], [False]]), jnp.zeros(2, bool)
    found = known_returns(outcomes, tried, ended, 0.99, jnp.asarray(1e-4))
    assert float(found[0, 0]) == pytest.approx(0.01 / (1 - 0.99 * 0.99), abs=1e-4)


def test_small_tables_take_the_sweeps_that_a_long_horizon_asks_for() -> None:
    """A ring of 20 states: one steps on for 5, or 6 from the last state, or stays for 4.99. Values are near 5,000."""
    states, discount = np.arange(20), 0.999
    outcomes, add = Outcomes.none(40, 80), jax.jit(Outcomes.add)
    for state in states:
        for action, reward in enumerate((4.99, 6.0 if state == 19 else 5.0)):
            rows = 2 * state + action, (state + action) % 20
            outcomes = add(outcomes, *map(jnp.asarray, rows), jnp.float32(reward), jnp.asarray(False))
    tried, ended = jnp.ones((20, 2), bool), jnp.zeros(20, bool)
    found = np.asarray(known_returns(outcomes, tried, ended, discount, jnp.asarray(1e-4)), np.float64)
    on_and_on = 5 / (1 - discount) + discount ** (19 - states) / (1 - discount**20)
    assert (found.argmax(axis=1) == 1).all()
    np.testing.assert_allclose(found[:, 1], on_and_on, rtol=1e-4)
    np.testing.assert_allclose(found[:, 0], 4.99 + discount * on_and_on, rtol=1e-4)


def test_a_policy_without_optimism_keeps_the_spread() -> None:
    learner, state, _ = learned(data_of(3, False), False)
    other = dataclasses.replace(learner, agent=dataclasses.replace(learner.agent, policy=ut.UCB(0.0, 0.0)))
    before, now = np.asarray(state.network.values), np.asarray(other.played(state).values)
    np.testing.assert_allclose(now[..., 1], before[..., 1], atol=1e-6)
    assert (now[..., 0] != before[..., 0]).any()


def test_the_mean_of_a_policy_that_does_not_end_as_the_greedy_one_is_its_own() -> None:
    learner, state, _ = learned(data_of(3, False), False)
    for policy, is_own in ((ut.EpsilonGreedy(), True), (ut.Thompson(), False), (ut.PosteriorSampling(), False)):
        other = dataclasses.replace(learner, agent=dataclasses.replace(learner.agent, policy=policy))
        assert (other.played(state) is state.network) == is_own


@dataclasses.dataclass(frozen=True)
class Pits(EnvironmentBuilder):
    """A room of 8 x 8 cells with a goal in the far corner, which pays 1, and pits that end an episode."""

    @property
    def success_return(self) -> float:
        return 1.0

    @property
    def floor_episodes(self) -> None:
        return None

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        row, column = np.divmod(np.arange(64), 8)
        rows, columns = np.stack([row, row, row - 1, row + 1]), np.stack([column - 1, column + 1, column, column])
        after = jnp.asarray(np.clip(rows, 0, 7) * 8 + np.clip(columns, 0, 7)).T
        is_pit = jax.random.bernoulli(key, 0.15, (64,)).at[jnp.array([0, 63])].set(False)
        return FiniteMDP(
            next_state=after[..., None],
            reward=(after == 63).astype(jnp.float32)[..., None],
            terminated=(is_pit[after] | (after == 63))[..., None],
            probability=jnp.ones((64, 4, 1)),
            time_limit=200,
        )


@pytest.mark.filterwarnings("ignore:The greedy policy of seed")
def test_the_greedy_policy_earns_what_the_best_episode_did() -> None:
    """Most seeds still explore when they stop: their exploring policy's mean led none of them to the goal."""
    result = ut.train(Pits(), settings=ut.Settings(seeds=8, steps=400))
    best = np.array([each.returns.max() for each in result.record.episodes])
    assert best.sum() >= 4 and sum(float(each.returns[-5:].mean()) for each in result.record.episodes) < 4
    assert result.record.greedy_returns == best.tolist()
