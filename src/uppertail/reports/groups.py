"""Runs by environment, as a report shows them: curves, when seeds got there, and whether they stayed solved."""

import collections
import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from uppertail.analysis.statistics import Times, kaplan_meier, learning_curve, median, significant
from uppertail.errors import InputError
from uppertail.records import Episodes, RunFolder, Success, plain
from uppertail.reports.details import detail
from uppertail.reports.seeds import Seed, kind_of

MOST_DETAILS, MOST_DISTRIBUTIONS = 12, 100_000  # of an environment's runs: seeds in detail, and their distributions
ALWAYS = ("length", "size", "map_name")  # settings that an environment's name has, even if they are the usual ones
NOTHING = "–"  # in a table
WINDOW = 50
POINTS, SEED_POINTS = 150, 80  # how many episodes a curve shows, of a method and of a seed
EVENTS = FIRST, SOLVED, KEPT = "first", "solved", "kept"  # whose times are charts; kept: until it fell


OF_METHODS = ("action_repeat",)
"""Settings of an environment that a learner chooses: runs that differ in them have the same environment."""


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """The runs of one environment: one for each method, with its row of the table, and the charts' data by name."""

    environment: str
    methods: list[str]
    runs: list[RunFolder]
    table: list[dict[str, str]]
    data: dict[str, list[dict[str, Any]]]
    details: list[dict[str, Any]]

    def document(self) -> dict[str, Any]:
        """What the page's charts need."""
        last = max((seed.returns.size for run in self.runs for seed in run.episodes), default=1) or 1
        return {"first": 0, "last": last, "data": self.data, "details": self.details, "methods": self.methods}


def groups(runs: Sequence[RunFolder], states: list[int]) -> list[Group]:
    """The runs by environment, with the distributions of these states, or of those along the greedy path."""
    by_environment: dict[str, list[RunFolder]] = {}
    for run in runs:
        env = {name: value for name, value in run.summary["env"].items() if name not in OF_METHODS}
        by_environment.setdefault(json.dumps(env, sort_keys=True), []).append(run)
    return [_group(found, states) for found in by_environment.values()]


