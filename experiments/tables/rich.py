"""States seen through noise or beside random bits: the episode of the first success of each seed."""

import json
from typing import Any

from experiments.tables.cells import RESULTS, number

HERE = RESULTS / "learned_features"

TASKS = {
    "lock_5": "RichLock 5",
    "lock_10": "RichLock 10",
    "lock_25": "RichLock 25",
    "lock_50": "RichLock 50",
    "rich_chain_20": "RichChain 20",
    "sea_5": "RichSea 5",
    "sea_10": "RichSea 10",
    "sea_20": "RichSea 20 with 16 bits",
    "bits_chain_20": "Chain 20, one-hot and 8 bits",
}

METHODS = {
    "hidden": "table of the hidden state",
    "radius": "`radius`",
    "wide_radius": "1.4 times the `radius`",
    "defaults": "defaults",
    "paper": "preset `paper`",
}


def rich() -> list[list[str]]:
    """Every method in the library."""
    rows = [["environment", "episodes", *METHODS.values()]]
    for task, name in TASKS.items():
        runs = {method: _read(f"{task}-{method}") for method in METHODS}
        if found := next((run for run in runs.values() if run), None):
            cells = [_firsts(run["first_success_episode"]) if run else "-" for run in runs.values()]
            rows.append([name, f"{found['settings']['episodes']:,}", *cells])
    return rows


def _read(name: str) -> dict[str, Any] | None:
    path = HERE / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _firsts(episodes: list[int | None]) -> str:
    return ", ".join(number(each) for each in episodes)
