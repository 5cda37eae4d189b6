"""Environments of gymnax and XLand-MiniGrid against the libraries' own loops; bad requests get a sentence."""

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from choosing import chosen
from uppertail.encodings import Numbers, Pixels, States
from uppertail.environments.packages import import_extra
from uppertail.errors import InputError
from worlds import measure_returns

KEY = jax.random.key(7)


@pytest.fixture(autouse=True)
def _promotion_as_users_have_it():
    """The libraries mix types, which the tests' own strictness forbids."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture
def gymnax():
    return pytest.importorskip("gymnax", reason="needs uppertail[gymnax]")


@pytest.fixture
def xminigrid():
    return pytest.importorskip("xminigrid", reason="needs uppertail[xminigrid]")


# Objects in gymnax's form, which need no package


@dataclasses.dataclass(frozen=True)
class Discrete:
    n: int


@dataclasses.dataclass(frozen=True)
class Box:
    low: Any
    high: Any
    shape: tuple[int, ...]
    dtype: Any = np.float32


@dataclasses.dataclass(frozen=True)
class Dict:
    spaces: Any


@dataclasses.dataclass(frozen=True)
class Limits:
    max_steps_in_episode: int = 3
    pay: float = 1.0


class State(NamedTuple):
    place: Any
    time: Any


class Line:
    """Action 1 goes right, and pays; the fifth place is the end. Its first state holds Python's own numbers."""

    default_params, name = Limits(), "Line"

    def reset_env(self, key, params):
        return self.shown(State(0, 0)), State(0, 0)

    def step_env(self, key, state, action, params):
        after = State(state.place + action, state.time + 1)
        return self.shown(after), after, params.pay * action, after.place >= 5, {}

    def is_truncated(self, state, params):
        return state.time >= params.max_steps_in_episode

    def shown(self, state):
        return jnp.array([state.place, state.time])

    def action_space(self, params) -> Any:
        return Discrete(2)

    def observation_space(self, params):
        return Box(-np.inf, np.inf, (2,))


class OldLine(Line):
    """As before gymnax 1.0: one end for both, and no `is_truncated`."""

    is_truncated = property()  # pyright: ignore[reportAssignmentType]

    def step_env(self, key, state, action, params):
        shown, after, reward, ended, info = super().step_env(key, state, action, params)
        return shown, after, reward, ended | (after.time >= params.max_steps_in_episode), info


def play(builder: Any, actions: list[int]) -> list[tuple[list[float], float, bool, bool]]:
    world = builder.build(KEY)
    state, first = world.reset(KEY)
    steps = [(first.observation.tolist(), 0.0, False, False)]
    for action in actions:
        state, now = world.step(KEY, state, jnp.array(action))
        ends = bool(now.terminated), bool(now.truncated)
        steps.append((now.observation.tolist(), float(now.reward), *ends))
    return steps


@pytest.mark.parametrize("kind", [Line, OldLine])
def test_a_time_limit_is_no_termination(kind) -> None:
    steps = play(ut.Gymnax(kind()), [1, 0, 1])
    assert steps[0] == ([0.0, 0.0], 0.0, False, False)
    assert steps[1:] == [([1, 1], 1, False, False), ([1, 2], 0, False, False), ([2, 3], 1, False, True)]
    longer = play(ut.Gymnax(kind(), {"max_steps_in_episode": 9, "pay": 0.5}), [1] * 5)
    assert longer[-1] == ([5, 5], 0.5, True, False)
    assert play(ut.Gymnax(kind(), Limits(5)), [1] * 5)[-1][2:] == ((True, False) if kind is Line else (False, True))


class Drift(Line):
    """Each step moves a number by little, so an action lasts for several; it has the name of another environment."""

    name = "MountainCar-v0"

    def shown(self, state):
        return jnp.array([0.02 * state.place, state.time])


def test_an_environment_of_ones_own_stays_when_settings_are_chosen_for_it() -> None:
    """Not the registered one of the same name takes its place; and its code is known, so that a change is noticed."""
    builder = ut.Gymnax(Drift(), {"max_steps_in_episode": 30})
    found: Any = chosen(builder).builder
    assert found.environment is builder.environment
    assert found.code == builder.code != ""
    assert isinstance(found.rules.env, Drift)


