"""DeepSea against its published definition in plain Python, and against bsuite's own where that is installed."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from experiments.paper.drawing.transitions import transitions
from uppertail.environments import DeepSea, EnvironmentBuilder, FiniteMDP
from uppertail.environments.finite import FiniteState
from uppertail.errors import InputError
from uppertail.exact import exact_returns, uniform_policy
from worlds import table

KEY = jax.random.key(0)
DRAWS = 20_000


def built(builder: EnvironmentBuilder, key: jax.Array) -> FiniteMDP:
    return jax.jit(builder.build)(key)


def range_of(mdp: FiniteMDP, discount: float) -> tuple[float, float]:
    low, high = jax.jit(lambda mdp: mdp.return_range(discount))(mdp)
    return float(low), float(high)


class Diver:
    """Osband et al. (2020) in plain Python, step by step; `wind` and `noise` are what the stochastic version draws."""

    def __init__(self, size: int, mapping: np.ndarray) -> None:
        self.size, self.mapping = size, mapping

    def step(self, row: int, column: int, action: int, wind: bool, noise: float) -> tuple[int, int, float, bool]:
        """Row, column, reward, and whether the episode is over."""
        reward = 0.0
        if action == self.mapping[row][column]:
            if column == self.size - 1:
                reward += 1.0
            reward -= 0.01 / self.size
            if not wind:
                column = min(column + 1, self.size - 1)
        else:
            column = max(column - 1, 0)
        if row == self.size - 1 and noise:
            reward += noise
        return row + 1, column, reward, row + 1 == self.size


def mapping_of(mdp: FiniteMDP, size: int) -> np.ndarray:
    """The action of each cell that costs something: the one to the right."""
    reward = np.asarray(mdp.reward)[..., 0].reshape(size, size, 2)
    assert ((reward != 0).sum(axis=2) == 1).all()
    return (reward != 0).argmax(axis=2)


def reachable(size: int) -> list[tuple[int, int]]:
    return [(row, column) for row in range(size) for column in range(row + 1)]


@jax.jit
def step(environment: FiniteMDP, keys: jax.Array, state: jax.Array, action: jax.Array) -> Any:
    """The same step with each of several keys."""
    start = FiniteState(state, jnp.zeros((), jnp.int32))
    return jax.vmap(environment.step, in_axes=(0, None, None))(keys, start, action)[1]


def draws(mdp: FiniteMDP, size: int, row: int, column: int, action: int, count: int = 1) -> Any:
    where = jnp.asarray(size * row + column, jnp.int32)
    return jax.device_get(step(mdp, jax.random.split(KEY, count), where, jnp.asarray(action, jnp.int32)))


@pytest.mark.parametrize("size", [1, 2, 5, 10])
@pytest.mark.parametrize("stochastic", [False, True])
def test_every_reachable_transition_is_that_of_the_definition(size: int, stochastic: bool) -> None:
    mdp = jax.device_get(built(DeepSea(size, stochastic), jax.random.key(size)))
    mapping = mapping_of(jax.device_get(built(DeepSea(size), jax.random.key(size))), size)
    diver = Diver(size, mapping)
    assert mdp.next_state.shape == (size**2, 2, 1 + stochastic)
    for (row, column), action in itertools.product(reachable(size), range(2)):
        where, outcomes = (size * row + column, action), range(1 + stochastic)
        for wind in outcomes:
            below, beside, reward, over = diver.step(row, column, action, bool(wind), noise=0.0)
            assert mdp.reward[*where, wind] == pytest.approx(reward, abs=1e-7)
            assert mdp.terminated[*where, wind] == over
            assert over or mdp.next_state[*where, wind] == size * below + beside
            fails = stochastic * (action == mapping[row, column]) / size
            assert mdp.probability[*where, wind] == pytest.approx(fails if wind else 1 - fails)
            noisy = stochastic and row == size - 1 and column in (0, size - 1)
            assert (mdp.reward_std[*where, wind] if stochastic else 0) == noisy
    assert mdp.time_limit == size and mdp.start_state.tolist() == [0]


class Drawn:
    """In the place of bsuite's generator: what the next draws are."""

    wind, noise = 0.0, 0.0

    def rand(self) -> float:
        return self.wind

    def randn(self) -> float:
        return self.noise


