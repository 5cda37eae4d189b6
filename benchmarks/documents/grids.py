"""MiniGrid, by benchmarks/minigrid_runs.py."""

import json
from pathlib import Path
from typing import Any

from documents.cells import RESULTS, of_seeds

AGENTS = {
    "DQN": "SB3's DQN",
    "DQN, own reward": "SB3's DQN, MiniGrid's own reward",
    "QRDQN": "sb3-contrib's QR-DQN",
    "PPO": "SB3's PPO",
}
"""The peers, as they are told."""


def runs_of(folder: Path) -> list[dict[str, Any]]:
    """Our runs in a folder."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*-seeds-*.json"))]


def peers_of(folder: Path) -> list[dict[str, Any]]:
    """The peers' runs in a folder, one for each seed."""
    path = folder / "peers.json"
    return json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []


def grids() -> list[list[str]]:
    """MiniGrid: when each seed was solved."""
    rows = [["environment", "agent", "solved", "after these steps, each seed", "limit of steps", "seconds, all seeds"]]
    folder = RESULTS / "minigrid"
    peers = peers_of(folder)
    for run in runs_of(folder):
        limit = run["asked"]["settings"]["steps"]
        rows.append(_row(run["env"], "Gaussian, UCB", run["solved_step"], limit, run["wall_seconds"]))
        for algorithm, told in AGENTS.items():
            theirs = [each for each in peers if (each["algorithm"], each["env"]) == (algorithm, run["env"])]
            if theirs:
                seconds = sum(each["wall_seconds"] for each in theirs)
                solved = [each["solved_step"] for each in theirs]
                rows.append(_row(run["env"], told, solved, theirs[0]["limit"], seconds))
    return rows


def _row(env: str, agent: str, solved: list[int | None], limit: int, seconds: float) -> list[str]:
    steps = ["not" if step is None else f"{step:,}" for step in solved]
    return [env, agent, of_seeds(solved), "; ".join(steps), f"{limit:,}", f"{seconds:,.0f}"]
