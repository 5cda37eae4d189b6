"""Times the same runs by the code of two checkouts, in turns: has a change made training slower?

Usage: python -m experiments.robustness.same_speed BEFORE AFTER [--turns 5] [--prefix COMMAND]

Each run is told every setting, so that both do the same, as in same_bytes.py. The speed is that of summary.json:
environment steps of all seeds per second, compilation left out. The order of the two changes with each turn. The two
runs of a turn are neighbours in time, so where a machine is shared, the median of their ratios says more than the ratio
of the medians. Five turns take about ten minutes on one CPU core.
"""

import argparse
import json
import shlex
import statistics
import tempfile
from pathlib import Path
from typing import Any

from experiments.common import write
from experiments.robustness import same_bytes_cases
from experiments.robustness.same_bytes import newer
from experiments.robustness.same_bytes_cases import command
from experiments.robustness.same_bytes_runs import train
from uppertail.training.process import hardware

TIMED = {
    "chain-ten-seeds": "Chain Gaussian UCB env.length=100 seeds=10 width=256 steps=8000 replay_size=50000",
    "chain-one-layer": "Chain Gaussian UCB env.length=100 seeds=10 width=256 hidden_layers=1 steps=30000",
    "chain-one-seed": "Chain Gaussian UCB env.length=100 seeds=1 width=256 steps=40000 replay_size=50000",
    "categorical": "Chain Categorical UCB env.length=100 seeds=10 width=256 steps=8000 distribution.bins=51",
    "cartpole": "Gym Gaussian UCB env.id=CartPole-v1 seeds=1 width=64 steps=15000 replay_size=15000",
}
"""Longer runs than those of same_bytes.py, of the sizes that people train."""


def speed(checkout: Path, name: str, words: list[str], prefix: list[str]) -> float:
    """Environment steps per second of one run."""
    with tempfile.TemporaryDirectory() as folder:
        train(checkout, name, words, prefix, Path(folder, "run"))
        return json.loads(Path(folder, "run", "summary.json").read_text(encoding="utf-8"))["steps_per_second"]


def measure(before: Path, after: Path, turns: int, prefix: list[str]) -> dict[str, Any]:
    """All runs, in turns."""
    same_bytes_cases.CASES.update(TIMED)
    speeds: dict[str, dict[str, list[float]]] = {name: {"before": [], "after": []} for name in TIMED}
    for turn in range(turns):
        for name in TIMED:
            sides = {"before": (before, command(name)), "after": (after, newer(command(name)))}
            for side in sorted(sides, reverse=turn % 2 == 0):
                checkout, words = sides[side]
                speeds[name][side].append(round(speed(checkout, name, words, prefix)))
            print(name, {side: values[-1] for side, values in speeds[name].items()}, flush=True)
    medians = {name: statistics.median(of["after"]) / statistics.median(of["before"]) for name, of in speeds.items()}
    by_turn = {name: [a / b for b, a in zip(of["before"], of["after"], strict=True)] for name, of in speeds.items()}
    return {
        "ratio_of_medians": {name: round(ratio, 3) for name, ratio in medians.items()},
        "median_of_ratios": {name: round(statistics.median(ratios), 3) for name, ratios in by_turn.items()},
        "runs": TIMED,
        "steps_per_second": speeds,
        "hardware": hardware(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Times the same runs by two checkouts, in turns.")
    parser.add_argument("before", type=Path, help="the older checkout")
    parser.add_argument("after", type=Path, help="the newer checkout")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--prefix", default="", help="what each command begins with, for example 'nice'")
    parser.add_argument("--out", type=Path, default=Path("runs/same_speed.json"))
    given = parser.parse_args()
    found = measure(given.before.resolve(), given.after.resolve(), given.turns, shlex.split(given.prefix))
    write(given.out, found)
    print({kind: found[kind] for kind in ("ratio_of_medians", "median_of_ratios")})