def test_returns_are_measured_or_given() -> None:
    assert measure_returns(ut.Gymnax(Line()), 1.0) == (0.0, 3.0, False)
    assert ut.Gymnax(Line(), returns=(1.0, 2.0)).known_returns == (0.0, 2.0, True)
    assert ut.Gymnax(Line()).known_returns is None
    assert ut.Gymnax(Line()).build(KEY).return_range(0.9) is None


class Showing(Line):
    """Shows zeros of a space."""

    def __init__(self, space: Any, shown: Any) -> None:
        self.space, self.zeros = space, shown

    def shown(self, state):
        return self.zeros

    def observation_space(self, params):
        return self.space


@pytest.mark.parametrize(
    ("space", "shown", "expected", "array"),
    [
        (Discrete(4), 3, States(4), 3),
        (Box(0, 1, (2, 2)), np.eye(2), Numbers((0.0,) * 4, (1.0,) * 4), [1, 0, 0, 1]),
        (Box(0, 1, (3,), np.int32), np.array([1, 0, 1]), Numbers((0.0,) * 3, (1.0,) * 3, False), [1, 0, 1]),
        (Box(-3.4e38, 9, (1,)), np.ones(1), Numbers((-np.inf,), (np.inf,)), [1]),
        (Box(0, 1, (10, 11, 2)), np.zeros((10, 11, 2)), Pixels(10, 11, 2, False, 1.0), np.zeros((10, 11, 2)).tolist()),
        (
            Dict({"b": Discrete(2), "a": Dict({"c": Box(0, 5, ())})}),
            {"a": {"c": 4.0}, "b": 1},
            Numbers((0.0,) * 3, (1.0, 1.0, 5.0)),
            [0, 1, 4],
        ),
    ],
)
def test_spaces_become_observation_spaces(space, shown, expected, array) -> None:
    world = ut.Gymnax(Showing(space, shown)).build(KEY)
    assert world.observations == expected
    assert world.reset(KEY)[1].observation.tolist() == array


def test_few_observations_of_several_integers_are_states() -> None:
    space, shown = Dict({"b": Discrete(3), "a": Dict({"c": Discrete(5)})}), {"a": {"c": 4}, "b": 1}
    world = ut.Gymnax(Showing(space, shown)).build(KEY)
    first = world.reset(KEY)[1].observation
    assert (world.observations, first.dtype, first.tolist()) == (States(15), jnp.int32, 1 * 5 + 4)
    flat = ut.Gymnax(Showing(space, shown), features="scaled").build(KEY)
    assert flat.reset(KEY)[1].observation.tolist() == [0, 1, 0, 0, 0, 0, 0, 1]
    assert ut.Gymnax(Showing(Dict({"a": Discrete(64), "b": Discrete(65)}), {"a": 0, "b": 0})).build(
        KEY
    ).observations != States(4160)


def test_pixels_are_not_counted_where_steps_are_compiled() -> None:
    entries = chosen(ut.Gymnax(Showing(Box(0, 1, (10, 10)), np.zeros((10, 10))))).entries
    assert entries["learner"].value == "GradientDescent" and "evidence" not in entries


def test_an_image_may_be_read_as_numbers() -> None:
    flat = ut.Gymnax(Showing(Box(0, 1, (10, 10)), np.zeros((10, 10))), images=False).build(KEY)
    assert len(flat.observations.low) == 100  # pyright: ignore[reportAttributeAccessIssue]


class Pushing(Line):
    def step_env(self, key, state, action, params):
        return super().step_env(key, state, action[0], params)

    def action_space(self, params):
        return Box(-1, 1, (1,))


def test_levels_of_a_box_are_a_list_of_actions() -> None:
    builder = ut.Gymnax(Pushing())
    assert builder.names == {"actions": ("-1", "0", "1")}
    assert [reward for _, reward, _, _ in play(builder, [2, 1, 0])[1:]] == [1.0, 0.0, -1.0]
    assert [reward for _, reward, _, _ in play(ut.Gymnax(Pushing(), levels=5), [4, 3, 1])[1:]] == [1.0, 0.5, -0.5]
    found = chosen(builder)
    assert found.entries["env.levels"].value == 3
    assert found.notes[-1].startswith("An action is a number in [-1, 1], cut into 3 levels (--env.levels 5 for more)")


