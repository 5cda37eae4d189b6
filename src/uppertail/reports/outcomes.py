"""Results method by method: learning curves, when seeds got there, and whether they stayed solved."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from uppertail.analysis.statistics import learning_curve
from uppertail.analysis.survival import Times, kaplan_meier, median
from uppertail.records import Episodes, RunFolder

WINDOW = 50
POINTS, SEED_POINTS = 150, 80  # how many episodes a curve shows, of a method and of a seed
FIRST, SOLVED, KEPT = "first success", "solved", "fell after it was solved"  # the events whose times are shown


def curve_rows(label: str, seeds: list[Episodes], points: int = POINTS) -> list[dict[str, Any]]:
    """The learning curve of some seeds with its interval: mean return of the last 50 episodes."""
    finished = [seed for seed in seeds if seed.returns.size]
    if not finished:
        return []
    episodes, interval = learning_curve(finished, WINDOW, points)
    columns = zip(episodes, *interval, strict=True)
    return [
        {"m": label, "e": int(e), "v": _round(v), "l": _round(low), "h": _round(high)} for e, v, low, high in columns
    ]


def log_rows(label: str, log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Share of exploratory actions, chunk by chunk, by the mean number of episodes; what is no number is left out."""
    each = [(_round(line.get("episode/count")), _round(line.get("exploration/share"))) for line in log]
    return [{"m": label, "e": round(count, 1), "x": share} for count, share in each if count is not None]


def times(run: RunFolder) -> dict[str, Times]:
    """When each seed got there; a seed that had not by its end is censored, not dropped. Empty without a success."""
    goal, solved = run.success_return, run.summary["solved_episode"]
    if goal is None:
        return {}
    counts = [seed.returns.size for seed in run.episodes]
    falls = [_fall(seed, at, goal) for seed, at in zip(run.episodes, solved, strict=True) if at is not None]
    after = [count - at for count, at in zip(counts, solved, strict=True) if at is not None]
    found = {FIRST: Times.of(run.summary["first_success_episode"], counts), SOLVED: Times.of(solved, counts)}
    return found | ({KEPT: Times.of(falls, after)} if falls else {})


def survival_rows(label: str, seen: Times) -> list[dict[str, Any]]:
    """The Kaplan-Meier curve of an event: for what share of the seeds it has not happened yet."""
    curve = kaplan_meier(seen)
    points = [(0.0, 1.0, 1.0, 1.0), *zip(curve.times, curve.share, curve.low, curve.high, strict=True)]
    if (end := float(seen.at.max(initial=0.0))) > points[-1][0]:
        points.append((end, *points[-1][1:]))
    rows = []
    for time, share, *bounds in points:
        low, high = (_round(share if math.isnan(bound) else bound) for bound in bounds)
        rows.append({"m": label, "e": int(time), "v": _round(share), "l": low, "h": high})
    return rows


def table_row(label: str, run: RunFolder, seen: Mapping[str, Times]) -> dict[str, str]:
    """A row of the table of results, from what `times` returned."""
    first, solved = (median(seen[what]) if seen else (None, None, None) for what in (FIRST, SOLVED))
    floor = run.summary.get("floor_episodes")
    kept, greedy = (
        [value for value in run.summary[name] if value is not None] for name in ("kept", "final_greedy_return")
    )
    return {
        "method": label,
        "seeds solved": f"{int(seen[SOLVED].happened.sum())} of {len(run.episodes)}" if seen else "–",
        "first success": _episodes(first) if seen else "–",
        "times the floor": f"{first[0] / floor:.2f}" if first[0] is not None and floor else "–",
        "solved at": _episodes(solved) if seen else "–",
        "kept, worst seed": f"{math.floor(1000 * min(kept)) / 10:g}%" if kept else "–",
        "greedy return": f"{np.mean(greedy):.3g}" if greedy else "–",
    }


def _fall(seed: Episodes, solved: int, goal: float) -> int | None:
    """How long after it was solved fewer than half of the last 50 episodes were successes; None: never."""
    hits = np.cumsum(np.concatenate([[0], seed.returns >= goal]))
    ends = np.arange(solved + 1, hits.size)
    fallen = np.flatnonzero(hits[ends] - hits[np.maximum(ends - WINDOW, 0)] < WINDOW / 2)
    return int(ends[fallen[0]]) - solved if fallen.size else None


def _episodes(found: tuple[float | None, float | None, float | None]) -> str:
    value, low, high = ("never" if each is None else f"{each:,.0f}" for each in found)
    return value if value == "never" else f"{value} [{low}, {high}]"


def _round(value: Any) -> float | None:
    """A number for JSON; None if it is not finite, or no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(float(value), 4)
