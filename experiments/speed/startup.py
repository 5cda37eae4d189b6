"""Seconds from the shell to the first environment step, and until all of ten seeds have solved the Chain of length 100.

Usage: python -m experiments.speed.startup [--out results] [--repetitions 5]

By the defaults. *Cold* has no compiled program on disk, *warm* has all of them; they take turns. The first step is
where the first line of log.jsonl is written, less the time of the 1,024 environment steps of each seed before it. It is
solved at the line in which the last seed is: the mean return of its last 50 episodes is 0.9. Takes five minutes.
"""

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.common import options, write
from uppertail.training.process import hardware

SEEDS = 10
COMMAND = ["uppertail", "train", "--env=Chain", "--env.length=100", f"--seeds={SEEDS}", "--episodes=100000"]
STARTED = [*COMMAND, "--steps=1024"]
FAMILIES = ("Gaussian", "Categorical")


def run(command: list[str], cache: Path, until: Callable[[Path], bool], stop: bool) -> tuple[float, float, Any]:
    """Seconds until a log says so and until the end, and the summary of a run that was not stopped there."""
    with tempfile.TemporaryDirectory() as folder:
        log, began = Path(folder, "run", "log.jsonl"), time.perf_counter()
        process = subprocess.Popen(
            [*command, f"--out={log.parent}", "--quiet"], env={**os.environ, "XDG_CACHE_HOME": str(cache)}
        )
        while process.poll() is None and not until(log):
            time.sleep(0.01)
        first = time.perf_counter() - began
        if not until(log):
            raise SystemExit("The run ended too early.")
        if stop:
            process.terminate()
        process.wait()
        whole = time.perf_counter() - began
        return first, whole, None if stop else json.loads((log.parent / "summary.json").read_text(encoding="utf-8"))


def begun(log: Path) -> bool:
    """Whether a log has its first line."""
    return log.exists() and log.stat().st_size > 0


def solved(log: Path) -> bool:
    """Whether all seeds are solved by the last whole line of a log."""
    lines = log.read_text(encoding="utf-8").split("\n")[:-1] if log.exists() else []
    return bool(lines) and json.loads(lines[-1])["success/solved_seeds"] == SEEDS


def started(cache: Path) -> dict[str, float]:
    """The times of one run."""
    first, whole, summary = run(STARTED, cache, begun, stop=False)
    return {
        "to_first_step": round(first - summary["env_steps"] / summary["steps_per_second"], 2),
        "to_the_end": round(whole, 2),
        "compile_seconds": round(summary["compile_seconds"], 2),
    }


def to_solve(family: str) -> Callable[[Path], dict[str, float]]:
    """The time until a family has solved it."""
    command = [*COMMAND, f"--distribution={family}"]
    return lambda cache: {family: round(run(command, cache, solved, stop=True)[0], 2)}


def measure(command: list[str], repetitions: int, measured: list[Callable[[Path], dict[str, float]]]) -> dict[str, Any]:
    """Cold and warm, in turns."""
    runs: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as cache:
            for state, each in runs.items():
                each.append({name: value for one in measured for name, value in one(Path(cache)).items()})
                print(state, each[-1], flush=True)
    medians = {
        state: {name: statistics.median(run[name] for run in each) for name in each[0]} for state, each in runs.items()
    }
    return {"command": " ".join(command), "median_seconds": medians, "all": runs, "hardware": hardware()}


if __name__ == "__main__":
    given = options(__doc__, "results", repetitions=5)
    write(given.out / "startup.json", measure(STARTED, given.repetitions, [started]))
    write(given.out / "time_to_solve.json", measure(COMMAND, given.repetitions, [to_solve(each) for each in FAMILIES]))
