"""Environments as people have them: texts, wrappers, layouts that are drawn, observations that are hashed."""

import dataclasses
import functools
import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import uppertail as ut
from uppertail.cli import main
from uppertail.encodings import TEXT_PLACES, one_hot_text
from uppertail.environments import FromGymnasium, Gym
from uppertail.environments.spaces import read_space
from uppertail.errors import InputError


class Mission(spaces.Space[str]):
    """Texts of a package's own kind, which Gymnasium cannot flatten."""

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return "find it"

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)


class Told(gymnasium.Env[Any, Any]):
    """A walk of two steps to either side; the mission never changes, the hint says where it is."""

    observation_space = spaces.Dict(
        {
            "hint": spaces.Text(10),
            "mission": Mission(),
            "rest": spaces.Tuple((spaces.Discrete(2), spaces.Text(4), spaces.Box(0, 255, (2,), np.uint8))),
        }
    )
    action_space = spaces.Discrete(2)

    def __init__(self, prize: float = 1.0) -> None:
        self.prize, self.place, self.drawn = prize, 0, 0

    def _shown(self) -> Any:
        hint = ("far left", "left", "middle", "right", "far right")[self.place + 2]
        return {
            "hint": hint,
            "mission": "find it",
            "rest": (self.drawn, "same", np.array([1, self.place % 256], np.uint8)),
        }

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.drawn = 0, int(self.np_random.integers(2))
        return self._shown(), {}

    def step(self, action: Any) -> Any:
        self.place += 1 if action == self.drawn else -1
        return self._shown(), self.prize * (self.place == 2), abs(self.place) == 2, False, {}


