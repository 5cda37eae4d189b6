"""Whose code runs: reading commands run none, others want --trust for what is not the user's own."""

import hashlib
import hmac
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import reported
import uppertail as ut
from uppertail.cli import imports, main, trust
from uppertail.errors import InputError
from uppertail.records import made_here, write_config
from uppertail.records.folder import SEAL

EVIL = "from pathlib import Path\nimport uppertail\nPath('ran').touch()\nclass Chain(uppertail.Chain): pass\n"


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that somebody else made, whose environment is a class of a file in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = shutil.copytree(reported.run(), tmp_path / "stranger")
    (folder / "evil.py").write_text(EVIL)
    options = yaml.safe_load((folder / "config.yaml").read_text())
    options["env"] = "stranger.evil.Chain"
    (folder / "config.yaml").write_text(yaml.safe_dump(options))
    return folder


@pytest.mark.slow
def test_commands_that_read_run_no_code_of_the_folder(stranger: Path, refused: Any) -> None:
    assert main(["report", "stranger", "--quiet"]) == 0
    assert main(["inspect", "stranger"]) == 0
    assert str(Path.cwd()) not in sys.path
    (stranger / "distributions.npz").unlink()
    assert "(stranger.evil.Chain), and this command runs none" in refused(["inspect", "stranger"])
    assert not Path("ran").exists()


def test_commands_that_must_run_it_want_to_be_told(stranger: Path, refused: Any) -> None:
    for command in ("evaluate", "watch", "resume"):
        error = refused([command, "stranger", *(["--steps", "9"] if command == "resume" else [])])
        assert "that is neither UpperTail's nor Gymnasium's, or that writes files (stranger.evil.Chain)" in error
        assert "add --trust" in error
    with pytest.raises(InputError, match="trust=True"):
        ut.load(stranger)
    assert not Path("ran").exists()
    assert main(["evaluate", "stranger", "--episodes", "1", "--trust"]) == 0
    assert Path("ran").exists()


