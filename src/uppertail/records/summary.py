"""The entries of summary.json: each once, with its type and its value, for the writer and for the reader."""

import json
import math
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

from uppertail.errors import InputError
from uppertail.parts import PARTS
from uppertail.schema import MOST_INT, MismatchError, convert

if TYPE_CHECKING:
    from uppertail.records.record import RunRecord

ASKED: dict[str, Any] = {
    **{name: dict[str, Any] | None if part.optional else dict[str, Any] for name, part in PARTS.items()},
    "settings": dict[str, Any],
    "measured_returns": tuple[float, float] | None,
}
"""The entries that describe a run's parts and settings, and their types."""

ENTRIES: dict[str, tuple[Any, Callable[["RunRecord"], Any]]] = {
    "seeds": (int, lambda run: len(run.episodes)),
    "episodes": (list[int], lambda run: [seed.returns.size for seed in run.episodes]),
    "env_steps": (float, lambda run: sum(run.env_steps)),  # of all seeds together: it may not fit into 32 bits
    "wall_seconds": (float, lambda run: round(run.wall_seconds, 3)),
    "compile_seconds": (float, lambda run: round(run.compile_seconds, 3)),
    "compilations": (int, attrgetter("compilations")),
    "steps_per_second": (float, lambda run: round(run.steps_per_second, 1)),
    "interrupted": (bool, attrgetter("interrupted")),
    "stopped": (str | None, attrgetter("stopped")),
    "diverged": (dict[str, int] | None, attrgetter("diverged")),
    "failed": (str | None, attrgetter("failed")),
    "targets_outside_support": (float, lambda run: round(run.outside_share, 6)),
    "first_success_episode": (list[int | None], attrgetter("first_success_episode")),
    "solved_episode": (list[int | None], attrgetter("solved_episode")),
    "kept": (list[float | None], attrgetter("kept")),
    "longest_fall": (list[int | None], lambda run: [seed.longest_fall(run.success_return) for seed in run.episodes]),
    "final_success_rate": (
        list[float | None],
        lambda run: [seed.final_success_rate(run.success_return) for seed in run.episodes],
    ),
    "final_return": (list[float | None], attrgetter("final_returns")),
    "success": (dict[str, Any] | None, attrgetter("success")),
    "final_greedy_return": (list[float | None], lambda run: [None if math.isnan(r) else r for r in run.greedy_returns]),
    "greedy_solves": (list[bool | None], attrgetter("greedy_solves")),
    "hardware": (dict[str, Any], attrgetter("hardware")),
}
"""All other entries that every summary has: type and value. A list has a value for each seed."""

WITH_FLOOR = ("floor_episodes", "first_success_over_floor")
"""Entries of runs in environments that know their floor."""


def summary_of(run: "RunRecord") -> dict[str, Any]:
    """The contents of summary.json."""
    asked = {"env" if name == "environment" else name: value for name, value in run.asked.items()}
    floor = {} if run.floor_episodes is None else {name: getattr(run, name) for name in WITH_FLOOR}
    return {**asked, **{name: value_of(run) for name, (_, value_of) in ENTRIES.items()}, **floor}


def read_summary(path: Path) -> dict[str, Any]:
    """A summary.json, or an InputError if it is missing or damaged."""
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        _require_sound(summary)
    except MismatchError as error:
        raise InputError(f"{path} is damaged ({error}): train again, or leave its folder out.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is missing or damaged: train again, or leave its folder out.") from error
    return summary


def _require_sound(summary: Any) -> None:
    """Refuses what no run could have written."""
    if not isinstance(summary, Mapping):
        raise MismatchError("it holds no entries")
    kinds = ASKED | {name: kind for name, (kind, _) in ENTRIES.items()}
    for name, kind in kinds.items():
        _require(summary, name, kind)
    for name in PARTS:
        if summary[name] is not None:
            _require(summary[name], "name", str)
    _require(summary["settings"], "seed", int)
    _require(summary["settings"], "discount", float)
    count, seed = summary["seeds"], summary["settings"]["seed"]
    if not (count > 0 and 0 <= seed <= MOST_INT - count and 0 <= summary["settings"]["discount"] <= 1):
        raise MismatchError("its seeds or its discount are impossible")
    if odd := [name for name, kind in kinds.items() if get_origin(kind) is list and len(summary[name]) != count]:
        raise MismatchError(f"{odd[0]} is not of {count} seeds")
    for name in ("first_success_episode", "solved_episode"):
        reached = zip(summary[name], summary["episodes"], strict=True)
        if any(at is not None and not 0 < at <= last for at, last in reached):
            raise MismatchError(f"{name} is beyond the episodes")
    if summary["diverged"] is not None and summary["diverged"].keys() != {"seed", "step"}:
        raise MismatchError("diverged is not a seed and a step")
    if summary["success"] is not None:
        _require(summary["success"], "return", float)
    if "floor_episodes" in summary:
        _require(summary, "floor_episodes", float)


def _require(entries: Mapping[str, Any], name: str, kind: Any) -> None:
    if name not in entries:
        raise MismatchError(f"{name} is missing")
    try:
        convert(entries[name], kind)
    except MismatchError as error:
        raise MismatchError(f"{name}: {error}") from None
