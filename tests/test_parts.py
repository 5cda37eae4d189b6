"""The parts of a run and their settings: short forms, on the command line, in config.yaml, in summary.json."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import uppertail as ut
from uppertail import UCB, LeastSquares, RiskyArm
from uppertail.cli import main
from uppertail.cli.train import parse_request
from uppertail.errors import InputError
from uppertail.networks import Network, NetworkBuilder
from uppertail.parts import PARTS, SETTLED


@dataclasses.dataclass(frozen=True)
class Own(NetworkBuilder):
    """A network without the settings that have a short form, but one."""

    bias: bool = False

    def init(self, key: Any, encoding: Any, num_actions: int, num_outputs: int) -> Network:
        raise AssertionError(num_outputs)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Where the network of one's own can be imported from."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


# Defaults

NEEDED = {
    "Gym": {"id": "CartPole-v1"},
    "Gymnax": {"id": "CartPole-v1"},
    "XMiniGrid": {"id": "MiniGrid-Empty-5x5"},
    "Bsuite": {"id": "catch/0"},
}
"""Settings without a default."""


def defaults_of(option: str, name: str) -> Any:
    return PARTS[option].classes[name](**NEEDED.get(name, {}))


@pytest.mark.parametrize("place", range(max(len(part.kinds) for part in PARTS.values())))
def test_on_the_command_line_each_kind_has_the_defaults_of_its_class(place: int) -> None:
    """Also of settings that share their names with those of the default kind."""
    named = {option: [*part.kinds][place % len(part.kinds)] for option, part in PARTS.items()}
    needed = [
        f"--{option}.{key}={value}" for option, name in named.items() for key, value in NEEDED.get(name, {}).items()
    ]
    built = parse_request([*(f"--{option}={name}" for option, name in named.items()), *needed]).built
    assert {option: built[option] for option in PARTS} == {
        option: defaults_of(option, name) for option, name in named.items()
    }


RISKY = {"env": "RiskyArm", "env.mean": 0.5}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--env.mean", "0.5", "--env", "RiskyArm"],
        ["--env", "uppertail.environments.RiskyArm", "--env.mean=0.5"],
        ["--config", "risky.yaml"],
        ["--config", "risky.yaml", "--env.sure", "1"],
        ["--config", "chain.yaml", "--env", "RiskyArm", "--env.mean", "0.5"],
    ],
)
def test_however_a_kind_is_named_it_has_its_own_defaults(own, arguments) -> None:
    Path("risky.yaml").write_text(yaml.safe_dump(RISKY))
    Path("chain.yaml").write_text(yaml.safe_dump({"env": "Chain"}))
    assert parse_request(arguments).built.env == RiskyArm(mean=0.5)


# On the command line

BAD = {
    "network": (
        "--network Peraction",
        "Unknown network 'Peraction': use PerAction, Ensemble, Twin, Dropout or Variational,",
    ),
    "replay": ("--replay Unifrm", "own class. Did you mean Uniform?"),
    "target": (
        "--target Periodc",
        "Online, RunningMean or Periodic, or the import path of your own class. Did you",
    ),
    "setting of a network": ("--network.widht 3", "PerAction has no setting 'widht'. Did you mean --network.width?"),
    "setting of a target": (
        "--target Periodic --target.evry 3",
        "Periodic has no setting 'evry'. Did you mean --target.every?",
    ),
    "setting of one's own": ("--network test_parts.Own --network.bais true", "Did you mean --network.bias?"),
    "setting of another class, and nearly one of its own": (
        "--env Gym --env.id CartPole-v1 --env.actions [left,right]",
        "Gym has no setting 'actions'. Did you mean --env.action_names?",
    ),
    "setting of no class": ("--target.foo 3", "`uppertail train --target.help Online` lists its settings"),
    "setting of another class": (
        "--learner GradientDescent --replay Uniform --replay.novelty 0",
        "Uniform has no setting 'novelty'. It belongs to BestEpisodes: name that class, too, with --replay.",
    ),
    "setting of a part that is not used": (
        "--learner LeastSquares --evidence.reach 0.5",
        "evidence is a part or setting of gradient descent, which LeastSquares does not use: leave it out",
    ),
    "setting of a class that is not usual": (
        "--learner GradientDescent --replay.novelty 0",
        "Uniform, the replay that is usual here, has no setting 'novelty'. It belongs to BestEpisodes: name that",
    ),
    "choice": ("--network.activation gelu", "network.activation is gelu: use one of elu, relu, tanh or silu"),
    "torso": ("--network.torso conv", "observations enter as OneHot, which is no image: leave torso and kernels out"),
    "an environment that is no builder": (
        "--env gymnasium.envs.classic_control.CartPoleEnv",
        "is not an environment builder: register the function that makes it",
    ),
    "no list": (
        "--env Gym --env.id CartPole-v1 --env.wrappers HalfWrap",
        "wrappers is HalfWrap: use a list",
    ),
    "a list without brackets": (
        "--env Gym --env.id CartPole-v1 --env.returns 0,1",
        "env.returns is 0,1: use a list, as in '[0,1]', or leave it out.",
    ),
    "a choice of one": (
        "--env Gym --env.id CartPole-v1 --env.reset_seed rum",
        "env.reset_seed is rum: use a whole number or run, or leave it out.",
    ),
    "another contract": ("--target uppertail.UCB", "is no subclass of Target"),
    "value": ("--target Periodic --target.every 0", "every is 0: use a whole number of rollouts"),
    "one beta": ("--adam_betas [0.9]", "adam_betas is [0.9]: use a list of 2, or leave it out."),
    "a beta of 1": ("--adam_betas [0.9,1.0]", "adam_betas is [0.9, 1.0]: use two numbers in [0, 1)"),
    "epsilon": ("--adam_epsilon 0", "adam_epsilon is 0.0: use a number above 0."),
    "removed": ("--learner NearestNeighbors", "The learner NearestNeighbors was removed: leave --learner out"),
    "removed policy": ("--policy EpisodicUCB --policy.c 0.4", "use UCB with --policy.low C --policy.high C --policy."),
    "setting of what was removed": ("--learner NearestNeighbors --learner.reach 2", "removed: leave --learner out"),
    "setting of an earlier version": (
        "--learner LeastSquares --learner.transitions 512",
        "LeastSquares has no setting transitions any more: leave it out; a run with it needs the version of uppertail",
    ),
    "misspelled": ("--discuont 3", "There is no option --discuont. Did you mean --discount?"),
    "setting of the usual network": ("--width 3", "There is no option --width. Did you mean --network.width?"),
    "setting of the environment": ("--length 3", "There is no option --length. Did you mean --env.length?"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_part_that_cannot_be_gets_a_sentence_and_leaves_nothing(case, own, tmp_path, refused):
    arguments, sentence = BAD[case]
    assert sentence in refused(["train", *arguments.split(), "--env.length", "2", "--out", "out"])
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_an_earlier_version_may_have_settings_that_asked_for_nothing(tmp_path):
    """config.yaml has all settings of a learner that was given, with their defaults."""
    file, settings = tmp_path / "config.yaml", {**SETTLED["LeastSquares"], "stochastic": True}
    file.write_text(yaml.safe_dump({"learner": "LeastSquares", **{f"learner.{k}": v for k, v in settings.items()}}))
    assert parse_request(["--config", str(file)]).built.learner == LeastSquares(stochastic=True)
    file.write_text("learner: LeastSquares\nlearner.start_width: 1.0")
    with pytest.raises(InputError, match="LeastSquares has no setting start_width any more: leave it out; a run with"):
        parse_request(["--config", str(file)])


def test_what_is_asked_for_reaches_the_parts(own):
    arguments = (
        "--network.width 4 --network.normalization layer --replay Prioritized --replay.beta 1 --target RunningMean "
        "--target.decay 0.5 --adam_betas [0.5,0.25] --adam_epsilon 0.125 --policy UCB --policy.low 1.5"
    )
    built = parse_request(arguments.split()).built
    assert built.network is None and built.open_settings == {"network": {"width": 4, "normalization": "layer"}}
    assert built.replay.beta == 1.0
    assert (built.target.decay, built.adam_betas, built.adam_epsilon) == (0.5, (0.5, 0.25), 0.125)
    assert built.policy == UCB(low=1.5)
    assert parse_request(["--network", "test_parts.Own", "--network.bias", "true"]).built.network.bias is True
    nothing = parse_request([]).built
    assert (nothing.network, nothing.replay, nothing.target) == (None, None, None)


def test_a_setting_of_an_open_part_changes_the_usual_one():
    """A lone --network.width replaced the network beside kernel counts by a smaller one of another class."""
    asked = "--env CartPole-v1 --env.action_repeat 1 --network.width 32 --evidence.reach 0.5"
    request = parse_request(asked.split())
    run = request.run()
    assert (run.method.network, run.method.evidence) == (ut.Twin(width=32), ut.KernelCounts(reach=0.5))
    sources = {name: run.plan.entries[name].source for name in ("network", "network.width", "evidence.reach", "target")}
    assert sources == {"network": "default", "network.width": "given", "evidence.reach": "given", "target": "default"}
    again = request.run(run.plan)
    assert (again.method, again.plan) == (run.method, run.plan), "from its plan"
    saved = request.config
    assert "network: null\nnetwork.width: 32\n" in saved and "evidence: null\nevidence.reach: 0.5\n" in saved
    for each in (run, again):
        each.close()


@pytest.mark.slow
def test_config_yaml_gives_the_same_run_of_other_parts_and_summary_json_names_them_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = (
        "--env.length 3 --seeds 1 --steps 64 --network.width 4 --network.activation tanh --replay Prioritized "
        "--target Periodic --target.every 2 --adam_betas [0.8,0.9] --adam_epsilon 0.001 --policy Thompson "
        "--replay_size 64 --quiet"
    )
    assert main(["train", *arguments.split(), "--out", "first"]) == 0
    assert main(["train", "--config", "first/config.yaml", "--quiet", "--out", "second"]) == 0
    for name in ("episodes.npz", "config.yaml"):
        assert Path("first", name).read_bytes() == Path("second", name).read_bytes()
    first, second = (json.loads(Path(folder, "summary.json").read_text()) for folder in ("first", "second"))
    assert {name: first[name]["name"] for name in PARTS} == {
        "env": "Chain",
        "distribution": "Gaussian",
        "policy": "Thompson",
        "learner": "GradientDescent",
        "network": "PerAction",
        "replay": "Prioritized",
        "target": "Periodic",
        "evidence": "Counts",
    }
    assert (first["network"]["width"], first["network"]["activation"], first["target"]["every"]) == (4, "tanh", 2)
    assert [first["settings"][name] for name in ("adam_betas", "adam_epsilon")] == [[0.8, 0.9], 0.001]
    for name in (*PARTS, "settings"):
        assert second[name] == first[name]
    assert yaml.safe_load(Path("first", "config.yaml").read_text()).keys() > set(PARTS)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            "--network.help=PerAction",
            ["--network.width WIDTH", "--network.activation ACTIVATION", "elu | relu | tanh | silu | null"],
        ),
        ("--replay.help=Prioritized", ["--replay.beta BETA"]),
        ("--target.help=Periodic", ["--target.every EVERY"]),
    ],
)
def test_the_settings_of_a_class_are_listed(option, words, capsys):
    assert main(["train", option]) == 0
    printed = capsys.readouterr().out
    for word in words:
        assert word in printed


def test_help_names_every_part_and_its_kinds(capsys):
    assert main(["train", "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for option, part in PARTS.items():
        assert f"--{option}.help CLASS" in printed
        assert f"{part.meaning}: {part.choices}, or the import path" in printed
    order = "examples:", "every run:", "--seeds", "gradient descent only:", "--batch_size", "files and output:", "--out"
    assert sorted(order, key=printed.rindex) == [*order]