class Left(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Shows whether it is to the left of a place."""

    def __init__(self, env: Any, of: int = 0) -> None:
        super().__init__(env)
        self.of, self.observation_space = of, spaces.Discrete(2)

    def observation(self, observation: Any) -> Any:
        return int(self.unwrapped.place < self.of)  # pyright: ignore[reportAttributeAccessIssue]


LIMIT = {"max_episode_steps": 3}


def test_texts_that_change_are_one_hot_and_constant_ones_are_left_out_with_a_line() -> None:
    builder = FromGymnasium(Told)
    read = builder.inspected.interface.reading
    env = Told()
    first, _ = env.reset(seed=0)
    array = read.array(first)
    np.testing.assert_array_equal(array[:TEXT_PLACES], one_hot_text("middle"))
    np.testing.assert_array_equal(array[TEXT_PLACES:], [*np.eye(2)[env.drawn], 1, 0])  # no place for either constant
    reason = "it never changed in 10 random episodes of at most 200 steps (--env.constant_texts '[]' keeps it)."
    assert builder.note == (
        f"The text 'mission' of Told is left out: {reason} The text 'rest.1' of Told is left out: {reason}"
    )
    low, high = np.array(read.space.low), np.array(read.space.high)  # pyright: ignore[reportAttributeAccessIssue]
    assert (low == 0).all() and high.tolist() == [1.0] * (TEXT_PLACES + 2) + [255.0, 255.0]


class Telling(gymnasium.Env[Any, Any]):
    """Shows a text that becomes another one at the hundredth step; all other texts stay as they are."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space[Any], shown: Any) -> None:
        self.observation_space, self.shown, self.steps = space, shown, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self.shown(self.steps), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.shown(self.steps), 0.0, False, False, {}


def test_a_text_that_changes_late_is_not_left_out() -> None:
    space = spaces.Dict({"n": spaces.Discrete(2), "t": spaces.Text(9)})
    builder = FromGymnasium(
        lambda: Telling(space, lambda steps: {"n": 0, "t": "find it" if steps < 100 else "go back"})
    )
    assert builder.note is None
    assert builder.inspected.interface.reading.array({"n": 1, "t": "go back"}).size == 2 + TEXT_PLACES


def test_texts_that_look_the_same_are_named() -> None:
    """Of 150 texts, some share one of 64 places."""
    space, pair = spaces.Text(9), spaces.Dict({"n": spaces.Discrete(2), "t": spaces.Text(9)})
    alone = FromGymnasium(lambda: Telling(space, lambda steps: f"hall {steps % 150}"))
    beside = FromGymnasium(lambda: Telling(pair, lambda steps: {"n": 0, "t": f"hall {steps % 150}"}))
    for builder, what in ((alone, "texts of"), (beside, "texts 't' of")):
        assert builder.note and f"Two {what} Telling share one of 64 places, so they look the same" in builder.note
        assert dataclasses.replace(builder, encoding="hashed").note is None


def test_what_holds_nothing_but_constant_texts_is_left_out_as_a_whole() -> None:
    space = spaces.Dict({"a": spaces.Tuple((spaces.Text(9), spaces.Discrete(6))), "b": spaces.Dict(t=spaces.Text(9))})
    builder = FromGymnasium(lambda: Telling(space, lambda steps: {"a": ("same", 5), "b": {"t": "same"}}))
    read = builder.inspected.interface.reading
    assert read.array({"a": ("same", 5), "b": {"t": "same"}}) == 5
    assert builder.inspected.observed.left_out == ("a.0", "b.t")


@pytest.mark.parametrize(
    ("space", "shown"),
    [
        (spaces.Text(9), "same"),
        (
            spaces.Dict({"t": spaces.Text(9), "u": spaces.Dict({"v": spaces.Text(9)})}),
            {"t": "same", "u": {"v": "same"}},
        ),
    ],
)
def test_texts_stay_where_nothing_else_would(space: Any, shown: Any) -> None:
    builder = FromGymnasium(lambda: Telling(space, lambda steps: shown))
    assert builder.note is None
    assert builder.inspected.interface.reading.array(shown).sum() == (1 if isinstance(shown, str) else 2)


class Broken(Told):
    """Fails as its texts are looked at."""

    def step(self, action: Any) -> Any:
        raise RuntimeError("out of order")


class Older(Told):
    """Begins as Gym of old did, without an info."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)[0]


class Composite(Broken):
    """Its actions are asked for before its texts are looked at."""

    action_space = spaces.Dict({"left": spaces.Discrete(2), "right": spaces.Discrete(2)})


class Shapeless(gymnasium.Env[Any, Any]):
    """Has no observation space."""


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            Broken,
            r"^Broken, in a random episode before training, raised RuntimeError: out of order \(test_.* \d+\)\.$",
        ),
        (Older, r"^Older, in .* its reset returns no pair of an observation and an info: return both\.$"),
        (Composite, r"^The action space Dict\(.*\) is neither a list, nor a Box, nor several integers: wrap"),
        (Shapeless, r"^Shapeless, asked for its spaces, raised AttributeError"),
    ],
)
def test_an_environment_that_fails_as_it_is_looked_at_gets_a_sentence(kind: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        _ = FromGymnasium(kind).num_actions


def test_each_text_has_one_place_which_does_not_depend_on_those_before() -> None:
    texts = ["", "a", "b", "a key", "ö", "\ud800"]
    assert all(one_hot_text(text).sum() == 1 for text in texts)
    taken = [int(one_hot_text(text).argmax()) for text in texts]
    assert taken == [int(one_hot_text(text).argmax()) for text in reversed(texts)][::-1]
    assert len(set(taken)) >= 5
    words = [int(one_hot_text(f"go to the {index} ball").argmax()) for index in range(64 * 50)]
    counts = np.bincount(words, minlength=64)
    assert counts.size == 64 and abs(counts - 50).max() < 5 * math.sqrt(50)


def test_a_text_alone_can_be_observed() -> None:
    assert read_space(np, spaces.Text(5)).array("key").tolist() == one_hot_text("key").tolist()


@pytest.mark.parametrize("space", [spaces.Sequence(spaces.Discrete(3)), spaces.Graph(spaces.Discrete(3), None)])
def test_spaces_without_a_fixed_size_are_refused_with_the_remedy(space: Any) -> None:
    with pytest.raises(InputError, match=r"cannot become numbers: wrap .* or use --env.encoding hashed\.$"):
        read_space(np, spaces.Dict({"a": spaces.Text(3), "b": space}))


def test_wrappers_go_around_the_environment_the_first_innermost() -> None:
    path = f"{__name__}.Left"
    inner, outer = {"class_path": path, "init_args": {"of": 2}}, {"class_path": "TimeLimit", "init_args": LIMIT}
    env: Any = FromGymnasium(Told, wrappers=[inner, Left, outer]).make()
    assert isinstance(env, TimeLimit) and isinstance(env.env, Left) and isinstance(env.env.env, Left)
    assert (env.env.of, env.env.env.of) == (0, 2)
    assert Gym("CartPole-v1", wrappers=[outer]).time_limit == 3


class Weighted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Has arrays among its arguments, as wrappers of vector rewards do, and a list."""

    def __init__(
        self,
        env: Any,
        weight: np.ndarray | None = None,
        names: Any = (),
        either: "np.ndarray | list[int] | None" = None,
    ) -> None:
        super().__init__(env)
        self.weight, self.names, self.either = weight, names, either


def test_a_list_becomes_an_array_where_a_wrapper_declares_one() -> None:
    """In files there are no arrays."""
    arguments = {"weight": [0.5, 2.0], "names": [1, 2], "either": [3]}
    env: Any = FromGymnasium(Told, wrappers=[{"class_path": f"{__name__}.Weighted", "init_args": arguments}]).make()
    assert isinstance(env.weight, np.ndarray) and env.weight.tolist() == [0.5, 2.0]
    assert env.names == [1, 2] and env.either == [3]


def test_wrappers_are_written_down_as_a_file_holds_them() -> None:
    path = f"{__name__}.Left"
    builder = FromGymnasium(Told, wrappers=[Left, {"class_path": path, "init_args": {"of": 2}}])
    assert builder.wrappers == [path, {"class_path": path, "init_args": {"of": 2}}]
    assert FromGymnasium(Told, wrappers=builder.wrappers).wrappers == builder.wrappers


def test_a_wrapped_environment_is_read_as_the_wrapper_shows_it_side_by_side_too() -> None:
    builder = FromGymnasium(Told, wrappers=[{"class_path": f"{__name__}.Left", "init_args": {"of": 1}}])
    for num_envs in (1, 3):
        host = builder.open(0, num_envs)
        assert host.reset().tolist() == [1] * num_envs
        host.close()


class Reused(gymnasium.Env[Any, Any]):
    """Counts its steps in an array that it shows each time; its actions are 1, 2 and 3."""

    observation_space, action_space = spaces.Box(0, 9, (1,), np.float32), spaces.Discrete(3, start=1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.array = np.full(1, 5, np.float32)
        return self.array, {}

    def step(self, action: Any) -> Any:
        self.array += 1
        return self.array, 0.0, False, False, {}


def test_a_stack_shows_the_last_observations_and_actions_also_after_a_checkpoint() -> None:
    none = [0, 0, 0, 1]
    builder = FromGymnasium(Reused, stack=3, returns=(0.0, 1.0))
    for num_envs in (1, 2):
        host = builder.open(0, num_envs)
        shown = [host.reset(), *(host.step(np.full(num_envs, action)).observation for action in (0, 2, 1))]
        assert [[*each] for each in shown[0]] == [[5, 5, 5, *none, *none]] * num_envs
        assert [[*each] for each in shown[1]] == [[5, 5, 6, *none, 1, 0, 0, 0]] * num_envs
        assert [[*each] for each in shown[3]] == [[6, 7, 8, 0, 0, 1, 0, 0, 1, 0, 0]] * num_envs
        again = builder.open(0, num_envs)
        assert (again.restore(host.saved()) == shown[3]).all()
    assert builder.interface.form == "a tuple of the last 3 observations and an array of the actions between them"
    assert FromGymnasium(lambda: gymnasium.make("Taxi-v4"), stack=2).compiles is False
    with pytest.raises(InputError, match="stack is 0: use 1, the last observation alone, to 1,000"):
        Gym("CartPole-v1", stack=0)
    with pytest.raises(InputError, match="stack is 2, but a vector environment is used as it is"):
        FromGymnasium(lambda: SyncVectorEnv([Reused]), stack=2).make()


def test_the_first_observation_of_an_episode_is_shown_before_the_last() -> None:
    builder = FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Reused(), 2), stack="first", returns=(0.0, 1.0))
    for num_envs in (1, 2):
        host = builder.open(0, num_envs)
        shown = [host.reset(), *(host.step(np.zeros(num_envs, int)).next_observation for _ in range(2))]
        assert [seen.tolist() for seen in shown] == [[[5, last]] * num_envs for last in (5, 6, 7)]
    with pytest.raises(InputError, match="stack is first, but a vector environment is used as it is"):
        FromGymnasium(lambda: SyncVectorEnv([Reused]), stack="first").make()


