"""The command line end to end in a temporary folder, bad input included."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from uppertail.cli import main
from uppertail.cli.train import parse_request
from uppertail.parts import class_named
from uppertail.yaml_files import read_yaml

SMALL = ["--seeds", "2", "--network.width", "8", "--replay_size", "99", "--batch_size", "16"]
TINY = ["--env.length", "4", "--episodes", "40", *SMALL]
LIGHT = ["--replay", "Uniform", "--target", "Online"]
"""Where neither matters: their programs are smaller than the defaults'."""


pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    parts = ["--env", "Chain", "--distribution", "Gaussian", "--policy", "UCB"]
    assert main(["train", *parts, *TINY, "--quiet", "--out", str(folder)]) == 0
    return folder


def test_a_run_leaves_its_files(trained):
    assert {entry.name for entry in trained.iterdir()} == {
        "config.yaml",
        "log.jsonl",
        "episodes.npz",
        "summary.json",
        "networks.safetensors",
        "curve.png",
        "checkpoints",
    }
    arrays = np.load(trained / "episodes.npz")
    assert set(arrays) == {"return", "length", "step"}
    assert arrays["return"].shape == (2, 40)
    np.testing.assert_array_equal(np.cumsum(arrays["length"], axis=1), arrays["step"])
    summary = json.loads((trained / "summary.json").read_text())
    assert summary["seeds"] == 2
    assert summary["episodes"] == [40, 40]
    assert summary["floor_episodes"] == 3
    assert summary["env"] == {
        "name": "Chain",
        "length": 4,
        "ordered": False,
        "encoding": "one_hot",
        "time_limit": None,
        "slip": 0.0,
        "reward_std": 0.0,
    }


