"""MiniGrid, by benchmarks/minigrid_runs.py."""

import json
from typing import Any

from documents.cells import RESULTS, of_seeds


def grids() -> list[list[str]]:
    """MiniGrid: when each seed was solved."""

    def told(run: dict[str, Any]) -> list[str]:
        steps = ["not" if step is None else f"{step:,}" for step in run["solved_step"]]
        limit = run["asked"]["settings"]["steps"]
        return [run["env"], of_seeds(run["solved_step"]), "; ".join(steps), f"{limit:,}", f"{run['wall_seconds']:,.0f}"]

    runs = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((RESULTS / "minigrid").glob("*-seeds-*.json"))
    ]
    return [
        ["environment", "solved", "after these steps, each seed", "limit of steps", "seconds, all seeds"],
        *map(told, runs),
    ]