class Local:
    """Holds a wrapper that no path leads to."""

    @staticmethod
    def wrapper() -> Any:
        class Hidden(gymnasium.Wrapper[Any, Any, Any, Any]):
            pass

        return Hidden


WRONG: dict[str, tuple[Any, list[str]]] = {
    "a module": (
        ["no_module.Wrapper"],
        ["The wrapper 'no_module.Wrapper' needs the module 'no_module', which is not installed: install its package"],
    ),
    "a misspelt module": (
        ["gymnasium.wrapers.TimeLimit"],
        ["The wrapper 'gymnasium.wrapers.TimeLimit' cannot be imported", "give import paths such as"],
    ),
    "a name": (["Nowhere"], ["The wrapper 'Nowhere' cannot be imported", "give import paths such as"]),
    "a number": ([3], ["wrappers holds 3: give import paths"]),
    "a text": ("Left", ["wrappers is 'Left': give a list, such as [Left]."]),
    "no class": (["math.pi"], ["The wrapper 'math.pi' is no class"]),
    "no wrapper": (["builtins.id"], ["The wrapper builtins.id gives", "which is no Gymnasium environment"]),
    "arguments": (
        [{"class_path": "TimeLimit", "init_args": {"steps": 3}}],
        ["The wrapper TimeLimit with {'steps': 3} cannot be put around", "give the arguments of its constructor"],
    ),
    "another key": ([{"path": "TimeLimit"}], ["wrappers holds {'path': 'TimeLimit'}"]),
    "hidden": ([Local.wrapper()], ["Hidden cannot be found again by its name: define it at the top level of a module"]),
}


