"""Runs that are killed, and whether the run that goes on is the one that was not."""

import itertools
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np

from uppertail.records import arrays_of
from uppertail.training.results import TrainingResult

TIMES = ("wall_seconds", "compile_seconds", "compilations", "steps_per_second")
TINY = ["--env.length", "4", "--seeds", "2", "--network.width", "8", "--replay_size", "999"]
TINY += ["--batch_size", "16"]
SHORT = [*TINY, "--episodes", "1000000", "--steps", "2048", "--checkpoint_every", "1024"]
RESULTS = ("episodes.npz", "summary.json", "networks.safetensors", "curve.png")


class Killed(Exception):
    """In place of a signal."""


def dies_at_chunk(number: int) -> Any:
    """A callback that kills the run when it is called so many times."""
    calls = itertools.count(1)

    def call(progress: Any) -> None:
        if next(calls) == number:
            raise Killed

    return call


def complain(line: Any) -> None:
    """A callback that must not be called."""
    raise AssertionError(line)


def assert_same(result: TrainingResult, expected: TrainingResult) -> None:
    """Equal are the record without its times, the episodes and the networks."""
    summary, other = ({k: v for k, v in each.record.summary().items() if k not in TIMES} for each in (result, expected))
    assert summary == other
    arrays = (arrays_of(each.record.episodes) for each in (result, expected))
    jax.tree.map(np.testing.assert_array_equal, *arrays)
    jax.tree.map(np.testing.assert_array_equal, result.networks, expected.networks)


def killed_run(finished: Path, parent: Path) -> Path:
    """A copy of a run of `SHORT`, as if it had been killed before its end."""
    folder = shutil.copytree(finished, parent / "run")
    for name in (*RESULTS, "checkpoints/step-000002048.safetensors"):
        (folder / name).unlink()
    return folder
