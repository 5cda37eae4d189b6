"""A study of 60 short cells with one worker and with two: how much faster two are.

Usage: python benchmarks/study_speed.py [--cells 60] [--out results/study_speed.json]

Compiled programs are kept by a first cell of the same shapes, so that no study compiles more than the other; the two
take turns, and the medians count. Takes about ten minutes on two CPU cores that do nothing else.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from uppertail.training.process import hardware

BASE = {"env": "Chain", "env.length": 10, "seeds": 1, "episodes": 1_000_000, "steps": 16_384}


def seconds(file: Path, folder: Path, workers: int) -> float:
    """How long a study takes, start and summary included."""
    command = [sys.executable, "-m", "uppertail", "study", str(file), "--out", str(folder), "--quiet"]
    start = time.perf_counter()
    subprocess.run([*command, "--workers", str(workers)], check=True)
    return time.perf_counter() - start


def measure(cells: int, turns: int, folder: Path) -> dict[str, Any]:
    """Takes turns."""
    times: dict[int, list[float]] = {1: [], 2: []}
    for count in (1, cells):
        (folder / f"{count}.yaml").write_text(yaml.safe_dump({"base": BASE, "grid": {"seed": list(range(count))}}))
    seconds(folder / "1.yaml", folder / "first", 1)
    for turn in range(turns):
        for workers, found in times.items():
            found.append(seconds(folder / f"{cells}.yaml", folder / f"{turn}-{workers}", workers))
            print(f"turn {turn + 1}: {workers} workers, {found[-1]:.1f} s", flush=True)
    medians = {workers: statistics.median(found) for workers, found in times.items()}
    return {
        "cells": cells,
        "base": BASE,
        "seconds": {str(workers): [round(each, 1) for each in found] for workers, found in times.items()},
        "times_as_fast": round(medians[1] / medians[2], 2),
        "hardware": hardware(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Times a study of short cells with one worker and with two.")
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/study_speed.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        results = measure(options.cells, options.turns, Path(temporary))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=2) + "\n")
    print(results)
