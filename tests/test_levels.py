"""Actions that are numbers, or several integers, as one list: what environments take, and what people see."""

import io
import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import uppertail as ut
from choosing import chosen
from uppertail.cli import main
from uppertail.defaults import Plan
from uppertail.environments.actions import list_actions
from uppertail.errors import InputError
from uppertail.loader import load

FORCES = spaces.Box(-2.0, 2.0, (1,), np.float32)


class Push(gymnasium.Env):
    """Pushes a cart, whose place is seen, to the right, and writes into the array that it is given."""

    observation_space = spaces.Box(-math.inf, math.inf, (1,), np.float32)
    action_space: Any = FORCES

    def __init__(self) -> None:
        self.taken: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.steps = self.np_random.uniform(), 0
        return np.array([self.place], np.float32), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space, action
        self.taken.append(action.copy())
        force = float(np.sum(action))
        action[...] = 0
        self.place, self.steps = self.place + force, self.steps + 1
        return np.array([self.place], np.float32), force, False, self.steps == 5, {}


class Pushes(Push):
    action_space = spaces.Box(-1, 1, (2,), np.float64)


class Buttons(Push):
    action_space = spaces.MultiDiscrete([2, 3], start=[1, 0])


class Switches(Push):
    action_space = spaces.MultiBinary(2)


def taken_of(builder: Any, num_envs: int = 1) -> list[Any]:
    """What environments were given for each action, taken once."""
    host = builder.open(0, num_envs)
    host.reset()
    for action in range(builder.num_actions):
        host.step(np.full(num_envs, action))
    return host.env.envs[-1].unwrapped.taken


# Lists


@pytest.mark.parametrize(
    ("space", "levels", "own"),
    [
        (FORCES, None, [[-2], [0], [2]]),
        (FORCES, 2, [[-2], [2]]),
        (FORCES, 5, [[-2], [-1], [0], [1], [2]]),
        (spaces.Box(0.5, 1.0, (), np.float32), None, [0.5, 0.75, 1.0]),
        (spaces.Box(np.array([0, -1.0]), np.array([4, 1.0]), dtype=np.float64), 2, [[0, -1], [0, 1], [4, -1], [4, 1]]),
        (spaces.Box(-1, 1, (1, 2), np.int8), 2, [[[-1, -1]], [[-1, 1]], [[1, -1]], [[1, 1]]]),
        (spaces.Box(0, 1, (1,), np.int64), 5, [[0], [1]]),
        (spaces.Box(np.array([3.0, 0]), np.array([3.0, 1]), dtype=np.float64), 2, [[3, 0], [3, 1]]),
        (spaces.MultiDiscrete([2, 3]), None, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]),
        (spaces.MultiDiscrete([2, 1], start=[5, -3]), None, [[5, -3], [6, -3]]),
        (spaces.MultiDiscrete(np.array([[2, 2]])), None, [[[0, 0]], [[0, 1]], [[1, 0]], [[1, 1]]]),
        (spaces.MultiBinary(2), None, [[0, 0], [0, 1], [1, 0], [1, 1]]),
    ],
    ids=str,
)
def test_a_list_has_both_ends_and_all_combinations(space: Any, levels: int | None, own: list[Any]) -> None:
    listed = list_actions(space, levels)
    assert listed.own is not None and listed.own.dtype == space.dtype and listed.own.tolist() == own
    assert listed.size == len(own) and all(np.asarray(listed.taken(index)) in space for index in range(listed.size))
    assert listed.taken(np.array([[1, 0]])).tolist() == [[own[1], own[0]]]


@pytest.mark.parametrize("low", [-0.1, -1 / 3, -1e9])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_ends_are_those_of_the_box_to_the_last_bit(low: float, kind: Any) -> None:
    space = spaces.Box(kind(low), kind(0.7), (1,), kind)
    for levels in range(2, 65):
        own = list_actions(space, levels).own
        assert own is not None and own.shape == (levels, 1) and (own[0], own[-1]) == (space.low, space.high)


def test_a_discrete_space_is_a_list_already() -> None:
    listed = list_actions(spaces.Discrete(3, start=7))
    assert listed == (3, 7, None, None, None) and listed.taken(1) == 8 and listed.names == {}


