"""Averages over nearest neighbors: against plain NumPy, exact dynamic programming, and runs."""

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.agent import Agent
from uppertail.cli import main
from uppertail.defaults import facts
from uppertail.encodings import Image, Vector
from uppertail.encodings.standardized import Standardized
from uppertail.errors import InputError
from uppertail.learners import neighborhoods
from uppertail.types import Transition

KEY = jax.random.key(0)
INFINITE = (np.inf, np.inf)


def learner_of(family: Any = None, encoding: Any = None, **settings: Any) -> Any:
    """A learner of vectors of two numbers, whose bounds are those seen so far."""
    encoding = encoding or Standardized(Vector(tuple(-bound for bound in INFINITE), INFINITE))
    agent = Agent(family or ut.Gaussian(scale=1.0), ut.UCB(), encoding, 0.9)
    return ut.NearestNeighbors(**settings).build(agent, None)


def walk(count: int, seed: int = 0) -> Transition:
    """Random transitions of three actions in a plane."""
    random = np.random.default_rng(seed)
    here, after = random.uniform(-1, 1, (2, count, 2)).astype(np.float32)
    action, reward = random.integers(3, size=count), random.normal(size=count)
    terminated, numbers = random.uniform(size=count) < 0.1, np.zeros(count, np.int32)
    return Transition(*map(jnp.asarray, (here, action, reward, terminated, after, numbers)))


def corners() -> Transition:
    """Four transitions that show the bounds of `walk` before it begins."""
    here = jnp.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
    return Transition(here, jnp.arange(4) % 3, jnp.zeros(4), jnp.zeros(4, bool), here, jnp.zeros(4, jnp.int32))


def learned(learner: Any, *batches: Transition, num_actions: int = 3) -> Any:
    state = learner.init(KEY, batches[0].observation, num_actions)
    learn = jax.jit(learner.learn)
    for number, batch in enumerate(batches):
        state, _ = learn(KEY, state, batch, jnp.asarray(number))
    return state


def neighbors_by_hand(state: Any, point: np.ndarray, action: int, count: int) -> tuple[list[int], list[float]]:
    """Rows of the nearest transitions of an action and their squared distances, by sorting all of them."""
    rows = state.memory.hoods.rows
    size = int(state.network.places.size)
    square = np.mean(((np.asarray(rows.observation)[:size] - point) / np.asarray(state.network.encoder.scale)) ** 2, 1)
    own = np.flatnonzero(np.asarray(state.network.places.action)[:size] == action)
    order = own[np.argsort(square[own], kind="stable")][:count]
    return order.tolist(), square[order].tolist()


@pytest.mark.parametrize("sizes", [(7, 50, 1), (300, 1300)])
def test_neighbors_are_those_of_a_full_sort(sizes: tuple[int, ...]) -> None:
    """Also those that are kept of where transitions lead, which came before their neighbors, across blocks."""
    learner = learner_of(resolution=1e-6, neighbors=4, transitions=4096)
    state = learned(learner, *(walk(size, seed) for seed, size in enumerate(sizes)))
    assert int(state.network.places.size) == sum(sizes)
    rows, near = state.memory.hoods.rows, state.memory.hoods.near
    asked = np.random.default_rng(9).uniform(-1, 1, (5, 2)).astype(np.float32)
    found = [state.network.nearest(jnp.asarray(point)) for point in asked]
    for number in range(0, sum(sizes), 37):
        asked = np.concatenate([asked, np.asarray(rows.next_observation)[number][None]])
        found.append(jax.tree.map(lambda leaf, number=number: leaf[number], near))
    for point, each in zip(asked, found, strict=True):
        for action in range(3):
            order, square = neighbors_by_hand(state, point, action, 4)
            assert each.row[action, : len(order)].tolist() == order
            np.testing.assert_allclose(each.square[action, : len(order)], square, rtol=1e-4, atol=1e-6)