@pytest.mark.parametrize("stochastic", [False, True])
def test_it_is_bsuites_own(stochastic: bool) -> None:
    """Random episodes in bsuite's environment, with our meaning of the actions, against our table."""
    theirs = pytest.importorskip("bsuite.environments.deep_sea")
    random = np.random.default_rng(0)
    for size in (2, 7, 20):
        mdp = jax.device_get(built(DeepSea(size, stochastic), jax.random.key(size)))
        environment = theirs.DeepSea(size, deterministic=not stochastic)
        environment._action_mapping = mapping_of(jax.device_get(built(DeepSea(size), jax.random.key(size))), size)
        environment._rng = drawn = Drawn()
        for greedy in (0.0, 0.5, 0.9, 0.95, 1.0):
            state = int(np.argmax(environment._reset().observation))
            for _ in range(size):
                right = environment._action_mapping[divmod(state, size)]
                action = int(right if random.random() < greedy else random.integers(2))
                wind = stochastic * int(random.random() < 0.2)
                fails = mdp.probability[state, action, -1] if stochastic else 0.0
                drawn.wind, drawn.noise = fails + (-1e-6 if wind else 1e-6), random.normal()
                now = environment._step(action)
                noise = drawn.noise * mdp.reward_std[state, action, wind] if stochastic else 0.0
                assert mdp.reward[state, action, wind] + noise == pytest.approx(now.reward, abs=1e-6)
                assert mdp.terminated[state, action, wind] == now.last()
                if not now.last():
                    state = int(mdp.next_state[state, action, wind])
                    assert state == int(np.argmax(now.observation))


def test_the_stochastic_version_fails_and_is_noisy_as_often_as_it_says() -> None:
    size = 5
    mdp = built(DeepSea(size, stochastic=True), KEY)
    mapping = np.asarray(mdp.reward)[..., 0].reshape(size, size, 2).argmin(axis=2)
    mapping[-1, -1] = 1 - mapping[-1, -1]  # the treasure pays
    diver = Diver(size, mapping)
    for row, column, action in [(0, 0, 0), (0, 0, 1), (2, 1, 0), (2, 1, 1), (3, 3, 0), (3, 3, 1)]:
        now = draws(mdp, size, row, column, action, DRAWS)
        outcomes = [diver.step(row, column, action, wind, 0.0) for wind in (False, True)]
        to = [size * below + beside for below, beside, _, _ in outcomes]
        assert set(now.observation.tolist()) == set(to)
        np.testing.assert_allclose(now.reward, outcomes[0][2], atol=1e-7)
        if to[0] != to[1]:
            failed = int((now.observation == to[1]).sum())
            assert scipy.stats.binomtest(failed, DRAWS, 1 / size).pvalue > 1e-4
    for column, action in itertools.product(range(size), range(2)):
        rewards = draws(mdp, size, size - 1, column, action, DRAWS).reward
        mean = diver.step(size - 1, column, action, wind=False, noise=0.0)[2]
        if column in (0, size - 1):
            assert scipy.stats.kstest(rewards, scipy.stats.norm(mean, 1.0).cdf).pvalue > 1e-4
        else:
            np.testing.assert_allclose(rewards, mean, atol=1e-7)


def test_the_failure_and_the_noise_of_a_step_have_nothing_to_do_with_each_other() -> None:
    mdp = built(DeepSea(1, stochastic=True), KEY)
    start = {"start_state": mdp.start_state, "start_probability": mdp.start_probability}
    two = table([[[0, 1]], [[0, 1]]], np.zeros((2, 1, 2)), False, 0.5, 1, **start, reward_std=jnp.ones((2, 1, 2)))
    now = draws(two, 1, 0, 0, 0, DRAWS)
    for observation in range(2):
        assert scipy.stats.kstest(now.reward[now.observation == observation], scipy.stats.norm.cdf).pvalue > 1e-4


