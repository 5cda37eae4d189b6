"""How many threads XLA gets, and in which of them it works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from uppertail.training import process

POOL = """
from pathlib import Path
from uppertail.cli import main
sizes = ["--steps=16", "--network.width=4", "--replay_size=99", "--batch_size=8"]
sizes += ["--replay=Uniform", "--target=Online"]
main(["train", "--env=Toy", "--seeds={seeds}", *sizes, "--quiet", "--out={out}"])
print(sum("XLAEigen" in file.read_text() for file in Path("/proc/self/task").glob("*/comm")))
"""

INLINE = """
import jax, jax.numpy as jnp
from uppertail import Gym, Settings, Toy
from uppertail.training.method import Method
from uppertail.training.run import Run
Run({environment}, Method.of(), Settings(seeds=1, replay_size=99))
start = jnp.eye(300)
long = jax.jit(lambda: jax.lax.fori_loop(0, 200, lambda _, product: product @ start, start)).lower().compile()
print(long().is_ready())
"""


@pytest.mark.parametrize(("seeds", "expected"), [(1, 1), (10_000, process.cores())])
def test_xla_gets_no_more_threads_than_there_are_seeds_or_cores(monkeypatch, seeds, expected):
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    process.limit_threads(seeds)
    assert os.environ["PJRT_NPROC"] == str(expected)


def test_what_the_user_asked_of_xla_stays(monkeypatch):
    monkeypatch.setenv("PJRT_NPROC", "7")
    process.limit_threads(1)
    assert os.environ["PJRT_NPROC"] == "7"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted as Linux shows them")
@pytest.mark.parametrize(("seeds", "expected"), [(1, 1), (2, min(2, process.cores()))])
def test_a_run_on_the_command_line_says_so_before_jax_begins(monkeypatch, tmp_path, seeds, expected):
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    script = POOL.format(seeds=seeds, out=tmp_path / "run")
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert int(done.stdout) == expected


@pytest.mark.parametrize(("environment", "inline"), [("Gym('CartPole-v1')", True), ("Toy()", False)])
def test_programs_run_in_the_callers_thread_where_python_steps(environment, inline):
    """A long program is done when its call returns, in a process that had not started JAX before the run was built."""
    script = INLINE.format(environment=environment)
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str(inline)