def test_what_is_far_is_as_wide_as_the_start_and_what_is_near_is_its_neighbors_mean() -> None:
    learner = learner_of(neighbors=2, reach=0.5)
    once = corners()._replace(terminated=jnp.ones(4, bool), reward=jnp.array([4.0, 0.0, 0.0, 1.0]))
    network = learned(learner, once).network
    outputs = network.outputs(jnp.array([-1.0, -1.0]))  # action 0 was taken here, and at [1, -1] with a reward of 1
    near, far = 1 / neighborhoods.NEAR, 1 / (neighborhoods.NEAR + 2.0)  # numbers of 1 and -1: scales of 1
    mean = (4.0 * near + 1.0 * far) / (near + far)
    assert outputs[0, 0] == pytest.approx(mean, rel=1e-5)
    assert outputs[0, 1] == pytest.approx(1e-4, abs=2e-5), "the end of an episode is nearly certain"
    start = np.asarray(learner.start)
    for action in (1, 2):
        left = 1 - np.exp(-(4.0 if action == 1 else 2.0) / 0.5**2)
        np.testing.assert_allclose(outputs[action], left * start, rtol=1e-5)
        assert network.evidence(jnp.array([-1.0, -1.0]))[action] == pytest.approx(left, rel=1e-5)


def test_a_repeated_transition_joins_the_first_and_rewards_are_averaged() -> None:
    again = jax.tree.map(lambda leaf: jnp.repeat(leaf[:1], 3, axis=0), corners())
    again = again._replace(reward=jnp.array([1.0, 2.0, 6.0]))
    terminal = jax.tree.map(lambda leaf: leaf[:1], again)._replace(terminated=jnp.ones(1, bool))
    state = learned(learner_of(), corners(), again, terminal)
    assert int(state.network.places.size) == 5, "one that terminated is another"
    assert state.memory.hoods.rows.weight[:5].tolist() == [4, 1, 1, 1, 1]
    assert state.memory.hoods.rows.reward[0] == pytest.approx((0.0 + 1.0 + 2.0 + 6.0) / 4)


def test_a_place_has_the_mean_of_its_outcomes_whichever_came_first() -> None:
    """It led to an end with a reward 19 times, and once to an end without one."""
    start, good, bad = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], np.float32)
    learner = learner_of(transitions=1024)
    learner = dataclasses.replace(learner, agent=dataclasses.replace(learner.agent, discount=1.0))
    state, learn = learner.init(KEY, jnp.asarray(start)[None], 3), jax.jit(learner.learn)
    ends = [(good, 0, 1.0, True, good), (bad, 0, 0.0, True, bad)]
    for first, other in ((bad, good), (good, bad)):
        rows = [(start, 0, 0.0, False, each) for each in (first, other, *[good] * 18)] + ends
        seen, action, reward, ended, led_to = (jnp.asarray(np.array(each)) for each in zip(*rows, strict=True))
        batch = Transition(seen, action, reward, ended, led_to, jnp.zeros(22, jnp.int32))
        after, _ = learn(KEY, state, batch, jnp.asarray(0))
        assert after.network.outputs(jnp.asarray(start))[0, 0] == pytest.approx(0.95, abs=1e-3)


def test_a_memory_full_of_chance_ends_keeps_what_it_has() -> None:
    """Transitions of one place that ended and others that did not never make room: entries stop getting coarser."""
    ended = (np.random.default_rng(0).uniform(size=2400) < 0.7) & (np.arange(2400) > 0)
    here = jnp.zeros((2400, 2))
    chance = Transition(here, jnp.zeros(2400, int), jnp.ones(2400), jnp.asarray(ended), here, jnp.zeros(2400, int))
    parts = [jax.tree.map(lambda leaf, first=first: leaf[first : first + 400], chance) for first in range(0, 2400, 400)]
    state = learned(learner_of(transitions=1024), corners(), *parts)
    assert 100 < int(state.network.places.size) <= 1024
    assert 1.0 <= float(state.memory.resolution) < 1.25
    assert bool(jnp.isfinite(state.network.values).all())


