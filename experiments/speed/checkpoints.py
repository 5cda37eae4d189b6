"""Size of a checkpoint, and seconds to make it and to go back to it.

Usage: python -m experiments.speed.checkpoints [--out results/checkpoints.json]

The Chain of length 100, 10 seeds, a replay buffer of 50,000, width 256, two hidden layers. Takes half a minute.
"""

import dataclasses
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.common import options, write
from uppertail import UCB, Chain, Checkpoints, Gaussian, PerAction, Settings
from uppertail.training import checkpoint
from uppertail.training.checkpoints import Saver
from uppertail.training.method import Method
from uppertail.training.process import hardware
from uppertail.training.run import Run

REPETITIONS = 7
SETTINGS = Settings(seeds=10, replay_size=50_000)


def seconds(action: Callable[[], object]) -> list[float]:
    """How long it takes, several times."""
    times: list[float] = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        action()
        times.append(round(time.perf_counter() - began, 4))
    return times


def measure(folder: Path) -> dict[str, Any]:
    """Makes the checkpoint of a run before its first step, whose arrays are as large as any later ones."""
    run = Run(Chain(length=100), Method(Gaussian(), UCB(), network=PerAction(256, 2)), SETTINGS)
    state = run.driver.start()
    saver = Saver(Checkpoints(folder), run)
    made = seconds(lambda: saver.save(state))
    path = saver.checkpoints.files()[0]
    restored = seconds(saver.restore)

    def raw() -> None:
        """The disk's part: the same bytes, written and synchronized."""
        with (folder / "raw").open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    content = path.read_bytes()
    parts: dict[str, int] = {}
    for name, array in checkpoint.to_named(run.driver.gather(state)).items():
        part = name.partition("/")[0]
        parts[part] = parts.get(part, 0) + array.nbytes
    disk = seconds(raw)
    return {
        "setting": {"env": "Chain, length 100", **dataclasses.asdict(SETTINGS)},
        "bytes": len(content),
        "bytes_of_parts": parts,
        "median_seconds": {
            "made": statistics.median(made),
            "restored": statistics.median(restored),
            "same_bytes_written_and_synchronized": statistics.median(disk),
        },
        "all": {"made": made, "restored": restored, "same_bytes_written_and_synchronized": disk},
        "hardware": hardware(),
    }


if __name__ == "__main__":
    out = options(__doc__, "results/checkpoints.json").out
    with tempfile.TemporaryDirectory() as temporary:
        results = measure(Path(temporary))
    write(out, results)
    print({name: results[name] for name in ("bytes", "bytes_of_parts", "median_seconds")})