def test_ones_own_run_is_known_by_its_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    config = tmp_path / "config.yaml"
    write_config(config, "env: mine.Chain\n")
    assert made_here(config)
    trust.require_trust(tmp_path, False)
    assert yaml.safe_load(config.read_text()) == {"env": "mine.Chain"}
    assert (tmp_path / "state" / "uppertail" / "key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="this command runs none"):
        trust.require_trust(tmp_path, None)
    sealed = config.read_text()
    config.write_text(sealed.replace("mine", "yours"))
    assert not made_here(config)
    config.write_text(sealed)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert not made_here(config)
    with pytest.raises(InputError, match=r"\(mine.Chain\), and you did not make it on this machine"):
        trust.require_trust(tmp_path, False)
    monkeypatch.setenv("XDG_STATE_HOME", str(config))  # no folder: no key, no seal
    write_config(config, "env: mine.Chain\n")
    assert "#" not in config.read_text()
    assert not made_here(config)


OURS = [
    {"env": "uppertail.Chain", "env.length": 5, "logger": ["wandb", "uppertail.loggers.JSONL"], "policy": "UCB"},
    {"env": "uppertail.environments.chain.Chain", "policy": "uppertail.policies.base.Greedy", "network": None},
    {"env": "Gym", "env.id": "CartPole-v1", "env.wrappers": ["gymnasium.wrappers.X", "ClipReward"]},
    {"env": "CartPole-v1"},
    {"env": "Gym", "env.id": "gymnasium.envs.toy_text:Taxi-v3"},
    {"env": "Gym", "env.wrappers": [{"class_path": "TimeLimit", "init_args": {"max_episode_steps": 9}}]},
    {"env": "Gym", "env.wrappers": "[gymnasium.wrappers.stateful_reward.NormalizeReward]"},
    {"env": "Bsuite", "env.id": "deep_sea/0", "env.results_dir": None},
]
"""Options that run no code but ours and Gymnasium's."""


@pytest.mark.parametrize("options", OURS, ids=str)
def test_options_of_ours_are_known(options: dict[str, Any]) -> None:
    assert not [*imports.foreign_names(options)]


PARTS = [
    "a.B", '"a\\u002eB"', "x-uppertail.Evil", "uppertail-x.Evil", "uppertailx.Evil", "x.uppertail.Evil",
    "uppertail/x.Evil", "uppertail.x-y.Evil", "uppertail. evil.Evil", " uppertail.Evil", ".uppertail.Evil",
    "uppertail..E", "uppertail.Evil.", "uppertail.__main__.Evil", "gymnasium.\u00e9:a.B", "\u00e9vil.E", "1.E", "_.E",
    "gymnasium\n.E",
]  # fmt: skip
IDS = [
    "a:B-v0", "x-gymnasium:E-v0", "1:E-v0", "\u00e9:E-v0", "gymnasium.x-y:E-v0", "gymnasium:a:E-v0", "a.b:E-v0",
    ":E-v0",     "gymnasium.__main__:E-v0", " gymnasium.x:E-v0", "gymnasium. x:E-v0",
]  # fmt: skip
WRAPPERS = [
    "a.b.C", "a.C", "x-gymnasium.wrappers.C", "gymnasium.wrappers.x-y.C", "gymnasium.make", "uppertail.cli.main",
    "gymnasium.utils.play.play", "RecordVideo", "gymnasium.wrappers.RecordVideo",
    "gymnasium.wrappers.vector.RecordVideo",
]  # fmt: skip
FOREIGN = [
    *({part: name} for name in PARTS for part in ("env", "logger")),
    *({"env": "Gym", "env.id": name} for name in IDS),
    *({"env": name} for name in (*IDS, '"a\\u003aB-v0"')),
    *({"env": "Gymnax", "env.id": name} for name in ("uppertail.cli:main", '"a:B"')),
    *({"env": "Gym", "env.wrappers": [form]} for name in WRAPPERS for form in (name, {"class_path": name})),
    {"env": "Gym", "env.wrappers": "[a.B]"},
    {"logger": '["a.B"]'},
    {"logger": ["wandb", "a.B"]},
    {"config": "other"},
    {"env": "Bsuite", "env.id": "deep_sea/0", "env.results_dir": "/"},
    *({part: "a.B"} for part in ("distribution", "policy", "learner", "network", "replay", "target")),
]
"""Ways to run a stranger's code, or to write where a stranger likes."""


@pytest.mark.parametrize("options", FOREIGN, ids=str)
def test_what_a_stranger_names_is_found_however_it_is_written(options: dict[str, Any]) -> None:
    assert [*imports.foreign_names(options)]


@pytest.mark.parametrize("name", ["config.yaml", "config-next.yaml"])
def test_each_file_of_options_is_looked_at_and_sealed(name: str, stranger: Path, refused: Any) -> None:
    shutil.copy(stranger / "config.yaml", stranger / "evil.yaml")
    write_config(stranger / "config.yaml", "env: Chain\n")
    shutil.move(stranger / "evil.yaml", stranger / name)
    for command in ("evaluate", "resume"):
        assert "stranger.evil.Chain" in refused([command, "stranger", *(["--steps", "9"] * (command == "resume"))])
    write_config(stranger / name, (stranger / name).read_text())
    trust.require_trust(stranger, False)


def test_an_empty_key_is_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    write_config(tmp_path / "config.yaml", "env: mine.Chain\n")
    (tmp_path / "uppertail" / "key").write_bytes(b"")
    forged = hmac.new(b"", b"env: mine.Chain\n", hashlib.sha256).hexdigest()
    (tmp_path / "config.yaml").write_text(f"env: mine.Chain\n{SEAL}{forged}\n")
    assert not made_here(tmp_path / "config.yaml")
    assert len((tmp_path / "uppertail" / "key").read_bytes()) == 32


def test_python_looks_here_only_for_what_is_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for options in (
        {"env": "Chain"},
        {"policy": "ucb"},
        {"env": "numpy.random.X"},
        {"env": "x-y.Z"},
        {"config": "run"},
        *OURS,
    ):
        imports.find_here(options)
        assert str(tmp_path) not in sys.path
    imports.find_here({"env": "only_here.Chain"})
    assert sys.path[-1] == str(tmp_path)
