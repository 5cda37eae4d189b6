"""Whose code runs: reading commands run none, others want --trust for what is not the user's own."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import reported
import uppertail as ut
from uppertail.cli import main, trained
from uppertail.errors import InputError
from uppertail.records import made_here, write_config

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
    (stranger / "distributions.npz").unlink()
    assert "(stranger.evil.Chain), and this command runs none" in refused(["inspect", "stranger"])
    assert not Path("ran").exists()


def test_commands_that_must_run_it_want_to_be_told(stranger: Path, refused: Any) -> None:
    for command in ("evaluate", "watch", "resume"):
        error = refused([command, "stranger", *(["--steps", "9"] if command == "resume" else [])])
        assert "names code that is not UpperTail's or Gymnasium's (stranger.evil.Chain)" in error
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
    assert made_here(tmp_path)
    trained.require_trust(tmp_path, False)
    assert yaml.safe_load(config.read_text()) == {"env": "mine.Chain"}
    assert (tmp_path / "state" / "uppertail" / "key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="this command runs none"):
        trained.require_trust(tmp_path, None)
    sealed = config.read_text()
    config.write_text(sealed.replace("mine", "yours"))
    assert not made_here(tmp_path)
    config.write_text(sealed)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert not made_here(tmp_path)
    with pytest.raises(InputError, match=r"\(mine.Chain\), and you did not make it on this machine"):
        trained.require_trust(tmp_path, False)
    monkeypatch.setenv("XDG_STATE_HOME", str(config))  # no folder: no key, no seal
    write_config(config, "env: mine.Chain\n")
    assert "#" not in config.read_text()
    assert not made_here(tmp_path)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"env": "uppertail.Chain", "env.length": 5, "logger": ["wandb"], "policy": "UCB"}, []),
        ({"env": "Gym", "env.id": "CartPole-v1", "env.wrappers": ["gymnasium.wrappers.X"]}, []),
        ({"env": "a.B"}, ["a.B"]),
        ({"env": '"a\\u002eB"'}, ["a.B"]),
        ({"config": "other"}, ["config"]),
        ({"logger": ["a.B"]}, ["a.B"]),
        ({"env": "Gym", "env.id": "a:B-v0"}, ["a:B-v0"]),
        ({"env": "Gym", "env.wrappers": [{"class_path": "a.b.C"}]}, ["a.b.C"]),
    ],
)
def test_what_options_name_is_found_however_it_is_written(options: dict[str, Any], named: list[str]) -> None:
    assert json.loads(json.dumps(options)) == options
    assert sorted(set(trained.foreign_names(options))) == named
