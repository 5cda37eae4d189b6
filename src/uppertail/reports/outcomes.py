"""Results method by method: learning curves, when seeds got there, and whether they stayed solved."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from uppertail.analysis.statistics import learning_curve
from uppertail.analysis.survival import Times, kaplan_meier, median
from uppertail.records import Episodes
from uppertail.reports.runs import FoundRun

WINDOW = 50
POINTS = 150
SEED_POINTS = 80

FIRST, SOLVED, KEPT = "first success", "solved", "fell after it was solved"
"""The events whose times are shown."""


def curve_rows(label: str, seeds: list[Episodes]) -> list[dict[str, Any]]:
    """The learning curve of a method with its interval: mean return of the last 50 episodes."""
    finished = [seed for seed in seeds if seed.returns.size]
    if not finished:
        return []
    episodes, interval = learning_curve(finished, WINDOW, POINTS)
    columns = zip(episodes, interval.mean, interval.low, interval.high, strict=True)
    return [
        {"m": label, "e": int(e), "v": _round(v), "l": _round(low), "h": _round(high)} for e, v, low, high in columns
    ]


def seed_rows(label: str, numbers: list[int], seeds: list[Episodes]) -> list[dict[str, Any]]:
    """The same of each seed alone."""
    rows = []
    for number, seed in zip(numbers, seeds, strict=True):
        if seed.returns.size:
            episodes, interval = learning_curve([seed], WINDOW, SEED_POINTS)
            rows += [
                {"m": label, "s": number, "e": int(e), "v": _round(v)}
                for e, v in zip(episodes, interval.mean, strict=True)
            ]
    return rows


def log_rows(label: str, run: FoundRun) -> list[dict[str, Any]]:
    """Share of exploratory actions and spread at the start, chunk by chunk, by the mean number of episodes."""
    return [
        {"m": label, "e": round(float(line["episode/count"]), 1), "x": _round(line.get("exploration/share"))}
        for line in run.log
        if line.get("episode/count") is not None
    ]


def times(run: FoundRun, goal: float | None) -> dict[str, Times]:
    """When each seed got there; a seed that had not by its end is censored, not dropped.

    Args:
        run: the run.
        goal: return from which an episode is a success; None: not defined.
    """
    if goal is None:
        return {}
    counts = [seed.returns.size for seed in run.episodes]
    solved = [seed.solved(goal) for seed in run.episodes]
    falls = [_fall(seed, at, goal) for seed, at in zip(run.episodes, solved, strict=True) if at is not None]
    after = [count - at for count, at in zip(counts, solved, strict=True) if at is not None]
    found = {
        FIRST: _times([seed.first_success(goal) for seed in run.episodes], counts),
        SOLVED: _times(solved, counts),
    }
    return found | ({KEPT: _times(falls, after)} if falls else {})


def survival_rows(label: str, seen: Mapping[str, Times]) -> list[dict[str, Any]]:
    """The Kaplan-Meier curve of each: for how many seeds it has not happened yet."""
    rows: list[dict[str, Any]] = []
    for what, each in seen.items():
        curve = kaplan_meier(each)
        points = [(0.0, 1.0, 1.0, 1.0), *zip(curve.times, curve.share, curve.low, curve.high, strict=True)]
        if (end := float(each.at.max(initial=0.0))) > points[-1][0]:
            points.append((end, *points[-1][1:]))
        for time, share, low, high in points:
            bounds = (share if math.isnan(bound) else bound for bound in (low, high))
            low_bound, high_bound = bounds
            rows.append(
                {
                    "m": label,
                    "w": what,
                    "e": int(time),
                    "v": _round(share),
                    "l": _round(low_bound),
                    "h": _round(high_bound),
                }
            )
    return rows


def table_row(label: str, run: FoundRun, seen: Mapping[str, Times], twin: float | None) -> dict[str, str]:
    """A row of the table over floor and twin.

    Args:
        label: the name of the method.
        run: the run.
        seen: what `times` returned.
        twin: median first success of the same method with tables instead of networks; None: not known.
    """
    floor = run.summary.get("floor_episodes")
    first, solved = (median(seen[what]) if seen else (None, None, None) for what in (FIRST, SOLVED))
    kept = [value for value in run.summary.get("kept", []) if value is not None]
    greedy = [value for value in run.summary.get("final_greedy_return", []) if value is not None]
    return {
        "method": label,
        "seeds solved": f"{int(seen[SOLVED].happened.sum())} of {len(run.episodes)}" if seen else "–",
        "first success": _episodes(first) if seen else "–",
        "times the floor": _ratio(first[0], floor),
        "times the twin": _ratio(first[0], twin),
        "solved at": _episodes(solved) if seen else "–",
        "kept, worst seed": f"{math.floor(1000 * min(kept)) / 10:g}%" if kept else "–",
        "greedy return": f"{np.mean(greedy):.3g}" if greedy else "–",
    }


def goal_of(run: FoundRun, known: float | None) -> float | None:
    """The return of a success: the environment's, else the lowest of a first success; None: not defined."""
    firsts = run.summary.get("first_success_episode", [None] * len(run.episodes))
    reached = [float(seed.returns[at - 1]) for seed, at in zip(run.episodes, firsts, strict=True) if at]
    goal = min(reached, default=math.inf) if known is None else known
    return goal if math.isfinite(goal) else None


def _fall(seed: Episodes, solved: int, goal: float) -> int | None:
    """How long after it was solved fewer than half of the last 50 episodes were successes; None: never."""
    hits = np.cumsum(np.concatenate([[0], seed.returns >= goal]))
    ends = np.arange(solved + 1, hits.size)
    fallen = np.flatnonzero(hits[ends] - hits[np.maximum(ends - WINDOW, 0)] < WINDOW / 2)
    return int(ends[fallen[0]]) - solved if fallen.size else None


def _times(found: list[int | None], seen: list[int]) -> Times:
    at = [float(count if each is None else each) for each, count in zip(found, seen, strict=True)]
    return Times(np.array(at), np.array([each is not None for each in found]))


def _episodes(found: tuple[float | None, float | None, float | None]) -> str:
    value, low, high = ("never" if each is None else f"{each:,.0f}" for each in found)
    return value if value == "never" else f"{value} [{low}, {high}]"


def _ratio(value: float | None, by: float | None) -> str:
    return "–" if value is None or not by else f"{value / by:.2f}"


def _round(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else round(float(value), 4)