class Raising(Line):
    def step_env(self, key, state, action, params):
        raise RuntimeError("no road")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: ut.Gymnax(Pushing(), levels=1),
            r"^levels is 1: use 2, which are both ends, to 64",
        ),
        (
            lambda: ut.Gymnax(Line(), levels=3),
            r"^levels is 3, but only a Box is cut into levels",
        ),
        (
            lambda: ut.Gymnax(Raising()),
            r"^Line, at its first step, raised RuntimeError: no road \(test_.* \d+\)\.$",
        ),
        (
            lambda: ut.Gymnax(Line(), {"speed": 2}),
            r"^Line has no parameter 'speed': it has max_steps_in_episode, pay\.$",
        ),
        (lambda: ut.Gymnax(Line(), {"pay": "much"}), r"^params\.pay is 'much': use a number\.$"),
        (
            lambda: ut.Gymnax(Showing(Box(0, 1, (3,)), np.zeros(2))),
            r"the observation has the shape \(2,\), but its space says",
        ),
        (lambda: ut.Gymnax(Showing(Dict({}), {})), r"hold no numbers"),
        (lambda: ut.Gymnax(Showing(Dict({"a": 3}), {})), r"^Observations of the space 3 cannot become numbers"),
        (
            lambda: ut.Gymnax(3),
            r"^id is 3, which has no reset_env: give an id such as MountainCar-v0, or an object with",
        ),
        (
            lambda: ut.Gymnax(Line(), returns=(1.0, 0.0)),
            r"^returns is \[1\.0, 0\.0\]: give the lowest, then the highest",
        ),
        (lambda: ut.Gymnax("no_module:Line"), r"^no_module:Line cannot be made \(ModuleNotFoundError: No module named"),
        (lambda: ut.XMiniGrid("MiniGrid-DoorKey-8x8", max_reward=2.0), r"^max_reward is 2\.0: the goal pays 0\.1 to 1"),
        (lambda: ut.Gymnax(Line(), reset_seed=-1), r"^reset_seed is -1: use 0 or more, or run, or leave it out\.$"),
    ],
)
def test_what_cannot_be_gets_a_sentence(make, words) -> None:
    with pytest.raises(InputError, match=words):
        make().build(KEY)


def test_missing_packages_and_versions_that_break_get_a_sentence(tmp_path, monkeypatch) -> None:
    (tmp_path / "broken_package.py").write_text("raise ImportError('needs another jax')")
    (tmp_path / "half_package.py").write_text("import no_such_six")
    monkeypatch.syspath_prepend(str(tmp_path))
    remedy = r": run `pip install gymnax six`\.$"
    for package, words in {
        "no_such_package": "This environment needs the module 'no_such_package', which is not installed",
        "half_package": "This environment needs the module 'no_such_six', which is not installed",
        "broken_package": r"broken_package cannot be imported \(ImportError: needs another jax\)",
    }.items():
        with pytest.raises(InputError, match=f"^{words}{remedy}"):
            import_extra(package, "gymnax six")


def test_an_environment_of_ones_own_is_found_by_its_path() -> None:
    assert play(ut.Gymnax(f"{__name__}:Line"), [1])[1] == ([1, 1], 1, False, False)


@pytest.mark.slow
def test_one_is_trained_on_resumed_and_evaluated(tmp_path, capsys) -> None:
    from uppertail.cli import main

    out = str(tmp_path / "run")
    settings = ["--seeds", "2", "--quiet"]
    env = ["--env", "Gymnax", "--env.id", f"{__name__}:Line", "--env.success", "3", "--env.num_features", "16"]
    assert main(["train", *env, *settings, "--steps", "256", "--out", out]) == 0
    assert main(["resume", out, "--quiet"]) == 0
    assert main(["evaluate", out, "--episodes", "3"]) == 0
    assert capsys.readouterr().err == ""
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["final_greedy_return"] >= [2.0, 2.0]


# The libraries themselves


