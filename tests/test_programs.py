"""Compiled programs on disk: kept for the next run, never in its way."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import matplotlib
import numpy as np
import pytest

import uppertail as ut
from uppertail import cli
from uppertail.training.method import Method
from uppertail.training.programs import Groups, Programs
from uppertail.training.run import Run

NAMES = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that it is put back, whoever sets it
        monkeypatch.delenv(name)


def kept(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*-cache")}


def run(cache: Path, out: Path) -> bytes:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "MPLCONFIGDIR": matplotlib.get_cachedir()}
    sizes = ["--seeds=1", "--episodes=20", "--network.width=4", "--replay_size=99", "--batch_size=8"]
    sizes += ["--replay=Uniform", "--target=Online"]
    words = ["train", "--env=Toy", *sizes, "--quiet", f"--out={out}"]
    done = subprocess.run(
        [sys.executable, "-m", "uppertail", *words], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return (out / "episodes.npz").read_bytes()


@pytest.mark.slow
def test_the_next_run_compiles_nothing_and_damaged_programs_are_compiled_again(tmp_path):
    cache = tmp_path / "cache"
    first = run(cache, tmp_path / "first")
    files = kept(cache)
    assert any("jit_program" in name for name in files)
    assert run(cache, tmp_path / "again") == first
    assert kept(cache) == files
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder")
    assert run(in_the_way, tmp_path / "without") == first
    for name, content in files.items():
        Path(name).write_bytes(content[: len(content) // 2])
    assert run(cache, tmp_path / "damaged") == first
    assert kept(cache).keys() == files.keys()


def test_seeds_are_split_and_joined_without_a_program():
    numbers, compiled = np.arange(60.0, dtype=np.float32).reshape(5, 3, 4), list[str]()
    tree, groups = {"numbers": jax.device_put(numbers), "flags": jax.device_put(numbers[:, 0, 0] > 7)}, Groups(5)

    def listen(event: str, duration_secs: float, **_: object) -> None:
        compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        parts = groups.split(tree)
        joined = groups.join(parts)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert [part["numbers"].shape for part in parts] == [(1, 3, 4)] * 5
    np.testing.assert_array_equal(joined["numbers"], numbers)
    np.testing.assert_array_equal(joined["flags"], tree["flags"])
    assert not [event for event in compiled if "compile" in event]


def test_the_oldest_programs_go_first(tmp_path):
    for age, name in enumerate(("new", "middle", "old")):
        (file := tmp_path / f"{name}-cache").write_bytes(bytes(1000))
        os.utime(file, (1e9 - age, 1e9 - age))
    cli.tidy(tmp_path, 2500)
    assert {file.name for file in tmp_path.glob("*-cache")} == {"new-cache", "middle-cache"}


def test_each_kind_of_processor_has_a_folder_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folders = set()
    for processor in ("one", "another"):
        monkeypatch.delenv(NAMES[0], raising=False)
        monkeypatch.setattr(cli, "_processor", lambda name=processor: name)
        cli.keep_programs()
        folders.add(os.environ[NAMES[0]])
    assert len(folders) == 2


def test_what_the_user_asked_of_jax_stays(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(NAMES[0], "elsewhere")
    cli.keep_programs()
    assert os.environ[NAMES[0]] == "elsewhere"


@pytest.mark.parametrize(
    ("given", "used"), [("/elsewhere", "/elsewhere"), ("relative", "HOME/.cache"), ("", "HOME/.cache")]
)
def test_the_folder_is_where_the_user_keeps_such_things_and_is_not_made_in_advance(monkeypatch, tmp_path, given, used):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    cli.keep_programs()
    assert os.environ[NAMES[0]].startswith(used.replace("HOME", str(tmp_path)) + "/uppertail/programs/")
    assert not list(tmp_path.iterdir())


def test_what_threads_compile_at_the_same_time_counts_once() -> None:
    """Two seeds compiled 10 seconds each in the same 10, so the loop seemed to have taken no time at all."""
    programs, both, began = Programs(), threading.Barrier(2), time.perf_counter()

    def program(parts: None, factor: int, numbers: jax.Array) -> jax.Array:
        both.wait(60)  # while it is traced
        return factor * jax.numpy.sort(numbers)

    with ThreadPoolExecutor(2) as pool:
        tuple(pool.map(lambda factor: programs.compiled(program, None, np.ones((1, 9)), static=(factor,)), (2, 3)))
    assert 0 < programs.compile <= time.perf_counter() - began


def products(parts: None, numbers: jax.Array) -> jax.Array:
    return numbers @ numbers.T


def test_products_keep_all_their_bits_whatever_jax_lets_an_accelerator_do():
    with jax.default_matmul_precision("default"):
        program: Any = Programs().compiled(products, None, np.ones((1, 9, 9), np.float32))
    assert "operand_precision={highest,highest}" in program.func.as_text()


@pytest.mark.parametrize(("learner", "count"), [("LeastSquares", 1), ("GradientDescent", 0)])
def test_least_squares_on_an_accelerator_is_told_of_the_cpu(learner, count, monkeypatch):
    monkeypatch.setattr("uppertail.training.notes.on_accelerator", lambda: True)
    run = Run(ut.Toy(), Method.of(learner=learner), ut.Settings(seeds=1, episodes=1))
    run.close()
    assert sum("JAX_PLATFORMS=cpu" in note for note in run.notes) == count