@pytest.mark.slow
def test_config_yaml_runs_it_again_exactly(trained, tmp_path):
    assert main(["train", "--config", str(trained / "config.yaml"), "--quiet", "--out", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "episodes.npz").read_bytes() == (trained / "episodes.npz").read_bytes()
    assert (tmp_path / "again" / "config.yaml").read_text() == (trained / "config.yaml").read_text()


@pytest.mark.slow
def test_every_parts_settings_reach_it(tmp_path):
    arguments = [
        "train", *TINY, *LIGHT, "--env.encoding", "scalar", "--env.ordered", "true", "--distribution", "Categorical",
        "--distribution.bins", "9", "--distribution.low", "-0.5", "--distribution.high", "1.5",
        "--policy", "EpsilonGreedy", "--policy.epsilon", "0.5", "--quiet", "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    assert main(arguments) == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["env"]["encoding"], summary["env"]["ordered"]) == ("scalar", True)
    assert [summary["distribution"][key] for key in ("name", "bins", "low", "high")] == ["Categorical", 9, -0.5, 1.5]
    assert summary["policy"] == {"name": "EpsilonGreedy", "epsilon": 0.5}


@pytest.mark.slow
def test_a_users_own_distribution_works_by_import_path(tmp_path, monkeypatch):
    (tmp_path / "my_package.py").write_text(
        "import dataclasses\n"
        "from uppertail.distributions.gaussian import Gaussian\n"
        "@dataclasses.dataclass(frozen=True)\n"
        "class Wide(Gaussian):\n"
        "    factor: float = 2.0\n"
        "    def from_outputs(self, outputs):\n"
        "        z = super().from_outputs(outputs)\n"
        "        return z._replace(std=self.factor * z.std)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    arguments = [
        "train",
        *TINY,
        *LIGHT,
        "--distribution",
        "my_package.Wide",
        "--distribution.factor",
        "3",
        "--quiet",
        "--out",
        "w",
    ]
    assert main(arguments) == 0
    assert json.loads((tmp_path / "w" / "summary.json").read_text())["distribution"]["factor"] == 3.0


@pytest.mark.slow
def test_a_class_in_the_current_folder_is_found(tmp_path):
    """As the console script runs: its path holds no current folder."""
    (tmp_path / "beside.py").write_text("from uppertail.distributions import Gaussian\nclass Mine(Gaussian): pass\n")
    code = "import sys; sys.path = [p for p in sys.path if p]; from uppertail.cli import main; sys.exit(main())"
    arguments = ["train", "--distribution", "beside.Mine", *TINY, "--quiet", "--out", "run"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "distribution: beside.Mine" in (tmp_path / "run" / "config.yaml").read_text()


def test_a_run_without_out_finds_a_folder(tmp_path):
    for folder in ("Chain-Gaussian-UCB", "Chain-Gaussian-UCB-2"):
        assert main(["train", *TINY, "--quiet"]) == 0
        assert (tmp_path / "runs" / folder / "summary.json").exists()


def test_the_command_line_counts_before_a_file_wherever_it_stands(tmp_path):
    (tmp_path / "file.yaml").write_text("seeds: 2\nepisodes: 7\nlogger: [wandb]\n")
    config = yaml.safe_load(parse_request(["--seeds", "3", "--config", "file.yaml", "--logger", "mine.Log"]).config)
    assert (config["seeds"], config["episodes"], config["logger"]) == (3, 7, "mine.Log")


def test_config_yaml_has_every_setting():
    config = yaml.safe_load(parse_request(["--env.length", "7"]).config)
    assert (config["env.length"], config["env.slip"], config["discount"]) == (7, 0.0, None), "the plan has what is open"


BAD = {
    "unknown command": (["trian"], "Did you mean train?"),
    "a hyphen": (
        ["train", "--learning-rate", "1"],
        "There is no option --learning-rate. Did you mean --learning_rate?",
    ),
    **{f"{name} of no run": ([name], "Which run?") for name in ("evaluate", "inspect", "resume", "watch", "export")},
    "unknown distribution": (["train", "--distribution", "Gausian"], "Did you mean Gaussian"),
    "unknown policy": (["train", "--policy", "UCBB"], "Unknown policy 'UCBB'"),
    "unknown environment": (["train", "--env", "Chian"], "Did you mean Chain"),
    "unknown import path": (["train", "--distribution", "no_such_package.Laplace"], "no_such_package"),
    "a class of another contract": (
        ["train", "--distribution", "uppertail.Chain"],
        "is no subclass of ReturnDistribution",
    ),
    "unknown option": (["train", "--learning_rat", "1"], "Did you mean --learning_rate"),
    "unknown setting": (["train", "--env.size", "3"], "Chain has no setting 'size'"),
    "no number": (["train", "--env.length", "abc"], "env.length is abc"),
    "no integer": (["train", "--seeds", "2.5"], "seeds is 2.5"),
    "unknown choice": (["train", "--env.encoding", "binary"], "use one of one_hot, scalar or thermometer"),
    "missing value": (["train", "--seeds"], "--seeds needs a value: write --seeds VALUE"),
    "no file": (["train", "--config"], "--config needs a value: write --config VALUE"),
    "a value for a flag": (["train", "--overwrite=3"], "--overwrite takes no value: write --overwrite."),
    "a value too many": (["train", "--seeds", "3", "4"], "'4' belongs to no option"),
    "one value of two": (
        ["study", "a.yaml", "--compare", "a"],
        "--compare takes 2 values: write --compare VALUE",
    ),
    "an id alone": (["train", "CartPole-v1"], "use --env CartPole-v1."),
    "an environment alone": (["train", "Chain"], "use --env Chain."),
    "a name with one dash": (["train", "-env", "Chain"], "Did you mean --env?"),
    "a file in place of a module": (
        ["train", "--env", "./folder/my-own.py:Mine-v0"],
        "names a file: name its module, as seen from the current folder, and the environment that it registers, such "
        "as folder.my-own:Mine-v0.",
    ),
    "a class in a file": (
        ["train", "--env", "mine.py:Mine"],
        "such as mine:Mine-v0, with gymnasium.register('Mine-v0', entry_point='mine:Mine') in it if it registers none.",
    ),
    "an argument of a constructor": (
        ["train", "--env", "FrozenLake-v1", "--env.is_slippery", "false"],
        "go into --env.kwargs '{is_slippery: VALUE}'.",
    ),
    "a package's environment": (["train", "--env", "ALE/Pong-v5"], "name its module first, as in MODULE:ALE/Pong-v5."),
    "an id elsewhere": (["train", "--env_id", "CartPole-v1"], "Did you mean --env?"),
    "no earlier run": (["train", "--init", "nowhere"], "init is nowhere, which is no folder: give that of a run."),
    "another environment": (
        ["evaluate", "anywhere", "--env", "Chain"],
        "takes settings of the run's own environment, as --env.NAME VALUE, but no other environment.",
    ),
    "one dash": (["train", "-x"], "'-x' belongs to no option: `uppertail train --help` lists them."),
    "a value with one dash": (["train", "--seed", "-x"], "seed is -x: use a whole number"),
    "a function": (["train", "--env", "uppertail.cli.main"], "The class uppertail.cli.main given for --env cannot be"),
    "a mapping": (["train", "--env", "{name: Toy, length: 3}"], "env is {'name': 'Toy', 'length': 3}: use Chain, "),
    "length 0": (["train", "--env.length", "0"], "length is 0"),
    "seeds 0": (["train", "--seeds", "0"], "seeds is 0"),
    "negative learning rate": (["train", "--learning_rate", "-0.1"], "learning_rate is -0.1"),
    "discount above 1": (["train", "--discount", "1.01"], "discount is 1.01"),
    "one bin": (["train", "--distribution", "Categorical", "--distribution.bins", "1"], "bins is 1"),
    "low above high": (
        ["train", "--distribution", "Categorical", "--distribution.low", "2", "--distribution.high", "1"],
        "must be below high",
    ),
    "narrow support": (
        ["train", "--distribution", "Categorical", "--distribution.low", "0.1", "--distribution.high", "0.9"],
        "run from 0 to 1: use --distribution.low -0.2 and --distribution.high 1.2",
    ),
    "missing config": (["train", "--config", "nowhere.yaml"], "cannot be read"),
    "no number or null": (["train", "--steps", "abc"], "steps is abc: use a whole number, or leave it out"),
    "empty value": (["train", "--seeds="], "seeds is empty"),
    "no class": (["train", "--env", "null"], "env is null: use Chain, DeepSea"),
    "null for a length": (["train", "--env.length", "null"], "env.length is null"),
    "null for a map": (["train", "--env", "FrozenLake", "--env.map_name", "null"], "env.map_name is null"),
    "a small negative number": (["train", "--learning_rate", "-1e-3"], "learning_rate is -0.001: use a number above 0"),
    "settings of another class": (["train", "--distribution.bins", "9"], "It belongs to Categorical: name that"),
    "too many seeds": (["train", "--seeds", "99999999999"], "below 2^31"),
    "seeds beyond the last": (["train", "--seeds", "2", "--seed", "2147483647"], "use 2147483646 at most"),
}


def test_an_id_is_short_for_an_environment_of_gymnasium(capsys, refused):
    shown = list[str]()
    for asked in (["--env", "CartPole-v1"], ["--env", "Gym", "--env.id", "CartPole-v1"]):
        assert main(["train", *asked, "--dry-run"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] and "env.id" in shown[0]
    twice = refused(["train", "--env", "CartPole-v1", "--env.id", "Acrobot-v1", "--dry-run"])
    assert "--env CartPole-v1 and --env.id name two environments" in twice


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence_and_leaves_nothing(case, tmp_path, refused):
    arguments, sentence = BAD[case]
    has_out = arguments[0] == "train" and arguments[-1] != "--seeds"
    assert sentence in refused([*arguments, *(["--out", "out"] if has_out else [])])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("seeds: [1", "not valid YAML"),
        ("sedes: 3", "Did you mean seeds"),
        ("7", "holds no options"),
        ("seeds: null", "seeds is null"),
        ("env: null", "env is null"),
        ("env: Chain\nenv.length: null", "env.length is null"),
        ('out: "a\\0b"', "cannot be the name of a folder"),
    ],
)
def test_a_bad_config_file_gets_a_sentence(content, sentence, tmp_path, refused):
    (tmp_path / "bad.yaml").write_text(content)
    out = [] if content.startswith("out") else ["--out", "out"]
    assert sentence in refused(["train", "--config", "bad.yaml", *out])
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_existing_output_is_refused_unless_overwritten(trained, tmp_path, refused):
    before = (trained / "summary.json").read_bytes()
    assert "--overwrite" in refused(["train", *TINY, "--out", str(trained)])
    assert (trained / "summary.json").read_bytes() == before
    shutil.copytree(trained, tmp_path / "o")
    (tmp_path / "o" / "summary.json").write_text("{}")
    assert main(["train", *TINY, "--quiet", "--overwrite", "--out", str(tmp_path / "o")]) == 0
    assert json.loads((tmp_path / "o" / "summary.json").read_text())["seeds"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["summary.json", "curve.png"])
def test_a_disk_that_fills_up_as_results_are_written_gets_a_sentence(name, monkeypatch, capsys):
    """What was written before stays."""

    def replace(path, target):
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return Path(path).rename(target)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(os, "replace", replace)
    assert main(["train", *TINY, "--quiet", "--out", "full"]) == 2
    assert capsys.readouterr().err == (
        "uppertail: The output full cannot be written (No space left on device): choose another --out.\n"
    )
    order = [
        "config.yaml",
        "log.jsonl",
        "checkpoints",
        "networks.safetensors",
        "episodes.npz",
        "summary.json",
        "curve.png",
    ]
    left = {path.name for path in Path("full").iterdir()} - {".lock"}
    assert left == set(order[: order.index(name)])


@pytest.mark.slow
def test_a_diverging_run_says_which_seed_and_keeps_what_was_written(tmp_path, refused):
    endless = ["--quiet", "--steps", "4096", "--episodes", "99999", "--learning_rate", "1e30"]
    said = refused(["train", *TINY, *LIGHT, *endless, "--out", "d"])
    assert "became NaN or infinite by environment step" in said
    assert said.endswith("What was learned until then is in d.\n")
    assert (tmp_path / "d" / "episodes.npz").exists()
    assert (tmp_path / "d" / "summary.json").exists()


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["resume", "-h"], *([name, "--help"] for name in ("train", "exact"))]
)
def test_help_does_not_import_jax(arguments):
    code = "import sys; from uppertail.cli import main; main(sys.argv[1:]); assert 'jax' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage: uppertail" in done.stdout


