"""Environments against plain simulations, enumeration, and Gymnasium itself; encodings against explicit features."""

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jaxtyping import PRNGKeyArray

from uppertail import Settings, train
from uppertail.encodings import Encoding, Numbers, OneHot, Scalar, Thermometer
from uppertail.environments import (
    Chain,
    Environment,
    EnvironmentBuilder,
    FiniteMDP,
    FrozenLake,
    Gym,
    Toy,
    base,
    finite,
    widest_range,
)
from uppertail.environments.finite import FiniteState
from uppertail.errors import InputError
from uppertail.types import TimeStep
from worlds import measure_returns, table

KEY = jax.random.key(0)
DRAWS = 20_000


@jax.jit
def reset(environment: Environment, key: jax.Array) -> Any:
    return environment.reset(key)


@jax.jit
def step(environment: Environment, key: jax.Array, state: Any, action: jax.Array) -> Any:
    return environment.step(key, state, action)


@jax.jit
def follow(environment: Environment, actions: jax.Array) -> Any:
    """The first time step, and those after each action."""
    state, first = environment.reset(KEY)
    keys = jax.random.split(KEY, actions.shape[0])
    _, steps = jax.lax.scan(lambda state, x: environment.step(x[0], state, x[1]), state, (keys, actions))
    return first, steps


def play(environment: Environment, actions: list[int]) -> list[tuple[int, float, bool, bool]]:
    """Observation, reward, terminated and truncated of each step, up to the end of the episode."""
    _, steps = follow(environment, jnp.array(actions, jnp.int32))
    rows = list(zip(*(np.asarray(leaf).tolist() for leaf in jax.tree.leaves(steps)), strict=True))
    end = next((i for i, row in enumerate(rows) if row[2] or row[3]), len(rows))
    return rows[: end + 1]


def correct_actions(environment: FiniteMDP) -> list[int]:
    """The action of each state of a Chain that goes on or is rewarded."""
    goes_on = ~np.asarray(environment.terminated)[..., 0] | (np.asarray(environment.reward)[..., 0] == 1)
    assert (goes_on.sum(axis=1) == 1).all()
    return goes_on.argmax(axis=1).tolist()


def one_table(rewards: Any, next_state: Any, terminated: Any, time_limit: int) -> FiniteMDP:
    """A deterministic MDP from nested lists over states and actions."""
    return table(next_state, rewards, terminated, time_limit=time_limit)


@pytest.mark.parametrize(("ordered", "length"), [(True, 1), (True, 6), (False, 1), (False, 6)])
def test_chain_from_every_state(ordered: bool, length: int) -> None:
    """The right action goes one further, or past the last state for a reward of 1; the other ends the episode."""
    environment = Chain(length, ordered=ordered).build(jax.random.key(3))
    correct = [1] * length if ordered else correct_actions(environment)
    for s, a in itertools.product(range(length), range(2)):
        state = FiniteState(jnp.asarray(s, jnp.int32), jnp.asarray(5, jnp.int32))
        after, now = step(environment, KEY, state, jnp.asarray(a, jnp.int32))
        if a != correct[s]:
            expected = (0.0, True, False)
        elif s == length - 1:
            expected = (1.0, True, False)
        else:
            expected = (0.0, False, False)
            assert now.observation == s + 1
        assert (float(now.reward), bool(now.terminated), bool(now.truncated)) == expected
        assert (int(after.state), int(after.elapsed)) == (int(now.observation), 6)


@pytest.mark.parametrize(("ordered", "length"), [(True, 20), (False, 20), (False, 1)])
def test_the_right_actions_solve_a_chain_in_its_length(ordered: bool, length: int) -> None:
    environment = Chain(length, ordered=ordered).build(jax.random.key(1))
    first, _ = follow(environment, jnp.zeros(1, jnp.int32))
    assert (int(first.observation), float(first.reward), bool(first.terminated | first.truncated)) == (0, 0, False)
    steps = play(environment, correct_actions(environment))
    assert len(steps) == length
    assert sum(reward for _, reward, _, _ in steps) == 1
    assert steps[-1][2:] == (True, False)
    for mistake in range(length):
        actions = correct_actions(environment)
        actions[mistake] = 1 - actions[mistake]
        steps = play(environment, actions)
        assert len(steps) == mistake + 1
        assert sum(reward for _, reward, _, _ in steps) == 0


