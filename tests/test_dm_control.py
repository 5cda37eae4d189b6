"""Tasks of dm_control against the suite's own loop; those of a suite that is made up need no package."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from uppertail.environments.gymnasium.dm_env import space_of
from uppertail.environments.gymnasium.vector import episode_seed
from uppertail.errors import InputError

PENDULUM = "dm_control/pendulum-swingup-v0"


class Array:
    def __init__(self, *shape: int) -> None:
        self.shape, self.dtype = shape, np.dtype(np.float64)


class BoundedArray(Array):
    minimum, maximum = np.array(-1.0), np.array(1.0)


class Swinging:
    """A task whose observation has two parts; a push above 0.5 ends its episode."""

    def __init__(self, time_limit: float, random: int) -> None:
        self.task = SimpleNamespace(random=np.random.RandomState(random))
        self._step_limit = time_limit / 0.02

    def control_timestep(self) -> float:
        return 0.02

    def observation_spec(self) -> Any:
        return {"speed": Array(), "angle": Array(2)}

    def action_spec(self) -> Any:
        return BoundedArray(1)

    def reset(self) -> Any:
        self.steps, self.angle = 0, self.task.random.uniform(size=2)
        return self.shown(None, False, 1.0)

    def step(self, action: Any) -> Any:
        self.steps += 1
        fell = bool(action[0] > 0.5)
        return self.shown(1.0, fell or self.steps >= self._step_limit, 0.0 if fell else 1.0)

    def shown(self, reward: float | None, last: bool, discount: float) -> Any:
        seen = {"speed": float(self.steps), "angle": self.angle}
        return SimpleNamespace(observation=seen, reward=reward, discount=discount, last=lambda: last)


def load(domain: str, task: str, task_kwargs: Any = None, environment_kwargs: Any = None) -> Swinging:
    assert (domain, task) == ("pendulum", "swingup")
    return Swinging(**{"time_limit": 0.1, **(task_kwargs or {})})


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = SimpleNamespace(BoundedArray=BoundedArray, DiscreteArray=type("DiscreteArray", (), {}))
    suite = SimpleNamespace(ALL_TASKS=(("pendulum", "swingup"), ("dog", "run")), load=load)
    for name, module in {"dm_env.specs": specs, "dm_control": suite, "dm_control.suite": suite}.items():
        monkeypatch.setitem(sys.modules, name, module)


def test_parts_are_flat_in_the_order_of_the_task(made_up: None) -> None:
    assert list(space_of({"speed": Array(), "angle": Array(2)}).spaces) == ["speed", "angle"]  # pyright: ignore
    builder = ut.Gym(PENDULUM)
    host = builder.open(3, 1)
    first = host.reset()[0]
    angle = np.random.RandomState([episode_seed(3, 0, 0), 0]).uniform(size=2)
    np.testing.assert_array_equal(first, np.array([0, *angle], np.float32))
    np.testing.assert_array_equal(host.reset()[0], first)
    assert builder.names == {"actions": ("-1", "0", "1")} and builder.label == PENDULUM


def test_the_time_limit_truncates_and_the_last_discount_says_what_terminates(made_up: None) -> None:
    builder = ut.Gym(PENDULUM)
    assert builder.time_limit == 5 and not builder.may_go_on
    host = builder.open(0, 1)
    host.reset()
    ends = [host.step(np.array([0])) for _ in range(5)]
    assert [(bool(now.terminated[0]), bool(now.truncated[0])) for now in ends] == [(False, False)] * 4 + [(False, True)]
    now = host.step(np.array([2]))
    assert now.terminated[0] and not now.truncated[0]


def test_another_time_limit_takes_the_place_of_the_tasks_own(made_up: None) -> None:
    host = ut.Gym(PENDULUM, max_episode_steps=9).open(0, 1)
    host.reset()
    assert [bool(host.step(np.array([1])).truncated[0]) for _ in range(9)] == [False] * 8 + [True]
    assert ut.Gym(PENDULUM, kwargs={"task_kwargs": {"time_limit": 0.06}}).time_limit == 3
    assert ut.Gym(PENDULUM, kwargs={"task_kwargs": {"time_limit": float("inf")}}).time_limit is None


def test_names_and_settings_that_the_suite_lacks_get_a_sentence(made_up: None) -> None:
    with pytest.raises(
        InputError, match=r"^There is no environment '.*-swingp-v0' in dm_control here\. Did you mean d"
    ):
        ut.Gym("dm_control/pendulum-swingp-v0").make()
    with pytest.raises(InputError, match=r"^dm_control/pendulum-swingup-v0 cannot be made \(TypeError: .*'size'"):
        ut.Gym(PENDULUM, kwargs={"size": 3}).make()


def test_without_the_package_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dm_control", None)
    monkeypatch.setitem(sys.modules, "dm_control.suite", None)
    with pytest.raises(InputError, match=r"^This environment needs .*: run `pip install dm-control 'mujoco<4'`\.$"):
        _ = ut.Gym(PENDULUM).num_actions


# The suite itself


@pytest.fixture
def suite() -> Any:
    return pytest.importorskip("dm_control.suite", reason="needs uppertail[dm_control]")


@pytest.mark.parametrize("name", ["pendulum-swingup", "cartpole-swingup_sparse", "ball_in_cup-catch", "reacher-easy"])
def test_episodes_are_those_of_the_suites_own_loop(suite: Any, name: str) -> None:
    short = {"task_kwargs": {"time_limit": 1.0}}
    builder = ut.Gym(f"dm_control/{name}-v0", kwargs=short)
    host, random, theirs = builder.open(3, 1), np.random.default_rng(0), suite.load(*name.split("-"), **short)
    own: Any = builder.actions.own
    here = host.reset()
    for episode in range(2):
        theirs.task.random.seed([episode_seed(3, 0, episode), 0])
        there = theirs.reset()
        while not there.last():
            np.testing.assert_array_equal(here[0], flat(there))
            action = int(random.integers(builder.num_actions))
            now, there = host.step(np.array([action])), theirs.step(own[action])
            np.testing.assert_array_equal(now.next_observation[0], flat(there))
            assert now.reward[0] == np.float32(there.reward)
            assert (now.terminated[0], now.truncated[0]) == (False, there.last())
            here = now.observation


def flat(there: Any) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in there.observation.values()]).astype(np.float32)


def test_what_the_suite_declares(suite: Any) -> None:
    builder = ut.Gym(PENDULUM)
    assert (builder.time_limit, builder.may_go_on, builder.num_actions) == (1000, False, 3)
    assert builder.make().action_space == spaces.Discrete(3)
    assert builder.make().metadata["render_fps"] == 50
    with pytest.raises(InputError, match=r" 21 numbers, each cut into 3 levels, which would make about 10\^10 actions"):
        _ = ut.Gym("dm_control/humanoid-walk-v0").num_actions
    assert [ut.Gym("dm_control/cheetah-run-v0", levels=levels).num_actions for levels in (2, 3)] == [64, 729]


def test_an_environment_is_the_same_each_time_it_is_made(suite: Any) -> None:
    """The stiffness of lqr's joints is drawn when it is made."""
    made: Any = [ut.Gym("dm_control/lqr-lqr_6_2-v0").bare_maker()() for _ in range(2)]
    first, again = (each.unwrapped.env.physics.model.jnt_stiffness for each in made)
    np.testing.assert_array_equal(first, again)
