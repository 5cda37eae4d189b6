"""What a shell completes, and how the program is called."""

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import uppertail
from uppertail.cli import COMMANDS, main
from uppertail.cli.completion import SHELLS, tree

ROOT = Path(__file__).parents[1]


def test_every_command_and_its_options_are_completed(capsys: pytest.CaptureFixture[str]) -> None:
    whole = tree()
    commands = next(action.choices for action in whole._actions if action.dest == "==SUPPRESS==")
    assert commands is not None and set(commands) == set(COMMANDS)
    of_train = {option for action in commands["train"]._actions for option in action.option_strings}  # pyright: ignore
    assert {"--env", "--env.length", "--distribution.std_bias", "--seeds", "--env.help", "--out"} <= of_train
    for shell in SHELLS:
        assert main(["completion", shell]) == 0
        assert "reproduce" in capsys.readouterr().out


@pytest.mark.slow
def test_a_shell_completes_what_it_was_given(tmp_path: Path) -> None:
    script = subprocess.run(
        [sys.executable, "-m", "uppertail", "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "script").write_text(script)
    asked = f"source {tmp_path}/script; COMP_WORDS=(uppertail train --env.le); COMP_CWORD=2; "
    asked += "_shtab_uppertail uppertail --env.le train; echo ${COMPREPLY[@]}"
    shown = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["--env.length", "--env.length_scale"]


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 2
    assert "shell is 'fish': use one of bash, zsh, tcsh." in capsys.readouterr().err


def test_the_version_is_one_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    version = importlib.metadata.version("uppertail")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"uppertail {version}\n"
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{version}] - " in (ROOT / "CHANGELOG.md").read_text()


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    names = [name for name in uppertail.__all__ if name != "loggers"]
    assert [name for name in names if f":: uppertail.{name}\n" not in text] == []


def test_every_extra_but_the_projects_own_is_in_all() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    own = {"all", "browser", "dev", "docs", "test"}
    assert extras["all"] == [f"uppertail[{','.join(sorted(set(extras) - own))}]"]