def test_a_randomized_chain_differs_between_seeds() -> None:
    """Both actions are right equally often, in every state."""
    seeds = 1000
    chains = jax.jit(jax.vmap(Chain(10).build))(jax.random.split(KEY, seeds))
    correct = np.asarray(~chains.terminated[..., 1, 0] | (chains.reward[..., 1, 0] == 1))
    assert len(np.unique(correct, axis=0)) > 500
    for right in correct.sum(axis=0):
        assert scipy.stats.binomtest(int(right), seeds, 0.5).pvalue > 1e-5
    assert correct_actions(Chain(10).build(jax.random.key(1))) != correct_actions(Chain(10).build(jax.random.key(2)))
    assert correct_actions(Chain(10).build(KEY)) == correct_actions(Chain(10).build(KEY))


def test_an_ordered_chain_is_the_same_for_every_seed() -> None:
    for seed in range(3):
        assert correct_actions(Chain(10, ordered=True).build(jax.random.key(seed))) == [1] * 10


def test_floor_of_a_chain() -> None:
    """An agent that never forgets fails once in each state where it first tries the wrong action."""
    rng = np.random.default_rng(0)
    episodes = 1 + rng.integers(0, 2, (20_000, 30)).sum(axis=1)
    assert abs(episodes.mean() - Chain(30).floor_episodes) < 5 * episodes.std() / math.sqrt(20_000)


@pytest.mark.parametrize(("builder", "limit"), [(Chain(10), 200), (Chain(300), 300), (Chain(10, time_limit=11), 11)])
def test_time_limit_of_a_chain(builder: Chain, limit: int) -> None:
    assert builder.build(KEY).time_limit == limit


def test_toy_by_hand() -> None:
    """Fig. 1: -1 then 4 or 1, or +1 then 1 or 0."""
    environment = Toy().build(KEY)
    assert play(environment, [0, 0]) == [(1, -1.0, False, False), (1, 4.0, True, False)]
    assert play(environment, [0, 1]) == [(1, -1.0, False, False), (1, 1.0, True, False)]
    assert play(environment, [1, 0]) == [(2, 1.0, False, False), (2, 1.0, True, False)]
    assert play(environment, [1, 1]) == [(2, 1.0, False, False), (2, 0.0, True, False)]
    best = max(sum(r for _, r, _, _ in play(environment, [a, b])) for a in range(2) for b in range(2))
    assert best == Toy().success_return


def test_a_time_limit_truncates_and_does_not_terminate() -> None:
    environment = one_table([[1.0, 2.0]], [[0, 0]], [[False, False]], time_limit=3)
    assert play(environment, [0, 1, 0, 0, 0]) == [(0, 1.0, False, False), (0, 2.0, False, False), (0, 1.0, False, True)]


def test_an_end_at_the_time_limit_is_an_end() -> None:
    environment = one_table([[0.0, 1.0]], [[0, 0]], [[False, True]], time_limit=3)
    assert play(environment, [0, 0, 1])[-1] == (0, 1.0, True, False)
    assert play(environment, [0, 1])[-1] == (0, 1.0, True, False)


