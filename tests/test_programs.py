"""Compiled programs on disk: kept for the next run, never in its way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from uppertail.cli import programs

NAMES = ("JAX_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_MAX_SIZE", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that it is put back, whoever sets it
        monkeypatch.delenv(name)


def kept(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*-cache")}


def run(cache: Path, out: Path) -> bytes:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "JAX_ENABLE_COMPILATION_CACHE": "true"}
    words = ["train", "--env=Toy", "--seeds=1", "--episodes=20", "--width=8", "--quiet", f"--out={out}"]
    done = subprocess.run(
        [sys.executable, "-m", "uppertail", *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return (out / "episodes.npz").read_bytes()


def test_the_next_run_compiles_nothing_and_damaged_programs_are_compiled_again(tmp_path):
    cache = tmp_path / "cache"
    first = run(cache, tmp_path / "first")
    files = kept(cache)
    assert any("jit__chunk" in name for name in files)
    assert run(cache, tmp_path / "again") == first
    assert kept(cache) == files
    for name, content in files.items():
        Path(name).write_bytes(content[: len(content) // 2])
    assert run(cache, tmp_path / "damaged") == first


def test_each_kind_of_processor_has_a_folder_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folders = set()
    for processor in ("one", "another"):
        monkeypatch.delenv(NAMES[0], raising=False)
        monkeypatch.setattr(programs, "_processor", lambda name=processor: name)
        programs.keep()
        folders.add(os.environ[NAMES[0]])
    assert len(folders) == 2


def test_what_the_user_asked_of_jax_stays(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(NAMES[0], "elsewhere")
    programs.keep()
    assert os.environ[NAMES[0]] == "elsewhere"


def test_without_a_folder_that_can_be_written_nothing_is_kept(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    programs.keep()
    assert NAMES[0] not in os.environ