def test_a_new_scale_and_a_full_memory_enter_all_transitions_again() -> None:
    learner = learner_of(transitions=1024)
    state = learned(learner, *(walk(200, seed) for seed in range(8)))
    size = int(state.network.places.size)
    assert size <= 1024 and float(state.memory.resolution) > 0.035
    assert float(jnp.sum(state.memory.hoods.rows.weight)) == 1600, "all that joined others are counted"
    wide = walk(4, 9)
    wide = wide._replace(observation=10 * wide.observation, next_observation=10 * wide.next_observation)
    state = jax.jit(learner.learn)(KEY, state, wide, jnp.asarray(9))[0]
    assert float(jnp.sum(state.memory.hoods.rows.weight)) == 1604
    for point in np.asarray(wide.observation):
        order, square = neighbors_by_hand(state, point, 1, 6)
        found = state.network.nearest(jnp.asarray(point))
        assert found.row[1].tolist() == order
        np.testing.assert_allclose(found.square[1], square, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("family", [ut.PointMass(scale=1.0, start=5.0), ut.Gaussian(scale=1.0)])
def test_sweeps_reach_the_values_of_exact_dynamic_programming(family: Any) -> None:
    """On 60 lines of eleven places where every action was tried: more than one block. Each finds its own transition."""
    places = np.linspace(-1, 1, 11)
    after = np.stack([np.maximum(np.arange(11) - 1, 0), np.minimum(np.arange(11) + 1, 10)], axis=1)
    reward, ended = np.zeros((11, 2)), np.zeros((11, 2), bool)
    reward[9, 1], ended[9, 1], reward[:, 0] = 1.0, True, 0.01
    q = np.zeros((11, 2))
    for _ in range(500):
        q = reward + 0.9 * np.where(ended, 0.0, q.max(axis=1)[after])
    line, place, action = (each.ravel() for each in np.mgrid[:60, :10, :2])
    batch = Transition(
        jnp.asarray(np.column_stack([places[place], line]), jnp.float32),
        jnp.asarray(action),
        jnp.asarray(reward[place, action], jnp.float32),
        jnp.asarray(ended[place, action]),
        jnp.asarray(np.column_stack([places[after[place, action]], line]), jnp.float32),
        jnp.zeros(len(line), jnp.int32),
    )
    learner = learner_of(family, neighbors=1, sweeps=300, tolerance=1e-6, reach=1e-3, resolution=1e-4, transitions=4096)
    network = learned(learner, batch, num_actions=2).network
    for number in (0, 31, 59):
        z = jax.vmap(lambda point: network.returns(family, point))(batch.observation[20 * number :: 2][:10])
        mean, std = (jax.vmap(jax.vmap(jax.vmap(each)))(z)[:, 0] for each in (family.mean, family.std))
        np.testing.assert_allclose(mean, q[:10], atol=1e-3)
        np.testing.assert_allclose(std, 0.0, atol=2e-3)


def test_an_end_at_the_latest_time_is_a_time_limit_if_the_clock_is_left_out() -> None:
    """Two episodes of two steps, and one that ends after its first: only the end of the latter is one.

    A third number is left out, too. It is the highest at that end, but it does not change in every step.
    """
    encoding = Standardized(Vector((-np.inf,) * 3, (np.inf,) * 3, left_out=(1, 2)))
    for sign in (1.0, -1.0):
        here = jnp.array([[-1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [-1.0, 0.0], [1.0, 1.0]]) * jnp.array([[1.0, sign]])
        step = jnp.array([[2.0, 1.0], [-2.0, 1.0], [0.5, 1.0], [2.0, 1.0], [-2.0, 1.0]]) * jnp.array([[1.0, sign]])
        ended = jnp.array([False, True, True, False, True])
        numbers = jnp.zeros(5, jnp.int32)
        bits = jnp.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
        shown, following = (jnp.column_stack([each, bits[:, i]]) for i, each in enumerate((here, here + step)))
        batch = Transition(shown, numbers, jnp.ones(5), ended, following, numbers)
        learner = learner_of(
            ut.PointMass(scale=1.0, start=5.0), encoding, neighbors=1, sweeps=500, tolerance=1e-7, reach=1e-3
        )
        network = learned(learner, batch, num_actions=1).network
        assert network.outputs(jnp.array([1.0, 0.0, 0.0]))[0, 0] == pytest.approx(10.0, abs=1e-3), "1 / (1 - 0.9)"
        assert network.outputs(jnp.array([0.0, 0.0, 0.0]))[0, 0] == pytest.approx(1.0, abs=1e-3)


class Ramp(gymnasium.Env[Any, Any]):
    """A cart that starts at rest in a valley with weak motors; reaching the right end of the ramp pays 1."""

    action_space = gymnasium.spaces.Discrete(3)
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x, self.v, self.steps = -0.5 + self.np_random.uniform(-0.1, 0.1), 0.0, 0
        return np.array([self.x, self.v, self.steps / 100]), {}

    def step(self, action: Any) -> Any:
        self.v = np.clip(self.v + 0.001 * (int(action) - 1) - 0.0025 * np.cos(3 * self.x), -0.07, 0.07)
        self.x, self.steps = max(self.x + self.v, -1.2), self.steps + 1
        won = bool(self.x > 0.5)
        return np.array([self.x, self.v, self.steps / 100]), float(won), won, False, {}


def ramp(**settings: Any) -> Any:
    return ut.FromGymnasium(
        lambda: gymnasium.wrappers.TimeLimit(Ramp(), 200), id="Ramp", returns=(0.0, 1.0), success=1.0, **settings
    )


def test_it_leaves_out_the_clock() -> None:
    with pytest.warns(UserWarning, match="The numbers 2 of observations are left out: they count the steps"):
        ut.train(ramp(), settings=ut.Settings(seeds=1, episodes=2), learner=ut.NearestNeighbors())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The numbers 2", "ignore:All episodes")
def test_it_finds_and_keeps_a_sparse_reward() -> None:
    result = ut.train(ramp(), settings=ut.Settings(seeds=3, seed=100, episodes=80), learner=ut.NearestNeighbors())
    for each in result.record.episodes:
        assert each.returns[40:].mean() > 0.9


def test_the_reach_shrinks_where_nothing_new_is_seen() -> None:
    learner = learner_of()
    again = jax.tree.map(lambda leaf: jnp.repeat(leaf, 15, axis=0), corners())
    state = learned(learner, corners(), again)
    assert state.memory.idle == 60 and state.network.reach == 4.0
    state = learned(learner, corners(), again, again)
    assert state.memory.idle == 0 and state.network.reach == pytest.approx(0.8 * 4.0)
    assert learned(learner, corners(), again, walk(1), again).network.reach == 4.0
    assert learned(learner, corners(), *[again] * 40).network.reach == 0.5, "the least"


@pytest.mark.usefixtures("own_folder")
def test_a_run_that_chose_its_learner_is_evaluated_and_resumed_with_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """config.yaml leaves the learner open, and the second run does not ask a random policy again."""
    car = ["--env", "Gym", "--env.id", "MountainCar-v0", "--env.returns", "[-200, 0]", "--seeds", "1"]
    assert main(["train", *car, "--steps", "1200", "--episodes", "100", "--out", "whole"]) == 0
    assert (
        main(["train", *car, "--steps", "800", "--episodes", "100", "--checkpoint_every", "400", "--out", "run"]) == 0
    )
    monkeypatch.setattr(facts, "random_steps", None)
    assert main(["resume", "run", "--steps", "1200"]) == 0
    files = [np.load(Path(folder) / "episodes.npz") for folder in ("whole", "run")]
    for name in files[0].files:
        np.testing.assert_array_equal(files[0][name], files[1][name])
    assert main(["evaluate", "run", "--episodes", "1"]) == 0
    capsys.readouterr()
    assert main(["inspect", "run"]) == 0
    assert "First observation" in capsys.readouterr().out
    assert main(["export", "run", "--to", "policy.npz"]) == 0


def test_what_it_cannot_learn_is_refused() -> None:
    with pytest.raises(InputError, match="GaussianMixture has no parameters whose weighted means"):
        learner_of(ut.GaussianMixture(scale=1.0))
    with pytest.raises(InputError, match="Image, which has no distances"):
        learner_of(encoding=Image(12, 12, 1))
    for name, value in (("reach", 0.0), ("resolution", -1.0), ("neighbors", 0), ("transitions", 5)):
        with pytest.raises(InputError, match=f"{name} is {value}"):
            ut.NearestNeighbors(**{name: value})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"use --learner.transitions 1600 or more"):
        learned(learner_of(transitions=1024), walk(800))
