"""Runs of least squares by the defaults: tables without chance and with it."""

import json
import statistics
from pathlib import Path
from typing import Any

from experiments.tables.cells import RESULTS, least, number, of_seeds, read
from uppertail.records import median_episode

HERE = RESULTS / "least_squares"

TASKS = {
    "chain_100": ("Chain 100", "Chain-100"),
    "chain_1000": ("Chain 1,000, discount 0.999", "Chain-1000"),
    "deep_sea_20": ("DeepSea 20", "DeepSea-20"),
    "deep_sea_50": ("DeepSea 50", "DeepSea-50"),
    "deep_sea_100": ("DeepSea 100", None),
}
"""Name, and the result of optimistic dynamic programming on the table behind it."""

METHODS = {
    "gaussian": "Gaussian, UCB",
    "categorical": "Categorical, UCB",
    "optimistic_value": "optimistic value",
}

CHANCE = {
    "risky_arm": "RiskyArm",
    "noisy_chain_20": "Chain 20, slips, noise",
    "deep_sea_10": "stochastic DeepSea 10",
    "deep_sea_20": "stochastic DeepSea 20",
    "deep_sea_30": "stochastic DeepSea 30",
    "lake_4x4": "slippery FrozenLake 4x4",
    "lake_8x8": "slippery FrozenLake 8x8",
}

BEFORE = {
    "least_squares": "least squares",
    "posterior": "the same, `PosteriorSampling`",
    "optimistic_value": "optimistic value",
    "count_bonus": "count bonus (a table)",
    "boot_dqn": "bootstrapped DQN",
}
"""Methods where there is chance; bootstrapped DQN is in results/uncertainties, by gradients."""


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def solved() -> list[list[str]]:
    """First successes by the defaults."""
    others = read("least_squares/published.json")["first_success_episode"]
    rows = [["environment", "method", "solved", "first success", "table", "kept", "others", "steps/s"]]
    for task, (name, table) in TASKS.items():
        for method, shown in METHODS.items():
            if run := _read(HERE / f"{task}-{method}.json"):
                rows.append([
                    name, shown, of_seeds(run["solved_episode"]),
                    number(median_episode(run["first_success_episode"])), _of_table(table),
                    least(run["kept"]) if any(run["kept"]) else "-",
                    _of_others(others.get(task, []) if method == "gaussian" else []), f"{run['steps_per_second']:,.0f}",
                ])  # fmt: skip
    return rows


def _of_table(table: str | None) -> str:
    """The median first success of a table."""
    if table is None:
        return "-"
    return number(median_episode(read(f"optimistic_table/{table}-spread.json")["first_success_episode"]))


def _of_others(episodes: list[int]) -> str:
    told = [f"{episode:,}" for episode in episodes]
    return " to ".join((told[0], told[-1])) if len(told) > 2 else ", ".join(told) or "-"


def _with_chance(task: str, method: str) -> dict[str, Any] | None:
    folder = RESULTS / "uncertainties" if method == "boot_dqn" else HERE / "chance"
    return _read(folder / f"{task}-{method}.json")


def chance() -> list[list[str]]:
    """Greedy policies and returns while training, where there is chance."""
    rows = [["environment", "method", "good at the end", "good from episode, median (last)", "return while training"]]
    for task, name in CHANCE.items():
        for method, shown in BEFORE.items():
            if run := _with_chance(task, method):
                good = run["good_from_episode"]
                last = "never" if None in good else f"{max(good):,}"
                share = run.get("share_while_training")
                rows.append([
                    name, shown, f"{run['good_seeds']} of {len(good)}", f"{number(median_episode(good))} ({last})",
                    "-" if share is None else f"{statistics.median(share):.2f}",
                ])  # fmt: skip
    return rows