@pytest.mark.parametrize(("wrappers", "words"), WRONG.values(), ids=WRONG)
def test_wrappers_that_cannot_be_are_refused_in_a_sentence(wrappers: Any, words: list[str]) -> None:
    builder = FromGymnasium(Told)
    object.__setattr__(builder, "wrappers", wrappers)  # as where nothing checks types at run time

    def made() -> None:
        builder.__post_init__()
        builder.make()

    with pytest.raises(InputError) as caught:
        made()
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)


def drawn(builder: Any, seed: int, num_envs: int = 1) -> list[int]:
    """What five episodes of an open environment drew."""
    host, values = builder.open(seed, num_envs), []
    host.reset()
    envs = [each.env for each in host.env.envs]
    for _ in range(5):
        values += [each.unwrapped.drawn for each in envs]
        for _ in range(2):  # to the right end, together
            host.step(np.array([each.unwrapped.drawn for each in envs]))
    host.close()
    return values


@pytest.mark.parametrize("num_envs", [1, 2])
def test_a_reset_seed_gives_every_episode_the_same_layout(num_envs: int) -> None:
    free = [drawn(FromGymnasium(Told), seed, num_envs) for seed in range(4)]
    assert any(len(set(values)) == 2 for values in free)
    expected = [int(np.random.default_rng(seed).integers(2)) for seed in range(6)]
    assert len(set(expected)) == 2
    for fixed in range(6):
        assert set(drawn(FromGymnasium(Told, reset_seed=fixed), 77, num_envs)) == {expected[fixed]}
        run = FromGymnasium(Told, reset_seed="run")
        assert set(drawn(run, fixed, num_envs)) == {expected[fixed]} == set(drawn(run, 2**31 + fixed, num_envs))


def test_a_reset_seed_is_refused_where_an_environment_resets_itself_or_it_cannot_be() -> None:
    make = functools.partial(
        SyncVectorEnv, [lambda: gymnasium.make("CartPole-v1")], autoreset_mode=AutoresetMode.SAME_STEP
    )
    with pytest.raises(InputError, match="reset_seed is 3, but this vector environment resets itself"):
        FromGymnasium(make, reset_seed=3).open(0, 1)
    with pytest.raises(InputError, match="reset_seed is -1: use 0 or more"):
        FromGymnasium(Told, reset_seed=-1)
    for size in (1, 2**30 + 1):
        with pytest.raises(InputError, match=rf"hash_size is {size}: use 2 places or more, at most 2\^30\."):
            FromGymnasium(Told, hash_size=size)
    for judging in (FromGymnasium(Told, radius=0.5), FromGymnasium(Told, left_out=(0,))):
        with pytest.raises(InputError, match="but each observation is one of several states: leave it out"):
            ut.States(16).encoding(judging.preferences)
    with pytest.raises(InputError, match="background is for hashed observations: add encoding hashed"):
        FromGymnasium(Told, background=[[0.0, 0.0, 0.0]])
    for pixels in ([], [[0.0, 0.0], [0.0]]):
        with pytest.raises(InputError, match=r"background is \[.*\]: give pixels of equally many channels"):
            FromGymnasium(Told, encoding="hashed", background=pixels)


