"""Which code a run was made by: commit and tree of a checkout, nothing where there is none, and no failure."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from uppertail.training import birth as module
from uppertail.training.birth import birth
from uppertail.training.process import hardware

Git = Callable[..., str]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package's folder, whose checkout is not yet one."""
    folder = tmp_path / "checkout" / "src" / "package"
    folder.mkdir(parents=True)
    (folder / "code.py").write_text("one = 1\n")
    monkeypatch.setattr(module, "PACKAGE", folder)
    monkeypatch.setattr(module, "birth", birth.__wrapped__)
    return folder


@pytest.fixture
def git(package: Path) -> Git:
    """Runs Git in the checkout, which is committed."""
    own = {"HOME": str(package), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    own |= {f"GIT_{who}_{what}": "a@b.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def run(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], check=True, capture_output=True, text=True, cwd=package.parents[1], env=own
        )
        return done.stdout.strip()

    run("init", "--quiet")
    run("add", ".")
    run("commit", "--quiet", "-m", "first")
    return run


def test_a_checkout_has_commit_and_tree_of_the_package_alone(package: Path, git: Git) -> None:
    first = module.birth()
    assert first == {"commit": git("rev-parse", "HEAD"), "tree": git("rev-parse", "HEAD:src/package"), "dirty": False}
    (package.parents[1] / "README.md").write_text("a page")
    assert module.birth() == first
    git("add", ".")
    git("commit", "--quiet", "-m", "a page")
    second = module.birth()
    assert second["tree"] == first["tree"] and second["commit"] != first["commit"] and not second["dirty"]


@pytest.mark.parametrize("name", ["code.py", "new.py"])
def test_a_changed_or_new_file_of_the_package_makes_it_dirty(name: str, package: Path, git: Git) -> None:
    (package / name).write_text("one = 2\n")
    assert module.birth()["dirty"] is True


def test_a_hook_s_variables_name_no_other_repository(package: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(package / "nowhere"))
    assert module.birth()["commit"] == git("rev-parse", "HEAD")


def test_outside_a_checkout_there_is_none(package: Path) -> None:
    assert module.birth() == {}


def test_a_wheel_in_another_projects_checkout_has_not_its_commit(
    package: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = package.parents[1] / ".venv" / "package"
    installed.mkdir(parents=True)
    monkeypatch.setattr(module, "PACKAGE", installed)
    assert module.birth() == {}


@pytest.mark.parametrize("script", [None, "echo 'fatal: detected dubious ownership' >&2; exit 128", "echo one"])
def test_git_that_is_missing_or_refuses_is_no_failure(
    script: str | None, package: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    if script is not None:
        (tmp_path / "bin" / "git").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / "git").chmod(0o755)
    assert module.birth() == {}


def test_it_is_asked_once_and_stands_beside_the_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = birth()
    monkeypatch.setattr(module, "_git", lambda *words: pytest.fail("asked again"))
    assert expected.items() <= hardware().items()
    assert "uppertail" in hardware()