@pytest.mark.parametrize(
    ("name", "steps"), [("MountainCar-v0", 450), ("CartPole-v1", 120), ("Catch-bsuite", 60), ("Breakout-MinAtar", 120)]
)
def test_episodes_are_gymnaxs_own(gymnax, name: str, steps: int) -> None:
    """By the library's `step`, which resets by itself, with the same keys."""
    env, params = gymnax.make(name)
    world = jax.jit(ut.Gymnax(name).build)(KEY)
    shape = world.reset(KEY)[1].observation.shape

    @jax.jit
    def both(carry, key):
        ours, theirs, place = carry
        action_key, key_step, key_reset = key, *jax.random.split(key)
        action = jax.random.randint(action_key, (), 0, world.num_actions)
        ours, now = world.step(key_step, ours, action)
        _, theirs, reward, terminated, truncated, info = env.step(key, theirs, action, params)
        ended = now.terminated | now.truncated
        ours = jax.tree.map(lambda new, old: jnp.where(ended, new, old), world.reset(key_reset)[0], ours)
        seen = info["final_observation"].astype(jnp.float32).reshape(shape)
        pair = now, (seen, reward, terminated, truncated & ~terminated)
        return (ours, theirs, place + 1), pair

    first = jax.random.split(KEY)[0]
    start = (world.reset(first)[0], env.reset(first, params)[1], 0)
    mine, own = jax.lax.scan(both, start, jax.random.split(KEY, steps))[1]
    np.testing.assert_array_equal(mine.terminated, own[2])
    np.testing.assert_array_equal(mine.truncated, own[3])
    np.testing.assert_allclose(mine.reward, own[1])
    np.testing.assert_allclose(mine.observation, own[0], atol=1e-6)
    assert (mine.terminated | mine.truncated).any()


def test_ids_and_settings_that_gymnax_does_not_know_get_a_sentence(gymnax) -> None:
    for builder, words in (
        (ut.Gymnax("MountianCar-v0"), r"^There is no environment 'MountianCar-v0' in gymnax here\. Did you mean Mount"),
        (ut.Gymnax("CartPole-v1", {"weight": 1}), r"^CartPole-v1 has no parameter 'weight': it has max_steps_in_epi"),
        (ut.Gymnax("CartPole-v1", kwargs={"size": 1}), r"^CartPole-v1 cannot be made \(TypeError: .*'size'"),
    ):
        with pytest.raises(InputError, match=words):
            builder.build(KEY)


def test_pictures_are_gymnaxs_own(gymnax) -> None:
    builder = ut.Gymnax("Breakout-MinAtar")
    watched = builder.watched(pictures=True)
    first = watched.reset(2**31 + 5, 0)
    assert first.shape == (10, 10, 4)
    before = watched.frame()
    assert before.dtype == np.uint8 and before.shape[2] == 3 and len(np.unique(before)) > 2
    watched.step(1)
    assert (watched.frame() != before).any()
    with pytest.raises(InputError, match=r"^Breakout-MinAtar opens no window: give --gif FILE\.$"):
        builder.watched(pictures=False)
    other = ut.Gymnax("UmbrellaChain-bsuite").watched(pictures=True)
    other.reset(2**31, 0)
    with pytest.raises(InputError, match=r"^gymnax draws no pictures of UmbrellaChain-bsuite"):
        other.frame()


