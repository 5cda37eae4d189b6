"""Runs grouped by environment, as a report shows them."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uppertail.errors import InputError
from uppertail.reports import outcomes
from uppertail.reports.details import detail
from uppertail.reports.rebuilt import Rebuilt, rebuild
from uppertail.reports.runs import FoundRun
from uppertail.reports.seeds import Seed

MOST_DETAILS = 12
"""The most seeds that are shown in detail, of all runs of an environment together."""


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """The runs of one environment.

    Args:
        environment: its name.
        methods: the names of the methods.
        runs: the run of each method.
        table: a row of each method.
        data: the data of the charts, by their names.
        details: seeds that recorded, as the page shows them.
        actions: number of actions; 1 if it is not known.
        episodes: the most episodes of a seed.
    """

    environment: str
    methods: list[str]
    runs: list[FoundRun]
    table: list[dict[str, str]]
    data: dict[str, list[dict[str, Any]]]
    details: list[dict[str, Any]]
    actions: int
    episodes: int


def groups(
    runs: Sequence[FoundRun],
    states: list[int],
    known: Mapping[str, type] | None = None,
    twins: Mapping[str, float] | None = None,
) -> list[Group]:
    """The runs, separated by environment.

    Args:
        runs: the runs.
        states: states whose distributions are shown; empty: those along the greedy path.
        known: classes of parts that are not built in.
        twins: median first success of the twin, by the names of runs.

    Raises:
        InputError: there is no such state.
    """
    by_environment: dict[str, list[FoundRun]] = {}
    for run in runs:
        by_environment.setdefault(json.dumps(run.summary["env"], sort_keys=True), []).append(run)
    return [_group(found, states, known, twins or {}) for found in by_environment.values()]


def _group(
    runs: list[FoundRun], states: list[int], known: Mapping[str, type] | None, twins: Mapping[str, float]
) -> Group:
    labels = method_labels(runs)
    parts = [rebuild(run.summary, known) for run in runs]
    seen = [
        outcomes.times(run, outcomes.goal_of(run, getattr(each.builder, "success_return", None)))
        for run, each in zip(runs, parts, strict=True)
    ]
    data: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("curves", "seeds", "explore", "first", "solved", "kept")
    }
    names = {"first": outcomes.FIRST, "solved": outcomes.SOLVED, "kept": outcomes.KEPT}
    for label, run, times in zip(labels, runs, seen, strict=True):
        data["curves"] += outcomes.curve_rows(label, run.episodes)
        data["seeds"] += outcomes.seed_rows(label, run.seeds, run.episodes)
        data["explore"] += outcomes.log_rows(label, run)
        for row in outcomes.survival_rows(label, times):
            for name, what in names.items():
                if row["w"] == what:
                    data[name].append(row)
    recorded = [run for run in runs if run.distributions is not None]
    share = max(1, MOST_DETAILS // max(1, len(recorded)))
    details = [
        detail
        for label, run, each in zip(labels, runs, parts, strict=True)
        for detail in _details(label, run, each, states, share)
    ]
    return Group(
        environment=environment_label(runs[0].summary["env"], parts[0]),
        methods=labels,
        runs=runs,
        table=[
            outcomes.table_row(label, run, times, twins.get(run.name))
            for label, run, times in zip(labels, runs, seen, strict=True)
        ],
        data=data,
        details=details,
        actions=max((each["actions"] for each in details), default=1),
        episodes=max((seed.returns.size for run in runs for seed in run.episodes), default=1) or 1,
    )


def method_labels(runs: Sequence[FoundRun]) -> list[str]:
    """A name for the method of each run; where two would be the same, with the run's folder."""
    plain = [run.method for run in runs]
    return [name if plain.count(name) == 1 else f"{name} ({run.name})" for name, run in zip(plain, runs, strict=True)]


def environment_label(described: Mapping[str, Any], parts: Rebuilt) -> str:
    """An environment's name, with the settings that are not the usual ones."""
    if parts.builder is None:
        return str(described.get("id", described["name"]))
    usual = {field.name: field.default for field in dataclasses.fields(parts.builder)}
    changed = [
        f"{name} {value}"
        for name, value in described.items()
        if name in usual
        and name not in ("id", "returns")
        and (name == "length" or getattr(parts.builder, name) != usual[name])
    ]
    return ", ".join([str(described.get("id", described["name"])), *changed])


def _details(label: str, run: FoundRun, parts: Rebuilt, states: list[int], most: int) -> list[dict[str, Any]]:
    """Seeds of a run that recorded: all of them, or from the fastest to the slowest as many as there is room for."""
    recorded = run.distributions
    if recorded is None:
        return []
    if states and recorded.of_states:
        highest = int(recorded.states.max())
        if wrong := [state for state in states if not 0 <= state <= highest]:
            raise InputError(
                f"State {wrong[0]} is not among those recorded of {run.name}: give one from 0 to {highest}."
            )
    firsts = run.summary.get("solved_episode", [None] * len(run.seeds))
    order = sorted(range(len(run.seeds)), key=lambda row: np.inf if firsts[row] is None else firsts[row])
    chosen = sorted(order[place] for place in np.unique(np.linspace(0, len(order) - 1, most).round().astype(int)))
    discount = float(run.summary["settings"]["discount"])
    found = []
    for row in chosen:
        table = parts.table(run.seeds[row])
        seed = Seed(recorded, row, parts, table, discount)
        when = "not solved" if firsts[row] is None else f"solved at {firsts[row]:,}"
        found.append(detail(seed, f"{label}: seed {run.seeds[row]}, {when}", states, _rows(parts)))
    return found


def _rows(parts: Rebuilt) -> int:
    """How many rows a picture of its states has; 1: a line."""
    return 1 if parts.builder is None else parts.builder.rows