@pytest.mark.slow
def test_a_quiet_run_prints_nothing(tmp_path, capfd):
    """Nor does one that may overwrite a folder that is not there."""
    solved = ["--env.length", "4", "--seeds", "2", "--episodes", "40"]
    assert main(["train", "--quiet", "--overwrite", "--out", "new", *solved]) == 0
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_an_id_alone_is_of_gymnasium() -> None:
    assert yaml.safe_load(parse_request(["--env.id", "CartPole-v1"]).config)["env"] == "Gym"


def test_a_setting_that_a_file_names_twice_is_refused(tmp_path, capsys):
    """YAML's own loader keeps the last."""
    (tmp_path / "twice.yaml").write_text("env: Chain\nsteps: 100\nenv.length: 5\nsteps: 300\n")
    assert main(["train", "--config", "twice.yaml"]) == 2
    assert "The config file 'twice.yaml' names steps twice (line 4): keep one." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("", "The output out is a file: choose another --out."),
        ("policy.npz", "it is not overwritten: move policy.npz elsewhere, or choose another --out."),
    ],
)
def test_what_is_in_the_way_of_a_run_is_named(file, words, tmp_path, capsys):
    place = tmp_path / "out" / file if file else tmp_path / "out"
    place.parent.mkdir(exist_ok=True)
    place.write_text("mine")
    assert main(["train", *TINY, "--out", "out", "--overwrite"]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert place.read_text() == "mine"


def test_what_is_merged_in_yaml_may_be_replaced(tmp_path):
    """A key of a merged mapping is no key that is named twice; nor are 1 and '1' the same."""
    text = "b: &b {x: 1}\nouter:\n  a: &a {<<: *b, x: 2}\nc: {<<: *a}\nd: {1: x, '1': y}\n"
    (tmp_path / "merged.yaml").write_text(text)
    expected = {"b": {"x": 1}, "outer": {"a": {"x": 2}}, "c": {"x": 2}, "d": {1: "x", "1": "y"}}
    assert read_yaml(tmp_path / "merged.yaml", "The file") == expected


def test_an_import_that_is_interrupted_is_no_missing_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "long_import.py").write_text("raise KeyboardInterrupt")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        class_named("policy", "long_import.Mine")
