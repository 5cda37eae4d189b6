"""The plan of a run: what it holds, how it is shown, and that a run is repeated, continued and played by it."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import yaml

import uppertail as ut
from uppertail import records
from uppertail.cli import main, print_table
from uppertail.cli.train import parse_request
from uppertail.defaults import Entry, Plan, facts, rules
from uppertail.errors import InputError
from uppertail.training.method import Method
from uppertail.training.run import Run

CAR = ["--env", "Gym", "--env.id", "MountainCar-v0", "--seeds", "1", "--steps", "64", "--episodes", "9"]
SEA = ["--env", "RichSea", "--env.size", "4", "--env.bits", "3", "--seeds", "1", "--episodes", "4"]


class Bare(gymnasium.Env[Any, Any]):
    """A clock of 30 steps."""

    observation_space, action_space = gymnasium.spaces.Discrete(31), gymnasium.spaces.Discrete(2)

    def reset(self, **options: Any) -> Any:
        self.time = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        self.time += 1
        return self.time, 1.0, self.time == 30, False, {}


class Coarse(Bare):
    """A place, whose steps are shorter than it is shown to."""

    observation_space, action_space = gymnasium.spaces.Box(-10.0, 10.0, (1,)), gymnasium.spaces.Discrete(2)

    def reset(self, **options: Any) -> Any:
        self.place = 0.0
        return self.shown, super().reset()[1]

    def step(self, action: Any) -> Any:
        self.place += 0.6 * action - 0.3
        return self.shown, *super().step(action)[1:]

    @property
    def shown(self) -> Any:
        return np.array([np.round(self.place)], np.float32)


class Switches(Bare):
    """Seven switches and a number that never repeats."""

    observation_space, action_space = gymnasium.spaces.Box(0.0, 1.0, (1,)), gymnasium.spaces.MultiBinary(7)

    def reset(self, **options: Any) -> Any:
        self.random, self.time = np.random.default_rng(options.get("seed")), 0
        return self.random.random(1, np.float32), {}

    def step(self, action: Any) -> Any:
        _, *others = super().step(action)
        return self.random.random(1, np.float32), *others


def plan_of(builder: Any, method: Method | None = None, **settings: Any) -> Any:
    run = Run(builder, method or Method(), ut.Settings(**{"seeds": 1, **settings}))
    run.close()
    return run.plan


def test_every_setting_has_a_value_and_a_source() -> None:
    plan = plan_of(ut.Chain(5), Method(policy=ut.UCB(low=1.0)), episodes=7)
    given = {name for name, entry in plan.entries.items() if entry.source == "given"}
    assert given == {"env.length", "policy.low", "seeds", "episodes"}
    assert {name for name, entry in plan.entries.items() if entry.source == "measured"} == {"learner.stochastic"}
    assert plan["learner"] == "LeastSquares" and plan["learner.sweeps"] == 200 and plan["rollout_steps"] == 4
    assert (plan["learner.stochastic"], plan["returns"]) == (False, [0.0, 1.0])
    open_ones = [name for name in plan.entries if name.startswith("learner.") and plan[name] is None]
    assert not open_ones, "the learner has a value for each"
    json.dumps(plan.chosen(), allow_nan=False)
    networks = plan_of(ut.Chain(5), Method(), learning_rate=1e-3, episodes=7)
    assert networks["learner"] == "GradientDescent" and networks["network"] == "PerAction"
    assert networks.entries["learner"].reason == "learning_rate is given, which only gradient descent uses"


def test_what_was_chosen_is_read_back() -> None:
    """An empty text, too, which every run of Gymnax has: none could be evaluated."""
    plan = Plan({"env.code": Entry("", "default"), "env.left_out": Entry(None, "measured", "each tells something")})
    assert Plan.read(plan.chosen()) == plan


def test_what_was_chosen_is_said_in_a_line() -> None:
    def words(builder: Any, **parts: Any) -> str:
        run = Run(builder, Method(**parts), ut.Settings(seeds=1))
        run.close()
        return run.opening

    assert words(ut.FrozenLake("4x4", is_slippery=True)).split("; ") == [
        "4 actions",
        "16 states",
        "the same action led from equal observations to different outcomes: chance",
        "least squares learns",
        "returns 0 to 1, named by the environment",
        "an episode succeeds from 1 on.",
    ]
    pole = words(ut.Gym("CartPole-v1", max_episode_steps=30)).split("; ")
    assert pole[:4] == [
        "2 actions",
        "4 numbers, which do not repeat",
        "each action is taken for 3 steps (--env.action_repeat)",
        "a step is discounted by 0.9933 (--discount)",
    ]
    assert pole[-2].endswith(", estimated from a random policy's")
    assert pole[-1] == "solved: mean of 100 episodes at least 475."
    chance = words(ut.Gym("CartPole-v1", max_episode_steps=30), learner=ut.GradientDescent(stochastic=True))
    assert "; 4 numbers; " in chance and "may lead to different outcomes: chance, as given" in chance
    assert "; success is not defined: --env.success 30 counts it." in words(ut.FromGymnasium(Bare, returns=(0, 30)))
    switches = words(ut.FromGymnasium(Switches))
    assert switches.startswith("128 actions, learned by their parts; 1 number, "), switches
    taxi = words(ut.Gym("Taxi-v4"))
    assert taxi.startswith("6 actions, only those that an action mask allows; 500 states; "), taxi
    measured = words(ut.FromGymnasium(Bare))
    assert measured.endswith("success is not defined: --env.success N counts it."), "measured ranges reach too far"
    coarse = words(ut.FromGymnasium(Coarse))
    assert "; observations repeat, so each is a state; " in coarse, coarse
    assert "chance, or what one observation does not show (--env.stack 2 shows two), or numbers rounded" in coarse
    assert "rounded too far" not in words(ut.FromGymnasium(Coarse, features="hashed")), "as it is given"
    hashed = words(ut.RichSea(4, bits=3))
    assert hashed.startswith("2 actions; observations repeat, so each is a state; least squares learns; returns ")


@pytest.mark.usefixtures("own_folder")
def test_a_dry_run_shows_the_plan_and_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--env.length", "7", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Chain: 2 actions; 7 states; least squares learns; returns 0 to 1")
    lines = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if len(line.split()) > 2}
    assert lines["env.length"] == ["7", "given"]
    assert lines["learner.sweeps"][:2] == ["200", "default"]
    assert not Path("runs").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--learner", "LeastSquares"], "Least squares learns tables, but numbers stay numbers here: leave --learner"),
        (["--policy", "PosteriorSampling"], "PosteriorSampling needs draws from the posterior of a table"),
    ],
    ids=["learner", "policy"],
)
def test_what_is_for_tables_is_refused_before_a_run_of_numbers(asked: list[str], words: str, refused: Any) -> None:
    """In a dry run, too; and of cells it is a table."""
    shown = refused(["train", "--env", "RichChain", "--env.length", "3", "--seeds", "1", *asked, "--dry-run"])
    assert words in shown and "--env.radius 0.1" in shown
    assert main(["train", "--env", "RichChain", "--env.radius", "0.1", "--env.length", "3", *asked, "--dry-run"]) == 0


def test_a_narrow_terminal_shows_the_values_of_a_plan(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(
        [{"setting": "learner." + "x" * 20, "value": "200", "from": "default", "because": "why"}],
        texts=("value", "because"),
    )
    shown = capsys.readouterr().out
    assert "200" in shown and "why" in shown


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
def test_a_run_repeats_by_its_plan_whatever_rules_say_later(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["train", *SEA, "--out", "first", "--quiet"]) == 0
    made = yaml.safe_load(Path("first/config.yaml").read_text())
    assert made["learner"] is None and made["env.left_out"] is None, "what was asked stays open"
    assert made["plan"]["learner"]["value"] == "LeastSquares"
    assert made["plan"]["env.left_out"]["value"] == [8, 9, 10]
    assert records.RunFolder(Path("first")).config == {name: each for name, each in made.items() if name != "plan"}
    monkeypatch.setattr(rules, "REPEATED", 2.0)
    monkeypatch.setattr(facts, "random_steps", None)
    assert main(["train", "--config", "first/config.yaml", "--out", "again", "--quiet"]) == 0
    assert Path("first/episodes.npz").read_bytes() == Path("again/episodes.npz").read_bytes()
    assert ut.load("again").record.asked["environment"]["features"] == "hashed"
    kept = yaml.safe_load(Path("again/config.yaml").read_text())["plan"]
    assert {name: each["value"] for name, each in kept.items() if name != "of"} == {
        name: each["value"] for name, each in made["plan"].items() if name != "of"
    }


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
def test_a_plan_is_of_what_was_asked_and_of_nothing_else() -> None:
    """Longer, on other seeds it holds; by another option beside the file, or by hand in it, all is chosen anew."""
    assert main(["train", *SEA, "--out", "run", "--quiet"]) == 0
    file = Path("run/config.yaml")
    assert parse_request(["--config", str(file)]).plan is not None
    assert parse_request(["--config", str(file), "--seed", "3", "--steps", "99"]).plan is not None
    assert parse_request(["--config", str(file), "--env.bits", "0"]).plan is None
    file.write_text(file.read_text().replace("env.bits: 3", "env.bits: 2"))
    assert parse_request(["--config", str(file)]).plan is None
    file.write_text(file.read_text().replace("env.bits: 2", "env.bits: 3"))
    assert parse_request(["--config", str(file)]).plan is not None
    text, _, _ = file.read_text().partition("\nplan:")
    file.write_text(f"{text}\nplan: 3\n")
    with pytest.raises(InputError, match="plan is 3"):
        parse_request(["--config", str(file)])


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
def test_a_run_that_chose_its_learner_is_evaluated_and_resumed_with_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """config.yaml leaves the learner open, and the second run does not ask a random policy again."""
    car = [*CAR[:-4], "--env.returns", "[-200, 0]", "--episodes", "100"]
    assert main(["train", *car, "--steps", "1200", "--out", "whole"]) == 0
    assert main(["train", *car, "--steps", "800", "--checkpoint_every", "400", "--out", "run"]) == 0
    monkeypatch.setattr(facts, "random_steps", None)
    assert main(["resume", "run", "--steps", "1200"]) == 0
    whole, resumed = (np.load(f"{folder}/episodes.npz") for folder in ("whole", "run"))
    for name in whole.files:
        np.testing.assert_array_equal(whole[name], resumed[name])
    assert main(["evaluate", "run", "--episodes", "1"]) == 0
    capsys.readouterr()
    assert main(["inspect", "run"]) == 0
    assert "First observation" in capsys.readouterr().out
    assert main(["export", "run", "--to", "policy.npz"]) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("given", [[], ["--env.left_out", "[]"], ["--env.action_repeat", "4"]])
def test_the_same_run_whatever_is_given_that_would_be_chosen(given: list[str]) -> None:
    """Keeping all numbers, which are kept anyway, was another learner with other actions."""
    returns = ["--env.returns", "[-87, 0]"]
    for out, options in (("one", []), ("other", given)):
        assert main(["train", *CAR, *returns, *options, "--out", out, "--quiet"]) == 0
    one, other = (np.load(f"{out}/episodes.npz") for out in ("one", "other"))
    for name in one.files:
        np.testing.assert_array_equal(one[name], other[name])
