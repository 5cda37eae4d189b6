"""What a random policy finds out of a vector's numbers: against data whose structure is known."""

import dataclasses
import itertools
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.encodings import HashedNumbers, Vector
from uppertail.environments import random_policy
from uppertail.environments.random_policy import (
    Choice,
    Steps,
    choose_features,
    clocks,
    irrelevant_numbers,
    is_sparse,
    repeat,
)
from uppertail.errors import InputError
from uppertail.types import ReturnRange

COUNT = 2_000


def steps_of(observation: Any, next_observation: Any, reward: Any, random: np.random.Generator) -> Steps:
    never = np.zeros(COUNT, bool)
    return Steps(observation, random.integers(2, size=COUNT), reward, never, never, next_observation)


@pytest.mark.parametrize("seed", range(5))
def test_a_number_is_irrelevant_if_it_tells_nothing(seed: int) -> None:
    """Fresh noise tells nothing; what stays, what moves another number, and what is paid for tell something."""
    random = np.random.default_rng(seed)
    place, lever, paid, noise, bit = random.normal(size=(5, COUNT))
    bit = (bit > 0).astype(float)
    here = np.column_stack([place, lever, paid, noise, bit, np.ones(COUNT)])
    fresh = random.normal(size=(COUNT, 6))
    fresh[:, 0] = 0.9 * place + 0.5 * lever  # 0 keeps its value, 1 moves it; 2 is paid for; 5 never changes
    fresh[:, 4], fresh[:, 5] = fresh[:, 4] > 0, 1.0
    assert irrelevant_numbers(steps_of(here, fresh, 0.3 * paid, random)).tolist() == [3, 4]


def test_an_effect_that_two_actions_have_in_opposite_directions_counts() -> None:
    random = np.random.default_rng(0)
    cue, noise = random.normal(size=(2, COUNT))
    steps = steps_of(np.column_stack([cue, noise]), random.normal(size=(COUNT, 2)), np.zeros(COUNT), random)
    steps = steps._replace(reward=np.where(steps.action == 1, cue, -cue))
    assert irrelevant_numbers(steps).tolist() == [1]


def test_one_hot_numbers_are_relevant_although_each_follows_from_the_others() -> None:
    random = np.random.default_rng(0)
    state = np.cumsum(random.integers(1, 3, size=COUNT + 1)) % 5
    shown = np.column_stack([np.eye(5)[state], random.integers(2, size=COUNT + 1)])
    assert irrelevant_numbers(steps_of(shown[:-1], shown[1:], np.zeros(COUNT), random)).tolist() == [5]


def test_too_few_steps_leave_nothing_out() -> None:
    """A number that varied once, and numbers that are as many as the steps of an action."""
    random = np.random.default_rng(0)
    rare = np.zeros((COUNT, 1))
    rare[7] = 1.0
    assert irrelevant_numbers(steps_of(rare, random.normal(size=(COUNT, 1)), np.zeros(COUNT), random)).size == 0
    here, after = random.normal(size=(2, COUNT, COUNT // 2))
    assert irrelevant_numbers(steps_of(here, after, np.zeros(COUNT), random)).size == 0


def test_all_numbers_stay_if_none_tells_anything() -> None:
    """Noise alone is kept, since a run needs a number; so is all if nothing that follows ever varies."""
    random = np.random.default_rng(0)
    here, after = random.normal(size=(2, COUNT, 3))
    for following, reward in ((after, after[:, 0]), (np.zeros((COUNT, 3)), np.zeros(COUNT))):
        assert irrelevant_numbers(steps_of(here, following, reward, random)).size == 0


def test_observations_repeat_if_the_later_ones_came_before() -> None:
    grid = np.array([*itertools.product(range(5), repeat=2)], float)
    assert repeat(np.tile(grid, (4, 1)))
    assert not repeat(np.random.default_rng(0).normal(size=(100, 2)))
    assert not repeat(np.concatenate([np.tile(grid, (2, 1)), np.tile(grid, (2, 1)) + 5.0]))


def test_settings_that_the_user_left_open_are_chosen_and_no_others() -> None:
    sea = ut.RichSea(4, bits=3)
    chosen, nearest, notes = choose_features(sea, 0.99)
    assert not nearest, "its numbers repeat"
    assert chosen == dataclasses.replace(sea, left_out=(8, 9, 10), features="hashed")
    assert len(notes) == 1 and "The numbers 8, 9, 10 of observations are left out: they told nothing" in notes[0]
    for given in (dataclasses.replace(sea, left_out=()), dataclasses.replace(sea, radius=0.1)):
        assert choose_features(given, 0.99) == Choice(given)
    random: Any = choose_features(dataclasses.replace(sea, features="random"), 0.99).builder
    assert random.features == "random"
    bare = ut.RichSea(4, bits=0)
    assert choose_features(bare, 0.99).builder == dataclasses.replace(bare, features="hashed")
    before = {"left_out": [1], "features": "scaled"}
    again = dataclasses.replace(sea, left_out=(1,), features="scaled")
    assert choose_features(sea, 0.99, before) == Choice(again)


def test_reward_is_sparse_if_all_random_episodes_return_nearly_the_same() -> None:
    """Three episodes of two steps, and one that has not ended: by hand, returns of 1.9, 2.9 and 1.0."""
    ends = np.array([False, True, False, True, False, True, False])
    reward = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 0.0, 50.0])
    numbers = np.zeros((7, 1))
    for terminated, truncated in ((ends, ~ends & False), (~ends & False, ends)):
        steps = Steps(numbers, np.zeros(7, int), reward, terminated, truncated, numbers)
        assert is_sparse(steps, ReturnRange(0.0, 38.1), 0.9)
        assert not is_sparse(steps, ReturnRange(0.0, 37.9), 0.9)
    one = Steps(numbers, np.zeros(7, int), reward, ends & (np.arange(7) > 4), ~ends & False, numbers)
    assert not is_sparse(one, ReturnRange(0.0, 1e6), 0.9), "one episode says nothing of others"


