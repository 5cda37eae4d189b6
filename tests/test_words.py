"""What people type who come from elsewhere: it is understood, or one sentence says what is meant."""

import inspect
import re
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import uppertail as ut
from uppertail.cli import ELSEWHERE as OF_COMMANDS
from uppertail.cli.commands import COMMANDS, options_of
from uppertail.cli.train import parse_request
from uppertail.environments.gymnasium.from_gymnasium import builder_of
from uppertail.parts import ABSENT, ELSEWHERE, KIND_OF, PARTS
from uppertail.schema import require_type
from uppertail.training.results import USES
from uppertail.training.settings import USUAL_EPISODES


@pytest.fixture(scope="module")
def result() -> ut.TrainingResult:
    parts: Any = {"distribution": "Gaussian", "policy": "UCB", "learner": "LeastSquares"}
    return ut.train("Toy", **parts, settings=ut.Settings(seeds=3, steps=9), seeds=1, steps=3000)


def test_a_run_of_names_and_single_settings_is_one_of_objects(result: ut.TrainingResult) -> None:
    settings = ut.Settings(seeds=1, steps=3000)
    same = ut.train(ut.Toy(), ut.Gaussian(), ut.UCB(), settings, learner=ut.LeastSquares())
    assert result.record.asked == same.record.asked
    assert result.record.episodes[0].returns.tolist() == same.record.episodes[0].returns.tolist()


def test_with_a_limit_of_steps_alone_episodes_have_none(result: ut.TrainingResult) -> None:
    assert parse_request([]).settings.most_episodes == USUAL_EPISODES < len(result.episodes)
    assert result.record.env_steps == [3000]
    assert parse_request(["--steps", "4096"]).settings.most_episodes > 10**9
    assert parse_request(["--steps", "4096", "--episodes", "7"]).settings.most_episodes == 7


@pytest.mark.parametrize("text", ["1e5", "1E5", "100000.0", "1.0e+5", "100_000"])
def test_a_whole_number_may_be_written_with_an_exponent(text: str, tmp_path: Path) -> None:
    assert parse_request(["--steps", text]).settings.steps == 100_000
    (tmp_path / "run.yaml").write_text(f"steps: {text}\n")
    assert parse_request(["--config", str(tmp_path / "run.yaml")]).settings.steps == 100_000


def test_so_it_may_in_python() -> None:
    steps = require_type("steps", 1e5, int | None)  # as ut.Settings does
    assert (steps, type(steps)) == (100_000, int)


@pytest.mark.parametrize("text", ["1.5", "1e-3", "1e10", "nan", "inf", "1e400"])
def test_other_numbers_are_refused(text: str) -> None:
    with pytest.raises(ut.InputError, match=f"^steps is {text}: use a whole number"):
        parse_request(["--steps", text])


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_of_other_libraries_lead_to_the_option(name: str) -> None:
    with pytest.raises(ut.InputError) as caught:
        parse_request([f"--{name}", "3"])
    assert str(caught.value) == f"There is no option --{name}. Did you mean --{ELSEWHERE[name]}?"


@pytest.mark.parametrize(("name", "kind"), KIND_OF.items())
def test_names_of_other_libraries_lead_to_the_built_in_kind(name: str, kind: str) -> None:
    (part,) = [part for part, each in PARTS.items() if kind in each.kinds]
    with pytest.raises(ut.InputError) as caught:
        parse_request([f"--{part}", name.lower()])
    assert str(caught.value).endswith(f"or the import path of your own class. Did you mean {kind}?")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--policy.lwo", "2"], "UCB has no setting 'lwo'. Did you mean --policy.low?"),
        (["--name", "mine"], "There is no option --name. Did you mean --out?"),
        (
            ["--env", "CartPole-v1", "--env.kwargs.how", "four"],
            "Gym has no setting 'kwargs.how'. Arguments of the environment itself go into --env.kwargs '{how: VALUE}'.",
        ),
        (["--device", "cpu"], f"There is no option --device.{ABSENT['device']}"),
    ],
)
def test_a_slip_and_what_only_others_have_get_a_remedy(typed: list[str], words: str) -> None:
    with pytest.raises(ut.InputError) as caught:
        parse_request(typed)
    assert str(caught.value) == words


def test_they_lead_to_options_that_there_are() -> None:
    known = {*COMMANDS["train"].options, *PARTS, *options_of(ut.Settings), "env.id", "env.kwargs", "network.width"}
    assert {option.split()[0] for option in ELSEWHERE.values()} <= known


@pytest.mark.parametrize(("typed", "command"), [*OF_COMMANDS.items(), ("evalute", "evaluate"), ("reprot", "report")])
def test_commands_of_other_libraries_lead_to_ours(typed: str, command: str, refused: Any) -> None:
    assert command in COMMANDS and refused([typed, "DIR"]).endswith(f"Did you mean {command}?\n")