def steps_before_the_best(environment: FiniteMDP, discount: float) -> list[float]:
    """0 and the return of every possible step, if the best of all policies follows it, in float64.

    By recursion over states and remaining steps, along single outcomes: the luckiest one counts as well.
    """
    tables = (environment.next_state, environment.reward, environment.terminated, environment.probability)
    next_state, reward, terminated, probability = (np.asarray(table, float) for table in tables)
    possible = [where for where in np.ndindex(reward.shape) if probability[where] > 0]
    best = dict.fromkeys(range(reward.shape[0]), 0.0)
    returns: dict[tuple[int, ...], float] = {}
    for _ in range(environment.time_limit):
        after = {where: 0.0 if terminated[where] else best[int(next_state[where])] for where in possible}
        returns = {where: float(reward[where]) + discount * after[where] for where in possible}
        best = {s: max(returns[where] for where in possible if where[0] == s) for s in best}
    return [0.0, *returns.values()]


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 1.0])
def test_return_range_of_toy_by_enumeration(discount: float) -> None:
    """-1 or +1, then the best there is, 4 or 1; or any second step, 0 the lowest of them."""
    environment = Toy().build(KEY)
    returns = [0.0]
    for first in range(2):
        by_second = [[reward for _, reward, _, _ in play(environment, [first, second])] for second in range(2)]
        best = max(rewards[1] for rewards in by_second)
        returns += [by_second[0][0] + discount * best, *(rewards[1] for rewards in by_second)]
    low, high = environment.return_range(discount)
    np.testing.assert_allclose([low, high], [min(returns), max(returns)], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "environment",
    [
        Chain(7).build(KEY),
        FrozenLake("4x4", time_limit=20).build(KEY),
        FrozenLake("4x4", is_slippery=True, time_limit=20).build(KEY),
        one_table([[1.0, -2.0], [0.5, 0.0]], [[1, 0], [0, 1]], [[False, False], [False, True]], time_limit=9),
        one_table([[-1.0, -2.0]], [[0, 0]], [[True, False]], time_limit=200),
        one_table([[1.0, 0.5]], [[0, 0]], [[False, False]], time_limit=1),
        one_table([[-1.0, -5.0]], [[0, 0]], [[False, False]], time_limit=4),
    ],
    ids=["chain", "lake", "slippery", "loop", "negative", "one step", "four steps"],
)
@pytest.mark.parametrize("discount", [0.5, 0.995, 1.0])
def test_return_range_by_recursion(environment: FiniteMDP, discount: float) -> None:
    returns = steps_before_the_best(environment, discount)
    low, high = environment.return_range(discount)
    np.testing.assert_allclose([low, high], [min(returns), max(returns)], rtol=1e-5, atol=1e-6)


def random_table(seed: int, time_limit: int) -> FiniteMDP:
    """Three states, two actions, one or two outcomes of each, rewards of both signs."""
    random, shape = np.random.default_rng(seed), (3, 2, 2)
    sure = random.random(shape[:2]) < 0.5
    nexts, rewards, ends = random.integers(3, size=shape), random.normal(size=shape) * 3 - 1, random.random(shape) < 0.3
    return table(nexts, rewards, ends, np.where(sure[..., None], [1.0, 0.0], [0.25, 0.75]), time_limit)


@pytest.mark.parametrize("time_limit", [1, 2, 3])
def test_return_range_against_every_deterministic_plan(time_limit: int) -> None:
    """Every path of the first steps, by brute force: the best of those behind each step."""
    for seed in range(20):
        environment = random_table(seed, time_limit)
        tables = (environment.next_state, environment.reward, environment.terminated, environment.probability)
        next_state, reward, terminated, probability = map(np.asarray, tables)

        def paths(state: int, steps: int, tables: Any = (next_state, reward, terminated, probability)) -> list[float]:
            """The discounted return of every path of so many steps, or fewer where it ends."""
            to, r, ends, p = tables
            if steps == 0:
                return [0.0]
            return [
                float(r[state, a, o]) + 0.9 * rest
                for a, o in itertools.product(range(2), range(2))
                if p[state, a, o] > 0
                for rest in ([0.0] if ends[state, a, o] else paths(int(to[state, a, o]), steps - 1))
            ]

        returns = [
            float(reward[s, a, o])
            + 0.9 * (0.0 if terminated[s, a, o] else max(paths(int(next_state[s, a, o]), time_limit - 1)))
            for s, a, o in np.ndindex(reward.shape)
            if probability[s, a, o] > 0
        ]
        expected = [min(0.0, *returns), max(0.0, *returns)]
        np.testing.assert_allclose(environment.return_range(0.9), expected, rtol=1e-5, atol=1e-5)


def test_a_policy_that_errs_again_and_again_does_not_set_the_range() -> None:
    """A step of -100 that leads back, two of them at the most here: only one of them counts."""
    environment = one_table([[-100.0, 1.0]], [[0, 0]], [[False, True]], time_limit=2)
    assert [float(bound) for bound in environment.return_range(1.0)] == [-99.0, 1.0]