def shown(name: str, **settings: Any) -> Any:
    return choose_features(ut.Gym(name, **settings), 0.995)


def test_neighbors_learn_where_reward_is_sparse_and_numbers_do_not_repeat() -> None:
    sparse = shown("MountainCar-v0", returns=(-200.0, 0.0))
    assert sparse.nearest and "nearest neighbors learn" in sparse.notes[0]
    assert not shown("MountainCar-v0").nearest, "the range of returns is only measured"
    assert not shown("CartPole-v1", returns=(0.0, 100.0)).nearest
    assert not shown("CartPole-v1", returns=(0.0, 500.0)).nearest, "also if the range is much too wide"
    assert not choose_features(ut.Gym("MountainCar-v0", returns=(-200.0, 0.0)), 0.995, nearest=False).nearest


class Falling(gymnasium.Env[Any, Any]):
    """A ball falls through 12 rows, and a known column of the last one pays: the row is no clock to be left out."""

    observation_space = gymnasium.spaces.Box(0.0, 20.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.row = self.column = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.row, self.column = self.row + 1, self.column + int(action)
        won = self.row == 12 and self.column == 12
        return np.array([self.row, self.column], np.float32), float(won), self.row == 12, False, {}


def test_a_clock_stays_where_observations_repeat_and_neighbors_are_only_used_if_asked_for() -> None:
    builder = ut.FromGymnasium(Falling, id="Falling", returns=(0.0, 1.0))
    chosen = choose_features(builder, 0.99)
    assert not chosen.nearest
    assert (chosen.builder.features, chosen.builder.left_out) == ("hashed", None)
    asked = choose_features(builder, 0.99, nearest=True)
    assert (asked.builder.features, asked.builder.left_out) == ("auto", (0,))
    assert asked.nearest and "The numbers 0 of observations are left out: they count the steps" in asked.notes[0]


def test_a_number_that_changes_alike_in_every_step_counts_them() -> None:
    random = np.random.default_rng(0)
    ends = random.uniform(size=COUNT) < 0.01
    step = np.arange(COUNT) - np.concatenate([[0], np.flatnonzero(ends) + 1])[np.cumsum(ends) - ends]
    shown = np.column_stack([step / 50, 3.0 - step, step % 7, step + random.normal(size=COUNT), np.ones(COUNT)])
    steps = steps_of(shown, shown, np.zeros(COUNT), random)._replace(terminated=ends)
    assert clocks(steps).tolist() == [0, 1]
    assert clocks(steps._replace(observation=shown[:, :2])).size == 0, "a run needs a number"
    assert clocks(steps._replace(terminated=~ends & False)).size == 0, "it does not begin again with each episode"


@pytest.mark.parametrize("builder", [ut.RichSea(3), ut.FromGymnasium(lambda: gymnasium.make("CartPole-v1"))])
def test_steps_hold_observations_only_if_they_are_asked_for(builder: Any) -> None:
    """Those of images may not fit into memory; all else is the same."""
    bare, full = (random_policy._steps(builder, least, "in a test,") for least in (0, 1))
    assert bare.observation.shape == bare.next_observation.shape == (len(bare.reward), 0)
    assert full.observation.shape == full.next_observation.shape == (len(full.reward), len(full.observation[0]))
    for one, other in zip(bare[1:5], full[1:5], strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_hash_tells_vectors_apart_by_the_numbers_that_count() -> None:
    """All 4,096 vectors of twelve bits, beside one that is left out: places are those of the twelve alone."""
    encoding = HashedNumbers(2**16, Vector((0.0,) * 13, (1.0,) * 13, left_out=(5,)))
    bits = np.array([*itertools.product((0.0, 1.0), repeat=12)], np.float32)
    shown = np.insert(bits, 5, 0.0, axis=1)
    hashes = jax.vmap(encoding.hash)(jnp.array(shown))
    assert np.unique(hashes).size == len(bits)
    assert int(hashes.min()) >= 1
    shown[:, 5] = 1.0
    np.testing.assert_array_equal(jax.vmap(encoding.hash)(jnp.array(shown)), hashes)
    table = encoding.observe(encoding.init(jax.random.key(0)), jnp.array(shown[:500]))
    places = jax.vmap(encoding.index, in_axes=(None, 0))(table, jnp.array(shown[:500]))
    assert np.unique(places).size == 500


def test_random_bits_are_left_out_and_the_sea_is_solved() -> None:
    """The record has the settings that were chosen."""
    with pytest.warns(UserWarning, match="The numbers 8, 9, 10, 11 of observations are left out"):
        result = ut.train(ut.RichSea(4, bits=4), settings=ut.Settings(seeds=1, episodes=40))
    chosen = result.record.asked["environment"]
    assert (chosen["features"], chosen["left_out"]) == ("hashed", [8, 9, 10, 11])
    assert result.record.greedy_returns == [pytest.approx(0.99, abs=0.01)]


def test_places_of_numbers_that_there_are_not_are_refused() -> None:
    with pytest.raises(InputError, match=r"left_out is \[8\]: an observation has 8 numbers, so use 0 to 7."):
        ut.train(ut.RichSea(4, bits=0, left_out=(8,)), settings=ut.Settings(seeds=1, episodes=2))
    with pytest.raises(InputError, match="left_out leaves no number"):
        ut.train(ut.RichSea(1, bits=0, left_out=(0, 1)), settings=ut.Settings(seeds=1, episodes=2))