@pytest.mark.parametrize(
    ("space", "levels", "words"),
    [
        (FORCES, 1, r"^levels is 1: use 2, which are both ends, to 64, or leave it out\.$"),
        (FORCES, 65, r"^levels is 65: use 2, "),
        (
            spaces.Box(-1, 1, (2,)),
            33,
            r" has 2 numbers, .* 33 levels, which would make 1,089 .* 1,024: use --env\.levels 32, or",
        ),
        (
            spaces.Box(-1, 1, (7,)),
            None,
            r" 3 levels, which would make 2,187 actions, .*: use --env\.levels 2, or wrap ",
        ),
        (
            spaces.Box(-1, 1, (11,)),
            None,
            r" would make 177,147 actions, more than 1,024: wrap the environment .* list\.$",
        ),
        (spaces.Box(-1, 1, (38,)), None, r" would make about 10\^18 actions, more than 1,024: wrap "),
        (spaces.Box(-math.inf, 1, (1,)), None, r"^The action space Box.* has no bounds .*: give it some "),
        (spaces.Box(-3e38, 3e38, (1,)), 3, r" has no bounds "),
        (
            spaces.MultiDiscrete([2, 2]),
            3,
            r"^levels is 3, but only a Box is cut into levels, not Multi.*: leave it out",
        ),
        (spaces.MultiDiscrete([10**9, 2]), None, r" has 2 numbers, which would make about 10\^9 actions, .*: wrap "),
        (spaces.MultiBinary(11), None, r" would make 2,048 actions, more than 1,024: wrap "),
        (spaces.Discrete(2), 3, r"^levels is 3, but only a Box"),
        (
            spaces.Tuple((FORCES, spaces.Discrete(2))),
            None,
            r" is neither a list, nor a Box, nor several integers: wrap ",
        ),
        (spaces.Dict({"force": FORCES}), 3, r" is neither a list, nor a Box, nor several integers: wrap "),
        (spaces.Text(3), None, r" is neither a list"),
    ],
    ids=str,
)
def test_what_makes_no_list_gets_a_sentence(space: Any, levels: int | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        list_actions(space, levels)


# Environments


@pytest.mark.parametrize(
    ("kind", "levels", "own"),
    [
        (Push, None, [[-2], [0], [2]]),
        (Pushes, 2, [[-1, -1], [-1, 1], [1, -1], [1, 1]]),
        (Buttons, None, [[1, 0], [1, 1], [1, 2], [2, 0], [2, 1], [2, 2]]),
        (Switches, None, [[0, 0], [0, 1], [1, 0], [1, 1]]),
    ],
)
@pytest.mark.parametrize("num_envs", [1, 2])
def test_an_environment_takes_its_own_actions(kind: Any, levels: int | None, own: list[Any], num_envs: int) -> None:
    builder = ut.FromGymnasium(kind, levels=levels)
    for _ in range(2):  # what an environment writes into an action changes no other
        taken = taken_of(builder, num_envs)
        assert [each.tolist() for each in taken] == own
        assert {each.dtype for each in taken} == {kind.action_space.dtype}


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_vector_environment_takes_its_own_actions(mode: AutoresetMode) -> None:
    builder = ut.FromGymnasium(lambda: SyncVectorEnv([Push] * 2, autoreset_mode=mode))
    assert [each.tolist() for each in taken_of(builder, 2)] == [[-2], [0], [2]]
    assert builder.names == {"actions": ("-2", "0", "2")}


@pytest.mark.slow
def test_a_process_of_its_own_takes_the_environments_own_actions() -> None:
    builder = ut.Gym("MountainCarContinuous-v0", vectorization="async")
    alone, apart = builder.open(3, 1), builder.open(3, 2)
    try:
        np.testing.assert_array_equal(alone.reset()[0], apart.reset()[0])
        for action in (0, 2, 1, 2):
            ours, theirs = alone.step(np.array([action])), apart.step(np.array([action, 0]))
            np.testing.assert_array_equal(ours.next_observation[0], theirs.next_observation[0])
            assert ours.reward[0] == theirs.reward[0] == pytest.approx(-0.1 if action != 1 else 0)
    finally:
        apart.close()


class Halved(gymnasium.ActionWrapper):
    """Actions from -1 to 1."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def action(self, action: Any) -> Any:
        return 2 * action


def test_wrappers_come_first_and_a_stack_last() -> None:
    builder = ut.FromGymnasium(Push, wrappers=[Halved], stack=2)
    assert builder.names == {"actions": ("-1", "0", "1")}
    assert [each.tolist() for each in taken_of(builder)] == [[-2], [0], [2]]
    assert len(builder.observations.low) == 2 + 4  # pyright: ignore[reportAttributeAccessIssue]


def test_a_checkpoint_goes_back_to_an_episode() -> None:
    builder = ut.FromGymnasium(Push)
    host, again = builder.open(0, 1), builder.open(0, 1)
    host.reset()
    for action in (2, 0, 2):
        here = host.step(np.array([action])).observation
    np.testing.assert_array_equal(again.restore(host.saved()), here)


@pytest.mark.parametrize("name", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_actions_that_are_numbers_have_names(name: str) -> None:
    low = ut.Gym(name).names["actions"][0]
    assert ut.Gym(name).names["actions"] == (low, "0", low.removeprefix("-"))
    assert len(ut.Gym(name, levels=7).names["actions"]) == ut.Gym(name, levels=7).num_actions == 7


# The choice


def test_the_usual_number_of_levels_is_said() -> None:
    found = chosen(ut.FromGymnasium(Push, radius=0.1), ut.GradientDescent())
    assert (found.builder.levels, found.entries["env.levels"].source) == (3, "default")
    assert found.notes == ["An action is a number in [-2, 2], cut into 3 levels (--env.levels 5 for more)."]
    again = chosen(ut.FromGymnasium(Push, radius=0.1), ut.GradientDescent(), Plan(found.entries))
    assert again.builder.levels == 3 and again.notes == []


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (
            spaces.Box(-1, 1, (2,)),
            "2 numbers in [-1, 1], each cut into 3 levels, which makes 9 actions (--env.levels 5 f",
        ),
        (
            spaces.Box(-1, 1, (3,)),
            "3 numbers in [-1, 1], each cut into 3 levels, which makes 27 actions (--env.levels).",
        ),
        (spaces.Box(np.array([0.0, -1]), np.ones(2), dtype=np.float64), "2 numbers in their bounds, each cut into 3 "),
    ],
    ids=str,
)
def test_a_note_says_how_numbers_are_cut(space: Any, words: str) -> None:
    assert (list_actions(space).note or "").startswith(f"An action is {words}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Buttons, Switches])
def test_levels_that_mean_nothing_are_not_chosen(kind: Any) -> None:
    found = chosen(ut.FromGymnasium(kind, radius=0.1), ut.GradientDescent())
    assert "env.levels" not in found.entries and found.builder.levels is None
    assert list_actions(spaces.Box(0, 1, (2,), np.int8)).note is None  # it has no more values


def test_levels_that_are_given_stay() -> None:
    found = chosen(ut.FromGymnasium(Push, levels=4, radius=0.1), ut.GradientDescent())
    assert "env.levels" not in found.entries and found.builder.levels == 4
    assert found.notes == []


# Whole runs


@pytest.mark.slow
def test_commands_know_the_environments_own_actions(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    pytest.importorskip("pygame", reason="Gymnasium draws with pygame: install uppertail[watch]")
    monkeypatch.chdir(tmp_path)
    arguments = ["--env.id", "MountainCarContinuous-v0", "--env.max_episode_steps", "40"]
    arguments += ["--seeds", "1", "--steps", "400", "--checkpoint_every", "200", "--record", "distributions"]
    assert main(["train", "--env", "Gym", *arguments, "--out", "run"]) == 0
    assert "An action is a number in [-1, 1], cut into 3 levels (--env.levels 5 for more)." in capsys.readouterr().err
    assert main(["resume", "run", "--steps", "800", "--quiet"]) == 0
    run = ut.load("run")
    seen = np.array([[-0.5, 0.0], [-0.9, 0.01], [-0.4, -0.05]], np.float32)
    greedy = run.distribution(seen).mean.argmax(axis=1)
    np.testing.assert_array_equal(run.act(seen), np.array([[-1], [0], [1]], np.float32)[greedy])
    assert run.act(seen[0]) in spaces.Box(-1, 1, (1,))
    assert run.distributions is not None and run.distributions.names["actions"] == ("-1", "0", "1")
    assert main(["inspect", "run"]) == 0
    assert main(["evaluate", "run", "--episodes", "2", "--quiet"]) == 0
    assert main(["report", "run", "--quiet"]) == 0
    assert main(["watch", "run", "--gif", "run.gif", "--episodes", "1"]) == 0
    capsys.readouterr()
    assert main(["export", "run", "--to", "policy.npz"]) == 0
    said = capsys.readouterr().out
    assert "1,000 of 1,000 observations get the run's action" in said
    assert said.endswith(f"Take each of its actions for {run.action_repeat} steps, as in training.\n")
    actions, *_ = load(io.BytesIO(Path("policy.npz").read_bytes()))(seen)
    np.testing.assert_array_equal(actions, run.act(seen))
