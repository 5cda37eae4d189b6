"""Runs grouped by environment, as a report shows them."""

import collections
import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uppertail.errors import InputError
from uppertail.records import RunFolder, plain
from uppertail.reports import outcomes
from uppertail.reports.details import detail
from uppertail.reports.seeds import Seed, kind_of

MOST_DETAILS, MOST_DISTRIBUTIONS = 12, 100_000  # of an environment's runs: seeds in detail, and their distributions
ALWAYS = ("length", "size", "map_name")  # settings that an environment's name has, even if they are the usual ones
SURVIVAL = {"first": outcomes.FIRST, "solved": outcomes.SOLVED, "kept": outcomes.KEPT}  # the charts of events


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """The runs of one environment: one for each method, with its row of the table, and the charts' data by name."""

    environment: str
    methods: list[str]
    runs: list[RunFolder]
    table: list[dict[str, str]]
    data: dict[str, list[dict[str, Any]]]
    details: list[dict[str, Any]]


def groups(runs: Sequence[RunFolder], states: list[int]) -> list[Group]:
    """The runs by environment, with the distributions of these states, or of those along the greedy path."""
    by_environment: dict[str, list[RunFolder]] = {}
    for run in runs:
        by_environment.setdefault(json.dumps(run.summary["env"], sort_keys=True), []).append(run)
    return [_group(found, states) for found in by_environment.values()]


def _group(runs: list[RunFolder], states: list[int]) -> Group:
    count = collections.Counter(run.method for run in runs)
    labels = [run.method if count[run.method] == 1 else f"{run.method} ({run.path.name})" for run in runs]
    data: dict[str, list[dict[str, Any]]] = {name: [] for name in ("curves", "seeds", "explore", *SURVIVAL)}
    table, details = [], []
    share = max(1, MOST_DETAILS // max(1, sum(run.distributions is not None for run in runs)))
    for label, run in zip(labels, runs, strict=True):
        times = outcomes.times(run)
        data["curves"] += outcomes.curve_rows(label, run.episodes)
        for number, seed in zip(run.seeds, run.episodes, strict=True):
            rows = outcomes.curve_rows(label, [seed], outcomes.SEED_POINTS)
            data["seeds"] += [{name: row[name] for name in ("m", "e", "v")} | {"s": number} for row in rows]
        data["explore"] += outcomes.log_rows(label, run.log)
        for name, what in SURVIVAL.items():
            data[name] += outcomes.survival_rows(label, times[what]) if what in times else []
        table.append(outcomes.table_row(label, run, times))
        details += _details(label, run, states, share)
    return Group(environment_label(runs[0].summary["env"]), labels, runs, table, data, details)


def environment_label(described: Mapping[str, Any]) -> str:
    """An environment's name, with its size and the settings that are not the usual ones of a built-in class."""
    kind, label = kind_of("env", described), str(described.get("id", described["name"]))
    usual = {} if kind is None else {field.name: plain(field.default) for field in dataclasses.fields(kind)}
    changed = [
        f"{name.removesuffix('_name')} {value}"
        for name, value in described.items()
        if name in usual and name not in ("id", "returns") and (name in ALWAYS or value != usual[name])
    ]
    return ", ".join([label, *changed])


def _details(label: str, run: RunFolder, states: list[int], most: int) -> list[dict[str, Any]]:
    """Seeds of a run that recorded: all of them, or from the fastest to the slowest as many as there is room for."""
    recorded = run.distributions
    if recorded is None:
        return []
    if states and recorded.of_states:
        highest = int(recorded.states.max())
        if wrong := [state for state in states if not 0 <= state <= highest]:
            raise InputError(
                f"State {wrong[0]} is not among those recorded of {run.path.name}: give one from 0 to {highest}."
            )
    solved, success = run.summary["solved_episode"], run.summary["first_success_episode"]
    order = sorted(range(len(run.seeds)), key=lambda row: np.inf if solved[row] is None else solved[row])
    found = []
    for row in sorted(order[place] for place in np.unique(np.linspace(0, len(order) - 1, most).round().astype(int))):
        when = "not solved" if solved[row] is None else f"solved at {solved[row]:,}"
        seed, title = Seed.of(run, recorded, row), f"{label}: seed {run.seeds[row]}, {when}"
        found.append({"run": label, **detail(seed, title, states, MOST_DISTRIBUTIONS // MOST_DETAILS, success[row])})
    return found