def test_return_range_ignores_outcomes_of_probability_zero() -> None:
    environment = table(0, [[[1.0, 9.0]]], True, [[[1.0, 0.0]]], 5)
    assert environment.return_range(0.9) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"probability": [0.25, 0.25]},
            "probability of a FiniteMDP is [0.25, 0.25] from one state by one action",
        ),
        (
            {"probability": [-0.5, 1.5]},
            "probability of a FiniteMDP is [-0.5, 1.5] from one state by one action",
        ),
        ({"next_state": [0, 7]}, "next_state of a FiniteMDP holds 7, but its states are counted from 0 to 0."),
        ({"reward": [0.0, np.nan]}, "reward of a FiniteMDP holds numbers that are not finite."),
        (
            {"start_probability": [0.5]},
            "start_probability of a FiniteMDP is [0.5] of the states in start_state",
        ),
        ({"start_state": [3]}, "start_state of a FiniteMDP holds 3, but its states are counted from 0 to 0."),
    ],
)
def test_a_table_that_is_no_mdp_is_refused(wrong: dict[str, Any], said: str) -> None:
    """Some were learned, and the last outcome had what was left of the probability."""
    sound = table([[[0, 0]]], [[[1.0, 3.0]]], [[[True, True]]], [[[0.5, 0.5]]])
    sound.require_sound()
    changed = {name: jnp.asarray(values).reshape(getattr(sound, name).shape) for name, values in wrong.items()}

    @dataclasses.dataclass(frozen=True)
    class Arms(EnvironmentBuilder):
        def build(self, key: PRNGKeyArray) -> FiniteMDP:
            return dataclasses.replace(sound, **changed)

    with pytest.raises(InputError, match=f"^{re.escape(said)}"):
        train(Arms(), settings=Settings(seeds=1, episodes=2))


def test_the_range_of_returns_takes_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a loop that pays 1, each sweep adds one; 12 outcomes are six sweeps of a table of two."""
    loop = table(0, [[1.0, 0.0]], time_limit=100)
    assert loop.return_range(1.0) == (0.0, 100.0)
    monkeypatch.setattr(finite, "MOST_OUTCOMES", 12)
    assert loop.return_range(1.0) == (0.0, 6.0)


def test_the_widest_range_is_that_of_all_seeds_and_is_asked_seed_by_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two seeds Ctrl-C is heard: a large table takes seconds."""
    each = [table(0, [[low, high]], True) for low, high in ((-1.0, 2.0), (-4.0, 1.0), (0.5, 3.0))]
    environments = jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
    assert widest_range(environments, 0.9) == (-4.0, 3.0, True)
    asked = []

    def interrupted(_: Any, seed: int, __: float) -> Any:
        asked.append(seed)
        if seed == 1:
            raise KeyboardInterrupt
        return 0.0, 1.0

    monkeypatch.setattr(base, "_range", interrupted)
    with pytest.raises(KeyboardInterrupt):
        widest_range(environments, 0.9)
    assert asked == [0, 1]


