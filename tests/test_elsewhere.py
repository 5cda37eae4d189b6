"""What a run learned, elsewhere: evaluated with other settings of its environment."""

import itertools
import json
import math
import shutil
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import uppertail as ut
from uppertail.cli import main
from uppertail.training.loop import seed_keys
from uppertail.training.method import Method
from uppertail.training.run import Run

pytestmark = pytest.mark.usefixtures("own_folder")


class Walk(gymnasium.Env):
    """A step to the right pays 1; `length` steps end the episode, `wide` numbers are seen."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int = 3, wide: int = 1) -> None:
        self.observation_space, self.length = gymnasium.spaces.Box(0, length, (wide,), np.float32), length
        self.wide = wide

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.full(self.wide, self.at, np.float32), {}

    def step(self, action):
        self.at += action
        return (
            np.full(self.wide, self.at, np.float32),
            float(action),
            self.at >= self.length,
            False,
            {},
        )


gymnasium.register("UpperTailWalk-v0", Walk, max_episode_steps=20)  # pyright: ignore[reportArgumentType]
WALK = ["--env", "Gym", "--env.id", "UpperTailWalk-v0", "--env.returns", "[0, 10]", "--env.features", "hashed"]
CHAIN = ["--env", "Chain", "--env.length", "3"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run in each of the two environments."""
    folder = tmp_path_factory.mktemp("runs")
    for name, asked in (("walk", [*WALK, "--steps", "128"]), ("chain", [*CHAIN, "--episodes", "40"])):
        assert main(["train", *asked, "--seeds", "1", "--quiet", "--out", str(folder / name)]) == 0
    return folder


@pytest.fixture
def run(request, runs):
    shutil.copytree(runs / request.param, "run")


walk, chain = (pytest.mark.parametrize("run", [name], indirect=True) for name in ("walk", "chain"))


def evaluation(name: str) -> dict:
    return json.loads(Path("run", f"evaluation-{name}.json").read_text())


@walk
def test_other_settings_of_the_environment_are_played(run, capsys):
    assert main(["evaluate", "run", "--episodes", "2"]) == 0
    assert main(["evaluate", "run", "--episodes", "2", "--env.kwargs", "{length: 2}", "--seed", "7"]) == 0
    assert "--env.kwargs={length: 2}, --seed=7" in capsys.readouterr().out
    usual, short = evaluation("greedy"), evaluation("greedy--env.kwargs-length-2---seed-7")
    assert usual["seeds"][0]["returns"] == [3.0, 3.0]
    assert short["seeds"][0] == {**usual["seeds"][0], "returns": [2.0, 2.0], "lengths": [2, 2]} | {
        "mean_return": 2.0,
        "mean_length": 2.0,
    }
    assert (usual.get("changes"), short["changes"]) == (None, ["--env.kwargs={length: 2}", "--seed=7"])
    assert short["env"]["kwargs"] == {"length": 2}
    assert short["networks"] == usual["networks"]


@walk
def test_another_time_limit_is_played(run):
    assert main(["evaluate", "run", "--episodes", "2", "--env.max_episode_steps", "1", "--quiet"]) == 0
    assert evaluation("greedy--env.max_episode_steps-1")["seeds"][0]["lengths"] == [1, 1]


@chain
def test_another_seed_is_another_table(run, capsys):
    """The right actions of a randomized Chain are those of its seed."""
    assert main(["evaluate", "run", "--episodes", "1", "--quiet"]) == 0
    assert main(["evaluate", "run", "--episodes", "1", "--seed", "0", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["evaluate", "run", "--episodes", "1", "--seed", "2", "--quiet"]) == 0
    assert "Seed 2 draws other environments than those of the run" in capsys.readouterr().err
    found = [evaluation(f"greedy{of}")["mean_return"] for of in ("", "--seed-0", "--seed-2")]
    one, other = (np.asarray(ut.Chain(length=3).build(seed_keys(seed).environment).terminated) for seed in (0, 2))
    assert not np.array_equal(one, other)
    assert found == [1.0, 1.0, 0.0]


@chain
def test_a_shorter_chain_is_played_and_a_line_says_which_states_are_taken(run, capsys):
    """The first states of a randomized Chain have the same right actions, whatever its length."""
    assert main(["evaluate", "run", "--episodes", "1", "--env.length", "2", "--quiet"]) == 0
    said = capsys.readouterr().err
    assert "There are 2 states here, and 3 were learned: each is taken for the one of the same number, which is" in said
    assert evaluation("greedy--env.length-2")["seeds"][0]["returns"] == [1.0]
    assert evaluation("greedy--env.length-2")["seeds"][0]["lengths"] == [2]
    assert main(["evaluate", "run", "--episodes", "1", "--quiet"]) == 0
    assert "taken for" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sizes", "other", "fits"),
    [
        ((3, 4), (3, 4), True),
        ((3, 4), (2, 4), True),
        ((3, 4), (4, 3), False),
        ((12,), (5,), True),
        ((12,), (13,), False),
    ],
)
def test_states_of_several_integers_are_the_same_where_all_but_the_first_have_as_many_values(sizes, other, fits):
    of_each = [np.unravel_index(np.arange(math.prod(each)), each) for each in (sizes, other)]
    held = [dict(zip(zip(*each, strict=True), itertools.count())) for each in of_each]
    assert (held[1].items() <= held[0].items()) == fits, "the case is not what it says"
    asked, shown = (ut.States(math.prod(each), each) for each in (sizes, other))
    assert asked.has(shown) == fits


@chain
def test_other_observations_are_refused(run, refused):
    error = refused(["evaluate", "run", "--env.length", "4"])
    assert "With --env.length=4 the environment has other observations or actions than those of the run" in error
    assert "a table knows the states that it was made for" in error and "such as a time limit, or train there." in error


@walk
def test_other_actions_are_refused(run, refused):
    three = type("Walk3", (Walk,), {"action_space": gymnasium.spaces.Discrete(3)})
    gymnasium.register("UpperTailWalk3-v0", three)  # pyright: ignore[reportArgumentType]
    assert "has other observations or actions" in refused(["evaluate", "run", "--env.id", "UpperTailWalk3-v0"])


@chain
def test_a_setting_that_there_is_not_gets_the_usual_hint(run, refused):
    assert "Did you mean --env.length?" in refused(["evaluate", "run", "--env.lenght", "4"])


def run_of(builder, seed=0) -> Run:
    run = Run(builder, Method.of(), ut.Settings(seeds=2, seed=seed, steps=10))
    run.close()
    return run


@pytest.mark.parametrize(
    ("builder", "drawn"),
    [
        (ut.Chain(3), True),
        (ut.Chain(3, ordered=True), False),
        (ut.Gym("UpperTailWalk-v0"), False),
        (ut.Gym("UpperTailWalk-v0", reset_seed="run"), True),
    ],
)
def test_an_environment_that_is_drawn_from_the_seed_is_another_one_with_another_seed(builder, drawn):
    assert run_of(builder, 2).draws_anew(run_of(builder)) == drawn
    assert not run_of(builder).draws_anew(run_of(builder))


def test_fewer_states_with_as_many_actions_are_played():
    seven = run_of(ut.SixArms())  # with six actions
    assert seven.driver.observations == ut.States(7)
    assert not run_of(ut.Chain(3)).plays(seven), "it has two actions"
    assert run_of(ut.Chain(3)).plays(run_of(ut.Chain(5))) and not run_of(ut.Chain(5)).plays(run_of(ut.Chain(3)))
