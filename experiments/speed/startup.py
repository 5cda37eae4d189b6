"""Seconds from the shell to the first environment step, with no compiled program on disk and with all of them.

Usage: python -m experiments.speed.startup [--out results/startup.json] [--repetitions 5]

Ten seeds on the Chain of length 100, by the defaults. The first step is where the first line of log.jsonl is written,
less the time that the 1,024 environment steps of each seed before it took. Takes about two minutes.
"""

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from experiments.common import options, write

COMMAND = ["uppertail", "train", "--env=Chain", "--env.length=100", "--seeds=10", "--steps=1024", "--episodes=100000"]


def started(cache: Path) -> dict[str, Any]:
    """One run, with the programs in a folder of our own."""
    with tempfile.TemporaryDirectory() as folder:
        log, began = Path(folder, "run", "log.jsonl"), time.perf_counter()
        run = subprocess.Popen(
            [*COMMAND, f"--out={log.parent}", "--quiet"], env={**os.environ, "XDG_CACHE_HOME": str(cache)}
        )
        while run.poll() is None and not (log.exists() and log.stat().st_size):
            time.sleep(0.01)
        first = time.perf_counter() - began
        if run.wait() != 0:
            raise SystemExit("The run failed.")
        whole = time.perf_counter() - began
        summary = json.loads((log.parent / "summary.json").read_text(encoding="utf-8"))
        return {
            "to_first_step": round(first - summary["env_steps"] / summary["steps_per_second"], 2),
            "to_the_end": round(whole, 2),
            "compile_seconds": round(summary["compile_seconds"], 2),
            "hardware": summary["hardware"],
        }


def measure(repetitions: int) -> dict[str, Any]:
    """Cold and warm, in turns."""
    runs: dict[str, list[dict[str, Any]]] = {"cold": [], "warm": []}
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as cache:
            for state, each in runs.items():
                each.append(started(Path(cache)))
                print(state, each[-1]["to_first_step"], flush=True)
    hardware = runs["warm"][-1]["hardware"]
    names = ("to_first_step", "to_the_end", "compile_seconds")
    return {
        "command": " ".join(COMMAND),
        "median_seconds": {
            state: {name: statistics.median(run[name] for run in each) for name in names}
            for state, each in runs.items()
        },
        "all": {state: [{name: run[name] for name in names} for run in each] for state, each in runs.items()},
        "hardware": hardware,
    }


if __name__ == "__main__":
    given = options(__doc__, "results/startup.json", repetitions=5)
    write(given.out, measure(given.repetitions))