@pytest.mark.parametrize(("draw", "outcome"), [(0.0, 1), (0.49, 1), (0.5, 2), (np.nextafter(np.float32(1), 0), 2)])
def test_outcomes_of_probability_zero_are_never_drawn(
    draw: float, outcome: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = table([[[0, 1, 2, 3]]], np.zeros((1, 1, 4)), False, [[[0.0, 0.5, 0.5, 0.0]]], 5)
    monkeypatch.setattr(jax.random, "uniform", lambda key: jnp.asarray(draw, jnp.float32))
    state, _ = environment.reset(KEY)
    assert environment.step(KEY, state, jnp.asarray(0))[1].observation == outcome


LAKES = {"4x4": FrozenLake("4x4"), "8x8": FrozenLake("8x8")}


@functools.cache
def gymnasium_lake(name: str, is_slippery: bool) -> Any:
    return gymnasium.make("FrozenLake-v1", is_slippery=is_slippery, map_name=name).unwrapped


@pytest.mark.parametrize("name", LAKES)
def test_frozen_lake_steps_as_gymnasium_does(name: str) -> None:
    environment, theirs = LAKES[name].build(KEY), gymnasium_lake(name, False)
    rng = np.random.default_rng(0)
    endings = set()
    for right in np.linspace(0.1, 0.9, 60):  # some episodes hardly move, some run to the goal or into a hole
        actions = rng.choice(4, size=40, p=[(1 - right) / 4, right / 2 + (1 - right) / 4] * 2).tolist()
        start, _ = theirs.reset()
        assert int(follow(environment, jnp.zeros(1, jnp.int32))[0].observation) == start
        ours = play(environment, actions)
        for action, (observation, reward, terminated, truncated) in zip(actions, ours, strict=False):
            expected = theirs.step(action)[:3]
            assert (observation, reward, terminated) == (expected[0], expected[1], expected[2])
            assert not truncated
        endings.add((ours[-1][1], ours[-1][2]))
    assert {(0.0, True), (1.0, True)} <= endings or name == "8x8"


@pytest.mark.parametrize("name", LAKES)
@pytest.mark.parametrize("is_slippery", [False, True])
def test_frozen_lake_has_gymnasiums_table(name: str, is_slippery: bool) -> None:
    builder = FrozenLake(LAKES[name].map_name, is_slippery)
    environment, theirs = builder.build(KEY), gymnasium_lake(name, is_slippery)
    assert (environment.num_states, environment.num_actions) == (len(theirs.P), 4)
    assert environment.observations.encoding(builder.preferences).num_features == len(theirs.P)
    fields = (environment.probability, environment.next_state, environment.reward, environment.terminated)
    probability, next_state, reward, terminated = map(np.asarray, fields)
    for s, a in itertools.product(theirs.P, range(4)):
        ours: dict[Any, float] = {}
        for o in range(probability.shape[-1]):
            if probability[s, a, o] > 0:
                entry = (int(next_state[s, a, o]), float(reward[s, a, o]), bool(terminated[s, a, o]))
                ours[entry] = ours.get(entry, 0.0) + float(probability[s, a, o])
        expected: dict[Any, float] = {}
        for p, to, r, ends in theirs.P[s][a]:
            entry = (int(to), float(r), bool(ends))
            expected[entry] = expected.get(entry, 0.0) + p
        assert ours == pytest.approx(expected, rel=1e-6)


@jax.jit
def next_states(environment: FiniteMDP, state: jax.Array, action: jax.Array) -> jax.Array:
    start = FiniteState(state, jnp.zeros((), jnp.int32))
    keys = jax.random.split(KEY, DRAWS)
    return jax.vmap(lambda key: environment.step(key, start, action)[1].observation)(keys)


def test_a_slippery_lake_slips_as_often_as_its_table_says() -> None:
    environment, theirs = FrozenLake("4x4", is_slippery=True).build(KEY), gymnasium_lake("4x4", True)
    for s, a in [(0, 0), (1, 2), (8, 3), (14, 2)]:
        seen = np.bincount(next_states(environment, jnp.asarray(s, jnp.int32), jnp.asarray(a, jnp.int32)), minlength=16)
        expected = np.zeros(16)
        for p, to, _, _ in theirs.P[s][a]:
            expected[to] += p
        assert (seen[expected == 0] == 0).all()
        reached = expected > 0
        assert scipy.stats.chisquare(seen[reached], DRAWS * expected[reached]).pvalue > 1e-4


def test_a_lake_with_several_starts_begins_in_each() -> None:
    environment = Gym("FrozenLake-v1", kwargs={"desc": ["SFS", "HFG", "SFF"]}).build(KEY)
    starts = jax.jit(jax.vmap(lambda key: environment.reset(key)[1].observation))(jax.random.split(KEY, DRAWS))
    seen = np.bincount(np.asarray(starts), minlength=9)
    assert set(np.flatnonzero(seen)) == {0, 2, 6}
    assert scipy.stats.chisquare(seen[[0, 2, 6]]).pvalue > 1e-4


@pytest.mark.parametrize("name", LAKES)
def test_a_lake_can_be_crossed(name: str) -> None:
    low, high = LAKES[name].build(KEY).return_range(1.0)
    assert (low, high) == (0.0, LAKES[name].success_return)


@pytest.mark.parametrize("encoding", ["one_hot", "scalar", "thermometer"])
def test_builders_take_the_encoding_by_name(encoding: Any) -> None:
    for builder, states in (
        (Chain(5, encoding=encoding), 5),
        (Toy(encoding=encoding), 3),
        (FrozenLake("4x4", encoding=encoding), 16),
    ):
        expected = {"one_hot": OneHot, "scalar": Scalar, "thermometer": Thermometer}[encoding](states)
        assert builder.build(KEY).observations.encoding(builder.preferences) == expected


@pytest.mark.parametrize(
    ("encoding", "features"),
    [
        (OneHot(5), np.eye(5)),
        (Thermometer(5), np.tri(5)),
        (Scalar(5), np.array([[-1.0], [-0.5], [0.0], [0.5], [1.0]])),
        (Scalar(1), np.array([[-1.0]])),
        (OneHot(1), np.eye(1)),
    ],
    ids=str,
)
def test_encodings_are_features_times_weights(encoding: Encoding, features: np.ndarray) -> None:
    assert encoding.num_features == features.shape[1]
    weight = np.random.default_rng(0).normal(size=(encoding.num_features, 4)).astype(np.float32)
    for state, feature in enumerate(features):
        ours = encoding.project((), jnp.asarray(weight), jnp.asarray(state, jnp.int32))
        np.testing.assert_allclose(ours, feature @ weight.astype(np.float64), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Chain(0), ["length is 0", "at least 1"]),
        (lambda: Chain(10, time_limit=9), ["time_limit is 9", "length 10", "at least 10"]),
        (lambda: FrozenLake(time_limit=0), ["time_limit is 0", "at least 1"]),
    ],
)
def test_errors_name_the_argument_the_value_and_the_remedy(build: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        build()
    for word in words:
        assert word in str(error.value)


class Corridor(Environment):
    """Pays `pay` at each step and shows its action; truncated after four, or terminated by chance."""

    pay: Any
    may_end: bool = eqx.field(static=True, default=False)

    @property
    def num_actions(self) -> int:
        return 2

    @property
    def observations(self) -> Numbers:
        assert self.pay.shape == (), "asked of one environment, not of all seeds' together"
        return Numbers((0.0, 0.0), (4.0, 1.0))

    def reset(self, key: Any) -> Any:
        no = jnp.zeros((), bool)
        return jnp.zeros(()), TimeStep(jnp.zeros(2), jnp.zeros(()), no, no)

    def step(self, key: Any, state: Any, action: Any) -> Any:
        ends = self.may_end & (jax.random.uniform(key) < 0.5)
        shown = jnp.stack([state + 1, action.astype(float)])
        return state + 1, TimeStep(shown, self.pay, ends, ~ends & (state + 1 >= 4))


@dataclasses.dataclass(frozen=True)
class Paying(EnvironmentBuilder):
    pay: float = 1.0
    may_end: bool = False

    def build(self, key: Any) -> Corridor:
        return Corridor(jnp.float32(self.pay), self.may_end)


@pytest.mark.parametrize(
    ("pay", "expected"), [(1.0, (0.0, 1 + 0.5 + 0.25 + 0.125)), (-2.0, (-3.75, 0.0)), (0.0, (0.0, 0.0))]
)
def test_the_returns_of_a_compiled_environment_without_a_table_are_measured(pay: float, expected: Any) -> None:
    environments = jax.vmap(Paying(pay).build)(jax.random.split(KEY, 3))
    assert widest_range(environments, 0.5) is None
    measured = measure_returns(Paying(pay), 0.5)
    assert (measured.low, measured.high, measured.known) == (*expected, False)
    assert measured == measure_returns(Paying(pay), 0.5)
    assert widest_range(jax.vmap(Chain(5).build)(jax.random.split(KEY, 3)), 0.5) == (0.0, 1.0, True)


def test_measured_returns_reach_to_the_time_limit_that_truncated_an_episode() -> None:
    assert measure_returns(Paying(may_end=True), 1.0) == (0.0, 4.0, False)


def test_a_reward_that_is_not_finite_is_found_as_returns_are_measured() -> None:
    class Broken(Paying):
        def build(self, key: Any) -> Corridor:
            return Corridor(jnp.float32(math.nan), self.may_end)

    with pytest.raises(
        InputError, match=r"^The environment, stepped by a random policy before the run, gave the reward nan: "
    ):
        measure_returns(Broken(), 0.9)


def test_a_builder_defines_no_success_unless_it_says_so() -> None:
    assert (Paying().success_return, Paying().floor_episodes) == (math.inf, None)


@pytest.mark.slow
def test_an_environment_without_a_table_is_trained_on_and_keeps_what_was_measured() -> None:
    settings = Settings(seeds=2, episodes=10, discount=0.5, replay_size=32, batch_size=8)
    result = train(Paying(), settings=settings)
    assert result.record.summary()["measured_returns"] == [0.0, 1.875]
    assert result.record.episodes[1].returns.tolist() == [4.0] * result.record.episodes[1].returns.size
