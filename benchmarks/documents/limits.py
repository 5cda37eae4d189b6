"""Runs of networks by the defaults of decisions 12 and 13, beside an optimistic table."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from documents.cells import KINDS, RESULTS, kind_of, last, least, number, of_seeds, runs_of, summary
from uppertail.records import median_episode


class Limit(NamedTuple):
    """A run by the defaults, and how it is told.

    Args:
        study: the study that it is a cell of.
        cell: its name there.
        size: its length or size.
        run: its summary.
    """

    study: str
    cell: str
    size: int
    run: dict[str, Any]

    @property
    def first(self) -> float:
        """The median episode of the first success."""
        return median_episode(self.run["first_success_episode"]) or float("nan")

    @property
    def method(self) -> str:
        """Family and policy, and the hidden layers where there are more than one."""
        layers = self.run["settings"]["hidden_layers"]
        return f"{self.run['distribution']['name']}, UCB" + (f", {layers} hidden layers" if layers > 1 else "")

    @property
    def table(self) -> float | None:
        """First success of optimistic dynamic programming with the same family; None: not computed."""
        kind = "chain" if self.run["env"]["name"] == "Chain" else "deep_sea"
        name = f"{kind}-{self.size}-{self.run['distribution']['name']}"
        for path in (RESULTS / "twin" / f"{name}.json", RESULTS / "twin" / f"{name}-c-constant.json"):
            if path.exists():
                return json.loads(path.read_text(encoding="utf-8"))["median_first_success"]
        return None


def limit(study: str, cell: str) -> Limit:
    """A run by the defaults."""
    run = summary(f"limit/{study}/{cell}")
    return Limit(study, cell, run["env"].get("length") or run["env"]["size"], run)


def limits(*studies: str) -> list[Limit]:
    """All runs of studies, the small before the large."""
    folders = [path.parent for study in studies for path in (RESULTS / "limit" / study).glob("*/summary.json")]
    found = [limit(folder.parent.name, folder.name) for folder in folders]
    return sorted(found, key=lambda each: (each.size, KINDS.index(each.run["distribution"]["name"]), each.cell))


def of_limits(*studies: str) -> Callable[[], list[list[str]]]:
    """All runs of studies by the defaults."""

    def rows() -> list[list[str]]:
        heading = [
            "size",
            "method",
            "solved",
            "first success, median (of all seeds)",
            "over the table",
            "over the floor",
        ]
        table = [[*heading, "solved at, median (last)", "kept, worst seed", "longest fall", "episodes", "seconds"]]
        for each in limits(*studies):
            run, first = each.run, each.run["first_success_episode"]
            known = [episode for episode in first if episode is not None]
            floor = run.get("first_success_over_floor")
            table.append([
                f"{each.size:,}", each.method, of_seeds(run["solved_episode"]),
                f"{number(each.first)} ({min(known):,}-{last(first)})",
                "-" if each.table is None else f"{each.first / each.table:.2f}",
                "-" if floor is None else f"{floor:.1f}",
                f"{number(median_episode(run['solved_episode']))} ({last(run['solved_episode'])})",
                least(run["kept"]), str(max(fall for fall in run["longest_fall"] if fall is not None)),
                f"{run['settings']['episodes']:,}", f"{run['wall_seconds']:,.0f}",
            ])  # fmt: skip
        return table

    return rows


def lakes() -> list[list[str]]:
    """FrozenLake 8x8 by the defaults, but for the discount."""

    def place(run: dict[str, Any]) -> tuple[Any, ...]:
        return -run["settings"]["discount"], kind_of(run), run["policy"]["name"]

    return [
        ["method", "discount", "greedy policy reaches the goal", "first success, median", "solved", "kept, worst seed"],
        *(
            [
                f"{run['distribution']['name']}, {run['policy']['name']}",
                f"{run['settings']['discount']:g}",
                of_seeds([value > 0.99 for value in run["final_greedy_return"]]),
                number(median_episode(run["first_success_episode"])),
                of_seeds(run["solved_episode"]),
                least(run["kept"]),
            ]
            for run in sorted(runs_of("lake"), key=place)
        ),
    ]


def tables() -> list[list[str]]:
    """Taxi and CliffWalking by the defaults."""

    def told(returns: list[float]) -> str:
        return ", ".join(f"{value:.2f}".removesuffix(".00") for value in returns)

    return [
        ["environment", "steps", "return of the last 100 training episodes", "of 20 greedy ones", "seconds"],
        *(
            [
                run["env"]["id"],
                f"{run['settings']['steps']:,}",
                told(run["final_return"]),
                told(run["final_greedy_return"]),
                f"{run['wall_seconds']:,.0f}",
            ]
            for run in sorted(runs_of("tables"), key=lambda run: run["env"]["id"])
        ),
    ]
