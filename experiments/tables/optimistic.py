"""Optimistic dynamic programming on all data: what a table reaches."""

from typing import Any

from experiments.tables.cells import last, number, read

LEARNERS = {
    "spread": "`spread`: mean and standard deviation, c = 2",
    "optimistic": "`optimistic`: Q starts at the highest return",
    "count": r"`count`: MBIE-EB, bonus $0.1 / \sqrt{n}$",
}
TASKS = {"Chain-100": "Chain 100", "DeepSea-20": "DeepSea 20", "DeepSea-50": "DeepSea 50"}


def firsts() -> list[list[str]]:
    """The first success, median of ten seeds, and the range."""
    rows = [["learner", *TASKS.values()]]
    for learner, told in LEARNERS.items():
        runs = [read(f"optimistic_table/{task}-{learner}.json") for task in TASKS]
        rows.append([told, *map(_told, runs)])
    return rows


def _told(run: dict[str, Any]) -> str:
    first = run["first_success_episode"]
    return f"{number(run['median_first_success'])} ({min(first)}-{last(first)})"
