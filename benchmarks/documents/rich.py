"""States seen through noise or beside random bits: the episode of the first success of each seed."""

import json
from typing import Any

from documents.cells import RESULTS, number

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

AIMS = {
    "none": "nothing: it stays as it was drawn",
    "value": "the targets of least squares",
    "observation": "the next observation, the reward",
    "inverse": "the action (inverse dynamics)",
    "features": "the next features, the reward",
    "coins": "coin flips",
    "random": "a random network's temporal difference",
    "coins_width": "coin flips, also as width",
    "random_width": "a random network's temporal difference, also as width",
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


def torso() -> list[list[str]]:
    """Least squares on a torso that learns by gradients, in RichSea 10."""
    rows = [["the torso learns from", "first success"]]
    for aim, text in AIMS.items():
        if run := _read(f"torso-sea_10-{aim}"):
            rows.append([text, _firsts([seed["first_success_episode"] for seed in run["seeds"]])])
    return rows


def _read(name: str) -> dict[str, Any] | None:
    path = HERE / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _firsts(episodes: list[int | None]) -> str:
    return ", ".join(number(each) for each in episodes)
