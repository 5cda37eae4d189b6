"""MiniGrid, by benchmarks/minigrid_runs.py."""

import itertools
import json
import math
import statistics
from pathlib import Path
from typing import Any

from documents.cells import RESULTS, of_seeds

AGENTS = {
    "DQN": "SB3's DQN",
    "DQN, shorter": "SB3's DQN, shorter schedule",
    "DQN, own reward": "SB3's DQN, MiniGrid's own reward",
    "QRDQN": "sb3-contrib's QR-DQN",
    "PPO": "SB3's PPO",
}
"""The peers, as they are told."""


def runs_of(folder: Path) -> list[dict[str, Any]]:
    """Our runs in a folder."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*-seeds-*.json"))]


def peers_of(folder: Path, name: str = "peers.json") -> list[dict[str, Any]]:
    """The peers' runs in a folder, one for each seed."""
    path = folder / name
    return json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []


def grids() -> list[list[str]]:
    """MiniGrid: when each seed was solved; of peers by training episodes and, once all seeds are there, greedy ones."""
    rows = [["environment", "agent", "solved", "after these steps, each seed", "median steps", "median episodes"]]
    folder = RESULTS / "minigrid"
    judged = {"": peers_of(folder), ", greedy": peers_of(folder, "peers_greedy.json")}
    for run in runs_of(folder):
        rows.append([run["env"], "Gaussian, UCB", *_solved(run["solved_step"], run["solved_episode"])])
        for (algorithm, told), (how, peers) in itertools.product(AGENTS.items(), judged.items()):
            theirs = [each for each in peers if (each["algorithm"], each["env"]) == (algorithm, run["env"])]
            if len(theirs) == len(run["solved_step"]):
                times = ([each[f"solved_{unit}"] for each in theirs] for unit in ("step", "episode"))
                rows.append([run["env"], told + how, *_solved(*times)])
    return rows


def _solved(steps: list[int | None], episodes: list[int | None]) -> list[str]:
    """How many seeds were solved, and when."""
    each = ["not" if step is None else f"{step:,}" for step in steps]
    return [of_seeds(steps), "; ".join(each), _median(steps), _median(episodes)]


def _median(times: list[int | None]) -> str:
    """The median over seeds; one that was not solved counts as later than all others."""
    median = statistics.median(math.inf if time is None else time for time in times)
    return f"{median:,.0f}" if math.isfinite(median) else "not"