@pytest.mark.parametrize("view", ["partial", "whole"])
def test_episodes_are_xminigrids_own(xminigrid, view) -> None:
    """By the library's own loop; a short limit, and DoorKey's smallest room, so that both ends come."""
    name, limits = "MiniGrid-Empty-5x5", {"max_steps": 12}
    world = ut.XMiniGrid(name, params=limits, view=view).build(KEY)
    env, params = xminigrid.make(name, **limits)

    @jax.jit
    def both(carry, key):
        ours, theirs = carry
        action = jax.random.randint(key, (), 0, 3)  # forward and turns
        ours, now = world.step(key, ours, action)
        theirs = env.step(params, theirs, action)
        last = theirs.last()
        seen = jnp.argmax(now.observation[:4]) == theirs.state.agent.direction
        out = now, (theirs.reward, last & (theirs.discount == 0), last & (theirs.discount == 1)), seen
        again, fresh = world.reset(key)[0], env.reset(params, key)
        ended = now.terminated | now.truncated
        pick = lambda done: lambda new, old: jnp.where(done, new, old)  # noqa: E731
        return (jax.tree.map(pick(ended), again, ours), jax.tree.map(pick(last), fresh, theirs)), out

    start = (world.reset(KEY)[0], env.reset(params, KEY))
    mine, own, seen = jax.lax.scan(both, start, jax.random.split(KEY, 600))[1]
    for ours, theirs in zip(mine[1:], own, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert mine.terminated.any() and mine.truncated.any() and seen.all()
    assert set(np.unique(mine.observation)) == {0.0, 1.0}
    fields = 49 if view == "partial" else 25
    extra = 0 if view == "partial" else 25 + 13 + 12
    size = 4 + 25 * fields + extra
    assert mine.observation.shape == (600, size)
    assert world.observations == Numbers((0.0,) * size, (1.0,) * size, continuous=False)


def test_what_is_seen_of_a_grid_worked_by_hand(xminigrid) -> None:
    world = ut.XMiniGrid("MiniGrid-Empty-5x5", view="whole").build(KEY)
    state, first = world.reset(KEY)
    seen = np.asarray(first.observation)
    place, tiles = seen[4:29].reshape(5, 5), seen[29 : 29 + 25 * 13].reshape(5, 5, 13).argmax(axis=-1)
    assert tuple(np.argwhere(place)[0]) == tuple(state.state.agent.position)
    np.testing.assert_array_equal(tiles, state.state.grid[..., 0])


def test_a_layout_is_each_runs_own_or_every_episodes(xminigrid) -> None:
    def layouts(reset_seed: Any, seed: int) -> list[bytes]:
        world = ut.XMiniGrid("MiniGrid-DoorKey-8x8", reset_seed=reset_seed).build(jax.random.key(seed))
        return [np.asarray(world.reset(key)[0].state.grid).tobytes() for key in jax.random.split(KEY, 4)]

    assert len(set(layouts(None, 0))) == 4
    assert len(set(layouts("run", 0))) == 1 == len(set(layouts(3, 0)))
    assert layouts("run", 0)[0] != layouts("run", 1)[0]
    assert layouts(3, 0) == layouts(3, 1)


def test_returns_of_a_grid_are_known_and_its_rewards_may_be_cut(xminigrid) -> None:
    env = ut.XMiniGrid("MiniGrid-Empty-5x5", max_reward=0.1)
    assert env.known_returns == (0.0, 0.1, True)
    assert measure_returns(env, 1.0).high < 0.31
    with pytest.raises(
        InputError, match=r"^There is no environment 'MiniGrid-DoorKey' in xminigrid here\. Did you mean"
    ):
        ut.XMiniGrid("MiniGrid-DoorKey").build(KEY)
    with pytest.raises(InputError, match=r"^MiniGrid-Empty-5x5 has no parameter 'hight': it has height, width"):
        ut.XMiniGrid("MiniGrid-Empty-5x5", {"hight": 3}).build(KEY)


def test_watching_shows_the_layout_that_the_seeds_run_has(xminigrid) -> None:
    from uppertail.training.loop import seed_keys

    builder = ut.XMiniGrid("MiniGrid-DoorKey-8x8", reset_seed="run")
    watched = builder.watched(pictures=True, frames_per_second=3)
    first = watched.reset(2**31 + 4, episode=2)
    expected = builder.build(seed_keys(4).environment).reset(KEY)[1].observation
    np.testing.assert_array_equal(first, expected)
    assert watched.frame().ndim == 3 and watched.frames_per_second == 3.0


@pytest.mark.slow
def test_the_page_on_an_environment_of_ones_own_runs_from_file_to_agent(gymnax, tmp_path, monkeypatch) -> None:
    """By its programs and by its command; the way to the agent is shorter than the environment."""
    from uppertail.cli import main

    page = Path(__file__).parents[1] / "docs" / "gymnax.md"
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "page"}
    environment, training = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    for block in (environment, training):
        exec(compile(block, str(page), "exec"), names)
    assert names["result"].record.greedy_returns == [1.0, 1.0]
    assert training.count("\n") < environment.count("\n")

    (tmp_path / "slope.py").write_text(environment, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    (command,) = re.findall(r"^uppertail (train --env Gymnax --env.id slope:Slope .*)$", text, re.M)
    short = ["--episodes", "100", "--seeds", "2", "--quiet", "--out", str(tmp_path / "run")]
    assert main([*shlex.split(command), *short]) == 0
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["final_greedy_return"] == [1.0, 1.0]


def test_objects_of_one_class_are_not_taken_for_one_another() -> None:
    """The second run had the world of the first."""

    class Ends(Line):
        def __init__(self, pay: float) -> None:
            self.pay = pay

        def step_env(self, key, state, action, params):
            shown, after, _, ended, info = super().step_env(key, state, action, params)
            return shown, after, jnp.float32(self.pay) * action, ended, info

    for pay in (1.0, 3.0):
        world = ut.Gymnax(Ends(pay), returns=(0, 15))
        run = ut.train(world, seeds=1, steps=64, learner=ut.GradientDescent(), evidence=ut.NoEvidence())
        assert {float(each) % pay for each in run.record.episodes[0].returns} == {0.0}
        assert max(run.record.episodes[0].returns) <= 5 * pay