def test_in_a_file_they_have_no_dashes(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("gamma: 0.9\n")
    with pytest.raises(ut.InputError, match=r"There is no option gamma\. Did you mean discount\?"):
        parse_request(["--config", str(tmp_path / "run.yaml")])


@pytest.mark.parametrize(
    ("environment", "arguments", "words"),
    [
        ("Toy", {"gamma": 0.9}, "There is no setting gamma. Did you mean discount?"),
        ("Toy", {"total_timesteps": 9}, "There is no setting total_timesteps. Did you mean steps?"),
        ("Toy", {"sedes": 9}, "There is no setting sedes. Did you mean seeds?"),
        ("Toy", {"exp_name": "mine"}, "Did you mean checkpoints, or `uppertail train --out DIR`, which"),
        ("Toy", {"out": "mine"}, "There is no setting out. Did you mean checkpoints, or `uppertail train --out DIR`, "),
        ("Toy", {"verbose": 1}, "There is no setting verbose. Did you mean on_chunk, which is called with the"),
        ("Toy", {"device": "cpu"}, f"There is no setting device.{ABSENT['device']}"),
        ("Toy", {"track": True}, "There is no setting track. Did you mean on_chunk, which a logger can be"),
        ("Toy", {"distribution": 50}, "distribution is 50: give a number by name, such as steps=50."),
        ("Toy", {"epsilon": 0.1}, 'There is no setting epsilon. Did you mean policy="EpsilonGreedy"?'),
        ("Toy", {"max_episode_steps": 9}, "Did you mean environment=ut.Gym(id, max_episode_steps=..., kwargs={...})?"),
        ("Toy", {"policy_kwargs": {}}, "Did you mean network=ut.PerAction(width=...)?"),
        (
            "MlpPolicy",
            {"distribution": "CartPole-v1"},
            "It looks like an environment: ut.train takes that first, and a command as --env.",
        ),
        ("Toy", {"xyz": 9}, "There is no setting xyz. `help(ut.Settings)` lists them."),
        ("Toy", {"seeds": 0}, "seeds is 0: use 1 or more."),
        ("Toy", {"policy": "UCBB"}, "Unknown policy 'UCBB'"),
        ("Toy", {"policy": ut.UCB}, "policy is the class UCB: give an object of it, UCB(), or its name as a text."),
        (ut.Chain, {}, "environment is the class Chain: give an object of it, Chain(), or its name as a text."),
        ("Gym", {}, "env is Gym, which needs settings ("),
    ],
)
def test_what_python_does_not_understand_gets_a_sentence(environment: Any, arguments: Any, words: str) -> None:
    with pytest.raises(ut.InputError) as caught:
        inspect.unwrap(ut.train)(environment, **arguments)
    assert words in str(caught.value)


def test_a_name_of_gymnasium_without_a_version_is_the_newest() -> None:
    newest = max((each for each in gymnasium.registry if each.startswith("Taxi-v")), key=lambda each: int(each[6:]))
    assert parse_request(["--env", "Taxi"]).built.env == builder_of("Taxi") == ut.Gym(newest)
    assert parse_request(["--env", "FrozenLake"]).built.env == builder_of("FrozenLake") == ut.FrozenLake()
    with pytest.raises(ut.InputError, match=r"^Unknown env 'cartpole': use .* Did you mean CartPole\?$"):
        parse_request(["--env", "cartpole"])


def test_a_class_of_gymnasium_makes_an_environment() -> None:
    class Mine(gymnasium.Env[Any, Any]):
        observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)

    assert isinstance(builder_of(Mine), ut.FromGymnasium)


def test_a_result_says_what_it_has_in_place_of_other_names(result: ut.TrainingResult) -> None:
    for name, use in (("predict", "act"), ("load", "load"), ("save", "Checkpoints"), ("learn", "Checkpoints")):
        with pytest.raises(AttributeError, match=rf"^a TrainingResult has no '{name}': use .*{use}\("):
            getattr(result, name)
    for name in ("report", "watch", "summary", "history", "policy", "q_values", "env", "model"):
        with pytest.raises(AttributeError, match=rf"^a TrainingResult has no '{name}': use {re.escape(USES[name])}$"):
            getattr(result, name)
    assert result.act(0, explore=True, key=0) in (0, 1)
    assert (result.record.environment, result.distribution(0).mean.shape) == ("Toy", (2,))
    with pytest.raises(AttributeError, match=r"has no 'xyz'$"):
        _ = result.xyz


@pytest.mark.parametrize(
    ("make", "given", "words"),
    [
        (ut.Settings, {"gamma": 0.9}, "Settings has no setting gamma. Did you mean discount?"),
        (ut.Settings, {"polcy": "UCB"}, "has no setting polcy. Did you mean policy, an argument of `ut.train`?"),
        (ut.Settings, {"track": True}, "Settings has no setting track. `help(ut.Settings)` lists them."),
        (ut.Settings, {"device": "cpu"}, f"Settings has no setting device.{ABSENT['device']}"),
        (ut.Chain, {"lenght": 3}, "Chain has no setting lenght. Did you mean length?"),
        (ut.Gym, {"id": "CartPole-v1", "retruns": (0, 1)}, "Gym has no setting retruns. Did you mean returns?"),
        (ut.UCB, {"c": 2.0}, "UCB has no setting c. Its settings are low, high, power."),
        (ut.Uniform, {"size": 2}, "Uniform has no setting size. It has none."),
        (ut.train, {"env": "Toy"}, "There is no setting env. Did you mean environment?"),
        (ut.train, {}, "environment is left out: give a builder, the id of a Gymnasium environment, or a function."),
    ],
)
def test_settings_that_there_are_not_get_a_sentence(make: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ut.InputError) as caught:
        make(**given)
    assert str(caught.value).endswith(words)


def test_signatures_are_those_of_the_settings() -> None:
    assert [*inspect.signature(ut.Chain).parameters][:2] == ["length", "ordered"]
    assert inspect.signature(ut.Settings).parameters["seeds"].default == 5


def test_a_result_says_what_was_chosen(result: ut.TrainingResult) -> None:
    chosen = repr(result).splitlines()[1]
    assert chosen.startswith("  2 actions; 3 states; least squares learns; returns 0 to 4, named by the environment; ")