def test_a_seed_draws_which_action_moves_right_for_each_cell() -> None:
    seeds = 500
    seas = jax.jit(jax.vmap(DeepSea(6).build))(jax.random.split(KEY, seeds))
    mapping = np.stack([mapping_of(jax.tree.map(lambda leaf, s=seed: leaf[s], seas), 6) for seed in range(seeds)])
    for rights in mapping.reshape(seeds, -1).sum(axis=0):
        assert scipy.stats.binomtest(int(rights), seeds, 0.5).pvalue > 1e-5
    assert abs(np.corrcoef(mapping.reshape(seeds, -1).T) - np.eye(36)).max() < 0.3


def returns_of(mdp: FiniteMDP, size: int) -> dict[tuple[int, ...], float]:
    """The return of every sequence of directions (1: right), summed up in float32 as a run does."""
    edges, mapping, returns = transitions(mdp), mapping_of(mdp, size), {}
    for directions in itertools.product((0, 1), repeat=size):
        state, total = 0, np.float32(0)
        for direction in directions:
            action = int(mapping.reshape(-1)[state] if direction else 1 - mapping.reshape(-1)[state])
            edge = edges[state, action]
            total, state = np.float32(total + np.float32(edge.reward)), edge.next_state or 0
        returns[directions] = float(total)
    return returns


@pytest.mark.parametrize("size", [1, 2, 9])
def test_only_the_treasure_is_a_success(size: int) -> None:
    sea = DeepSea(size)
    mdp = built(sea, KEY)
    for directions, total in returns_of(mdp, size).items():
        assert (total >= sea.success_return) == all(directions)
        if all(directions):
            assert total == pytest.approx(0.99)


@pytest.mark.parametrize("size", [10, 50, 200])
def test_rounding_hides_no_treasure(size: int) -> None:
    rewards = np.full(size, np.float32(-0.01 / size))
    rewards[-1] = np.float32(1.0 - 0.01 / size)
    total = np.float32(0)
    for reward in rewards:
        total = np.float32(total + reward)
    assert total >= DeepSea(size).success_return > 0.98


def test_no_agent_is_before_the_floor() -> None:
    """An agent that keeps to the diagonal and remembers: a wrong first guess on a cell costs one episode."""
    random = np.random.default_rng(0)
    first = []
    for _ in range(4000):
        wrong = set(np.flatnonzero(random.random(20) < 0.5).tolist())
        episodes = 1
        while wrong:
            wrong.remove(min(wrong))
            episodes += 1
        first.append(episodes)
    assert abs(np.mean(first) - (DeepSea(20).floor_episodes or 0)) < 5 * np.std(first) / math.sqrt(4000)
    assert DeepSea(20, stochastic=True).floor_episodes is None


def test_the_range_of_returns_by_hand() -> None:
    """From a detour that costs one move to the last move alone; with noise two standard deviations beyond."""
    low, high = range_of(built(DeepSea(10), KEY), 1.0)
    assert (low, high) == pytest.approx((-0.001, 0.999))
    low, high = range_of(built(DeepSea(10, stochastic=True), KEY), 0.9)
    assert (low, high) == pytest.approx((-2.001, 2.999))


def test_noise_adds_up_along_an_episode() -> None:
    """A corridor of three steps, each with noise of sd 0.5: sd 0.5 sqrt(1 + 0.81 + 0.6561) of its return."""
    ends, noise = [[False], [False], [True]], jnp.full((3, 1, 1), 0.5)
    mdp = table([[1], [2], [2]], np.ones((3, 1)), ends, reward_std=noise)
    low, high = range_of(mdp, 0.9)
    sd = 0.5 * math.sqrt(1 + 0.81 + 0.6561)
    assert high == pytest.approx(1 + 0.9 + 0.81 + 2 * sd)
    assert low == pytest.approx(0.0, abs=1e-6)  # 1 - 2 * 0.5 in the last state


def test_noise_is_refused_where_nothing_is_made_of_it() -> None:
    mdp = built(DeepSea(3, stochastic=True), KEY)
    with pytest.raises(InputError, match="noisy"):
        exact_returns(mdp, uniform_policy(mdp), 0.9)
    with pytest.raises(InputError, match="noisy"):
        transitions(mdp)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: DeepSea(0), ["size is 0", "at least 1"]),
        (lambda: DeepSea(46_341), ["size is 46341", "use 46340 at most"]),
    ],
)
def test_errors_name_the_argument_the_value_and_the_remedy(build: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        build()
    for word in words:
        assert word in str(error.value)