def test_tables_are_not_compiled_where_resets_or_observations_are_others() -> None:
    assert Gym("FrozenLake-v1").compiles
    assert not Gym("FrozenLake-v1", reset_seed=0).compiles
    assert not Gym("FrozenLake-v1", encoding="hashed").compiles
    assert not Gym("FrozenLake-v1", wrappers=[{"class_path": "TimeAwareObservation"}]).compiles


@pytest.mark.slow
def test_a_run_on_hashed_observations_solves_what_they_tell_apart() -> None:
    """The drawn number says which action leads to the prize; without it a half of the episodes would fail."""
    settings = ut.Settings(seeds=1, episodes=2000, steps=4000, discount=0.8)
    result = ut.train(FromGymnasium(Told, encoding="hashed", hash_size=512), settings=settings)
    assert result.record.greedy_returns == [1.0]
    seen = np.asarray(result.networks.encoder)  # pyright: ignore[reportAttributeAccessIssue]
    assert seen.shape == (1, 512, 2)
    assert (seen != 0).any(axis=-1).sum() == 10  # five positions, for each number that is drawn


gymnasium.register("Testing/Told-v0", f"{__name__}:Told")


@pytest.mark.slow
def test_wrappers_from_the_command_line_hold_when_it_is_resumed_and_evaluated(tmp_path: Any, capsys: Any) -> None:
    out = tmp_path / "run"
    options = ["--env", "Gym", "--env.id", "Testing/Told-v0", "--env.reset_seed", "run", "--seeds", "1", "--quiet"]
    options += ["--env.max_episode_steps", "50", "--replay", "Uniform", "--target", "Online"]
    options += ["--env.wrappers", f"[{{class_path: {__name__}.Left, init_args: {{of: 1}}}}]", "--steps", "32"]
    options += ["--network.width", "4", "--batch_size", "8", "--checkpoint_every", "16"]
    options += ["--out", str(out)]
    assert main(["train", *options]) == 0
    assert f"class_path: {__name__}.Left" in (out / "config.yaml").read_text()
    before = (out / "episodes.npz").read_bytes()
    assert main(["resume", str(out), "--quiet"]) == 0
    assert (out / "episodes.npz").read_bytes() == before
    assert main(["evaluate", str(out), "--episodes", "2"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert all(": The greedy policy of seed 0 returns" in line for line in said)  # it trains too little to be good


@pytest.mark.parametrize(
    ("declared", "mark"), [(np.float32(0.5), 0.5), (np.int64(2), 2.0), (True, math.inf), ("1", math.inf)]
)
def test_a_threshold_may_be_a_number_of_numpy(declared: Any, mark: float) -> None:
    def make() -> Any:
        env: Any = Told()
        env.reward_threshold = declared
        return env

    assert FromGymnasium(make).success_return == mark
    assert FromGymnasium(make).success_episodes == (100 if math.isfinite(mark) else 1), "it is meant for a mean"
    asked = FromGymnasium(make, success=0.25).criterion
    assert (asked.least, asked.episodes) == (0.25, 1), "a user's own judges each episode"


@pytest.mark.parametrize("shape", [("a", "b"), (0, 3), (2.5, 1), (4, 3)], ids=str)
def test_rows_are_those_of_a_shape_only_if_they_can_be(shape: Any) -> None:
    def make() -> Any:
        env: Any = Told()
        env.shape = shape
        return env

    assert FromGymnasium(make).rows == (4 if shape == (4, 3) else 1)


@pytest.mark.parametrize("name", ["reward_threshold", "max_steps", "shape", "nrow"])
def test_an_attribute_that_raises_gets_a_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_it(self: Any) -> None:
        raise OSError("no disk")

    monkeypatch.setattr(Told, name, property(raise_it), raising=False)
    with pytest.raises(InputError, match=r"asked for what it declares, raised OSError: no disk \(test_.* \d+\)\.$"):
        _ = FromGymnasium(Told).success_return
