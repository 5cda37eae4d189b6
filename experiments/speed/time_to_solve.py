"""Seconds from the shell until every one of ten seeds has solved the Chain of length 100.

Usage: python -m experiments.speed.time_to_solve [--out results/time_to_solve.json] [--repetitions 5]

The clock starts with the process and stops at the line of log.jsonl in which the last seed is solved: the mean
return of its last 50 episodes has reached 0.9. Cold has no compiled program on disk, warm has all of them. Takes
about three minutes.
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
from uppertail.training.process import hardware

SEEDS = 10
FAMILIES = ("Gaussian", "Categorical")
COMMAND = ["uppertail", "train", "--env=Chain", "--env.length=100", f"--seeds={SEEDS}", "--episodes=100000"]


def seconds_to_solve(family: str, cache: Path) -> float:
    """One run, with the programs in a folder of our own; it is stopped when all seeds are solved."""
    with tempfile.TemporaryDirectory() as folder:
        log, began = Path(folder, "run", "log.jsonl"), time.perf_counter()
        run = subprocess.Popen(
            [*COMMAND, f"--distribution={family}", f"--out={log.parent}", "--quiet"],
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        )
        while not solved(log):
            if run.poll() is not None:
                raise SystemExit("The run ended before every seed was solved.")
            time.sleep(0.01)
        seconds = time.perf_counter() - began
        run.terminate()
        run.wait()
        return seconds


def solved(log: Path) -> bool:
    """Whether all seeds are solved by the last whole line of a log."""
    lines = log.read_text(encoding="utf-8").split("\n")[:-1] if log.exists() else []
    return bool(lines) and json.loads(lines[-1])["success/solved_seeds"] == SEEDS


def measure(repetitions: int) -> dict[str, Any]:
    """Cold and warm in turns, each family."""
    seconds: dict[str, dict[str, list[float]]] = {family: {"cold": [], "warm": []} for family in FAMILIES}
    for _ in range(repetitions):
        for family in FAMILIES:
            with tempfile.TemporaryDirectory() as cache:
                for state in ("cold", "warm"):
                    seconds[family][state].append(round(seconds_to_solve(family, Path(cache)), 2))
                    print(family, state, seconds[family][state][-1], flush=True)
    medians = {family: {state: statistics.median(each) for state, each in of.items()} for family, of in seconds.items()}
    return {"command": " ".join(COMMAND), "median_seconds": medians, "all": seconds, "hardware": hardware()}


if __name__ == "__main__":
    given = options(__doc__, "results/time_to_solve.json", repetitions=5)
    write(given.out, measure(given.repetitions))
