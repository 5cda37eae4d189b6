"""The report of an own environment: names of actions, observations along the greedy path, what is left of the start."""

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from uppertail.environments.spaces import read_space
from uppertail.records import RunFolder, write_json
from uppertail.records.run_folder import _runs_in
from uppertail.reports import groups, page
from uppertail.reports.details import detail
from uppertail.reports.seeds import Seed
from uppertail.training.along import Along, in_words, packed, state_in_words, unpacked
from worlds import Cell

PLACES = 12


class Steps(Cell):
    """Twelve places in a row: "on" leads to the next, and the last pays 1; "off" ends the episode."""

    metadata: dict[str, Any] = {"action_names": ["off", "on"]}  # noqa: RUF012
    observation_space = gymnasium.spaces.Box(-1, PLACES, (2,), np.float32)

    def _seen(self):
        return np.array([self.at, -1], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self._seen(), {}

    def step(self, action):
        self.at += int(action)
        there = self.at == PLACES
        return self._seen(), float(there), there or not action, False, {}


@pytest.fixture(scope="module")
def result():
    """Two seeds that have learned the row, whose observations repeat."""
    return ut.train(
        ut.FromGymnasium(Steps, features="hashed", returns=(0, 1)),
        settings=ut.Settings(seeds=2, steps=1024, rollout_steps=16),
        record="distributions",
    )


class Visitors(Cell):
    """Each episode is one visitor."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random(1).astype(np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), float(action), True, False, {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")
def test_where_an_episode_is_short_the_next_ones_follow():
    settings = ut.Settings(seeds=1, steps=16, rollout_steps=16)
    env = ut.FromGymnasium(Visitors, features="hashed", returns=(0, 1))
    recorded = ut.train(env, settings=settings, record="distributions").distributions
    assert recorded is not None
    assert recorded.path is not None
    assert len({*recorded.names["states"]}) == len(recorded.path[0]) == 8


def test_eight_observations_along_the_greedy_path_are_recorded_at_all_moments(result):
    assert result.record.greedy_returns == [1.0, 1.0]
    recorded = result.distributions
    assert recorded.names == {
        "actions": ("off", "on"),
        "states": tuple(f"{place} -1" for place in (0, 2, 3, 5, 6, 8, 9, 11)),
    }
    assert recorded.path.tolist() == [[*range(8)]] * 2
    assert recorded.plane == {}  # nearness means nothing where observations are hashed
    for moment, state in ((0, 5), (-1, 5)):
        assert (recorded.evidence[moment, :, state] > 0.99).all() == (moment == 0)
    z = result.distribution(np.array([8, -1]), seed=1)
    np.testing.assert_allclose(recorded.mean[-1, 1, 5], z.mean, rtol=1e-5)
    np.testing.assert_allclose(recorded.std[-1, 1, 5], z.std, rtol=1e-5)
    assert recorded.std[0, 1, 5].min() > 0.4  # wide at first
    seed = Seed(recorded, 1, result.agent.family, ut.UCB(), discount=0.99)
    shown = detail(seed, "", [])
    assert shown["names"] == list(recorded.names["states"])
    assert shown["rows"] == [*range(8)]
    assert {"left", "actions"} <= shown.keys()
    assert np.ptp(recorded.std[shown["opens"], 1], axis=1).max() > 0.4  # one action is narrow, the other wide
    assert "plane" not in shown


@pytest.mark.filterwarnings("ignore:The greedy policy of seed")
def test_a_recording_whose_networks_are_too_large_shows_the_first_observation(monkeypatch):
    from uppertail.training import recording

    monkeypatch.setattr(recording, "MOST_BYTES", 10)
    small = ut.train(
        ut.FromGymnasium(Steps, features="hashed", returns=(0, 1)),
        settings=ut.Settings(seeds=2, steps=64, rollout_steps=16),
        record="distributions",
    )
    recorded = small.distributions
    assert recorded
    assert (recorded.mean.shape[2], recorded.path) == (1, None)


class Careless(Cell):
    metadata: Any = ("human",)


def test_names_of_actions_are_given_declared_or_those_of_documentation():
    assert ut.FromGymnasium(Steps).names["actions"] == ("off", "on")
    assert ut.FromGymnasium(Steps, action_names=["no", "yes"]).names["actions"] == ("no", "yes")
    assert ut.Gym("CartPole-v1").names["actions"] == ("left", "right")
    assert ut.Gym("CartPole-v1", action_names=["l", "r"]).names["actions"] == ("l", "r")
    assert ut.FromGymnasium(Cell).names == {}
    assert ut.FromGymnasium(Careless).names == {}
    with pytest.raises(ut.InputError, match="action_names has 3 names, but there are 2 actions"):
        _ = ut.FromGymnasium(Steps, action_names=["a", "b", "c"]).inspected
    with pytest.raises(ut.InputError, match="give each action a name of its own"):
        _ = ut.FromGymnasium(Steps, action_names=["a", "a"]).inspected


def test_declared_names_of_another_count_are_not_used_and_a_note_says_so(monkeypatch):
    assert ut.FromGymnasium(Steps).note is None
    monkeypatch.setitem(Steps.metadata, "action_names", ["off", "on", "wait"])
    builder = ut.FromGymnasium(Steps)
    assert builder.names == {}
    assert "is not used: there are 2 actions, and it names 3. Name them by --env.action_" in (builder.note or "")
    assert ut.FromGymnasium(Steps, action_names=["no", "yes"]).note is None


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        ({"place": np.array([1, 2]), "key": 0}, "place 1 2, key 0"),
        ((3, "door\n"), "3, door\\n"),
        (np.zeros((8, 8)), ""),
        (0.123456, "0.123"),
    ],
)
def test_observations_in_words(observation, words):
    assert in_words(observation) == words


def test_states_are_called_as_observations_are_that_were_seen():
    space = spaces.Dict({"place": spaces.MultiDiscrete([3, 4], start=[0, -1]), "key": spaces.Discrete(2)})
    reading = read_space(np, space, states=True)
    for place in np.ndindex(3, 4):
        for key in range(2):
            seen = {"place": np.add(place, (0, -1)), "key": key}
            words = state_in_words(reading, int(reading.array(seen)))
            assert words == in_words({name: seen[name] for name in space}), list(space)
    assert state_in_words(read_space(np, spaces.Discrete(4)), 2) == ""


def test_observations_that_are_too_long_are_called_by_their_place():
    images = [np.full((8, 8), step, np.float32) for step in (0, 0, 1)]
    reading = read_space(np, spaces.Box(0, 1, (8, 8), np.float32))
    along = Along.of([[(each, None) for each in seen] for seen in (images, images[2:])], reading)
    assert along.names == ("observation 1 of its path", "observation 2 of its path")
    assert along.path.tolist() == [[0, 1, *[-1] * 6], [1, *[-1] * 7]]


def test_packed_networks_are_the_same_again(result):
    again = unpacked(result.networks, packed(result.networks))
    for one, other in zip(*(map(np.asarray, vars(each).values()) for each in (again, result.networks)), strict=False):
        np.testing.assert_array_equal(one, other)


def test_a_table_has_no_empty_columns():
    rows = [{"method": "a", "first success": "–", "greedy": "1"}, {"method": "b", "first success": "–", "greedy": "–"}]
    table = page._table(page._without_empty(rows))
    assert "first success" not in table and table.count("<th ") == 2


def test_runs_of_a_study_come_in_its_order(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / "cells" / name).mkdir(parents=True)
        (tmp_path / "cells" / name / "summary.json").write_text("{}")
    assert [run.path.name for run in _runs_in(tmp_path)] == ["a", "b", "c"]
    write_json(tmp_path / "study.json", {"cells": [{"name": "c"}, {"name": "lost"}, {"name": "a"}]})
    assert [run.path.name for run in _runs_in(tmp_path)] == ["c", "a", "b"]
    (tmp_path / "study.json").write_text(json.dumps([1]))
    assert [run.path.name for run in _runs_in(tmp_path)] == ["a", "b", "c"]


def test_a_run_that_is_named_by_its_method_is_called_by_its_name(tmp_path):
    def label(name, ambiguous):
        run = RunFolder(tmp_path / name)
        run.__dict__["summary"] = {"distribution": {"name": "Gaussian"}, "policy": {"name": "UCB"}}
        return groups._label(run, ambiguous)

    assert label("Gaussian, UCB (LeastSquares)", True) == "Gaussian, UCB (LeastSquares)"
    assert (label("mine", True), label("mine", False)) == ("Gaussian, UCB (mine)", "Gaussian, UCB")