def _group(runs: list[RunFolder], states: list[int]) -> Group:
    count = collections.Counter(run.method for run in runs)
    own = [_label(run, count[run.method] > 1) for run in runs]
    folders = [run.path.parents[1 if run.is_cell else 0].name for run in runs]
    labels = [f"{each} ({folder})" if own.count(each) > 1 else each for each, folder in zip(own, folders, strict=True)]
    data: dict[str, list[dict[str, Any]]] = {name: [] for name in ("curves", "seeds", "explore", *EVENTS)}
    table, details = [], []
    share = max(1, MOST_DETAILS // max(1, sum(run.distributions is not None for run in runs)))
    for method, (label, run) in enumerate(zip(labels, runs, strict=True)):
        seen = times(run)
        data["curves"] += curve(method, run.episodes)
        data["seeds"] += [line | {"thin": True} for seed in run.episodes for line in curve(method, [seed], SEED_POINTS)]
        data["explore"] += exploration(method, run.log)
        for event, found in seen.items():
            data[event].append(survival(method, found))
        table.append(table_row(label, run, seen))
        details += _details(label, run, states, share)
    return Group(environment_label(runs[0].summary["env"]), labels, runs, table, data, details)


def _label(run: RunFolder, is_ambiguous: bool) -> str:
    """What a run is called: as a study names it; else its method and, if others have that, too, its folder's name."""
    if run.is_cell and "=" not in run.title.partition(",")[0]:  # options are no name of its own
        return run.title
    if not is_ambiguous:
        return run.method
    return run.title if run.method in run.title else f"{run.method} ({run.title})"


def environment_label(described: Mapping[str, Any]) -> str:
    """An environment's name, with its size and the settings that are not the usual ones of a built-in class."""
    kind, label = kind_of("env", described), str(described.get("id", described["name"]))
    usual = {} if kind is None else {field.name: plain(field.default) for field in dataclasses.fields(kind)}
    changed = [
        f"{name.removesuffix('_name')} {value}"
        for name, value in described.items()
        if name in usual and name not in ("id", "returns", *OF_METHODS) and (name in ALWAYS or value != usual[name])
    ]
    return ", ".join([label, *changed])


def _details(label: str, run: RunFolder, states: list[int], most: int) -> list[dict[str, Any]]:
    """Seeds of a run that recorded: all of them, or from the fastest to the slowest as many as there is room for."""
    recorded = run.distributions
    if recorded is None:
        return []
    if states and recorded.are_numbered:
        highest = int(recorded.states.max())
        if wrong := [state for state in states if not 0 <= state <= highest]:
            raise InputError(f"State {wrong[0]} is not among those recorded of {run.title}: use 0 to {highest}.")
    solved = run.summary["solved_episode"]
    order = sorted(range(len(run.seeds)), key=lambda row: np.inf if solved[row] is None else solved[row])
    found = []
    for row in sorted(order[place] for place in np.unique(np.linspace(0, len(order) - 1, most).round().astype(int))):
        when = "not solved" if solved[row] is None else f"solved after {solved[row]:,} episodes"
        when = when if run.success.is_defined else "success is not defined"
        seed, title = Seed.of(run, recorded, row), f"{label}: seed {run.seeds[row]}, {when}"
        found.append({"run": label, **detail(seed, title, states, MOST_DISTRIBUTIONS // MOST_DETAILS)})
    return found


def _line(method: int, points: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """A line of a chart: the method's number, and points of [x, y] or of [x, y, low, high]."""
    rows = [[_round(number) for number in point] for point in points]
    band = {"band": [[x, *ends] for x, _, *ends in rows]} if len(rows[0]) > 2 else {}
    return {"k": method, "points": [row[:2] for row in rows], **band}


def curve(method: int, seeds: list[Episodes], points: int = POINTS) -> list[dict[str, Any]]:
    """The learning curve of some seeds: mean return of the last 50 episodes; none before their first episode."""
    finished = [seed for seed in seeds if seed.returns.size]
    if not finished:
        return []
    episodes, interval = learning_curve(finished, WINDOW, points)
    columns = (episodes, *interval) if len(seeds) > 1 else (episodes, interval.value)
    return [_line(method, zip(*columns, strict=True))]


def exploration(method: int, log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Share of exploratory actions, chunk by chunk, by the mean number of episodes; what is no number is left out."""
    each = [(_round(line.get("episode/count")), line.get("exploration/share")) for line in log]
    points = [point for point in each if point[0] is not None]
    return [_line(method, points)] if points else []


def times(run: RunFolder) -> dict[str, Times]:
    """When each seed got there; a seed that had not by its end is censored, not dropped. Empty without a success."""
    success, solved = run.success, run.summary["solved_episode"]
    if not success.is_defined:
        return {}
    counts = [seed.returns.size for seed in run.episodes]
    falls = [_fall(seed, at, success) for seed, at in zip(run.episodes, solved, strict=True) if at is not None]
    after = [count - at for count, at in zip(counts, solved, strict=True) if at is not None]
    found = {FIRST: Times.of(run.summary["first_success_episode"], counts), SOLVED: Times.of(solved, counts)}
    return found | ({KEPT: Times.of(falls, after)} if falls else {})


def survival(method: int, seen: Times) -> dict[str, Any]:
    """The Kaplan-Meier curve of an event: for what share of the seeds it has not happened yet."""
    found = kaplan_meier(seen)
    band = [np.where(np.isnan(bound), found.share, bound) for bound in (found.low, found.high)]
    points = [(0.0, 1.0, 1.0, 1.0), *zip(found.times, found.share, *band, strict=True)]
    if (end := float(seen.at.max(initial=0.0))) > points[-1][0]:
        points.append((end, *points[-1][1:]))
    return _line(method, points)


def table_row(label: str, run: RunFolder, seen: Mapping[str, Times]) -> dict[str, str]:
    """A row of the table of results, from what `times` returned."""
    first, solved = (median(seen[what]) if seen else (None, None, None) for what in (FIRST, SOLVED))
    minimum = run.summary.get("floor_episodes")
    kept, greedy = (
        [value for value in run.summary[name] if value is not None] for name in ("kept", "final_greedy_return")
    )
    return {
        "method": label,
        "seeds solved": f"{int(seen[SOLVED].happened.sum())} of {len(run.episodes)}" if seen else NOTHING,
        "first success": _episodes(first) if seen else NOTHING,
        "solved after": _episodes(solved) if seen else NOTHING,
        "times minimum": f"{first[0] / minimum:.2f}" if first[0] is not None and minimum else NOTHING,
        "stays solved": f"{math.floor(1000 * min(kept)) / 10:g}%" if kept else NOTHING,
        "greedy return": f"{np.mean(greedy):.3g}" if greedy else NOTHING,
    }


def _fall(seed: Episodes, solved: int, success: Success) -> int | None:
    """How long after it was solved fewer than half of the last 50 episodes succeeded, or their mean no longer did."""
    window = WINDOW if success.episodes == 1 else 1
    early = np.zeros(success.episodes, int)  # nothing is judged so early
    hits = np.concatenate([early, np.cumsum(success.judged(seed.returns))])
    ends = np.arange(solved + 1, hits.size)
    fallen = np.flatnonzero(hits[ends] - hits[np.maximum(ends - window, 0)] < window / 2)
    return int(ends[fallen[0]]) - solved if fallen.size else None


def _episodes(found: tuple[float | None, float | None, float | None]) -> str:
    value, low, high = ("never" if each is None else f"{each:,.0f}" for each in found)
    return value if value == "never" else f"{value} [{low}, {high}]"


def _round(value: Any) -> float | None:
    """A number for JSON; None if it is not finite, or no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return significant(value)
