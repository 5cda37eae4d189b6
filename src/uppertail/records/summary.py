"""The contents of summary.json: the one place that reads it, and checks it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uppertail.errors import InputError
from uppertail.parts import PARTS
from uppertail.schema import MOST_INT, MismatchError, convert

PER_SEED: dict[str, Any] = {
    "episodes": list[int],
    "first_success_episode": list[int | None],
    "solved_episode": list[int | None],
    "kept": list[float | None],
    "longest_fall": list[int | None],
    "final_success_rate": list[float | None],
    "final_return": list[float | None],
    "final_greedy_return": list[float | None],
    "greedy_solves": list[bool | None],
}
"""The entries with a value for each seed."""

KINDS: dict[str, Any] = {
    **{name: dict[str, Any] | None if part.optional else dict[str, Any] for name, part in PARTS.items()},
    "settings": dict[str, Any],
    "measured_returns": tuple[float, float] | None,
    "seeds": int,
    "env_steps": float,  # of all seeds together: it may not fit into 32 bits
    **dict.fromkeys(("wall_seconds", "compile_seconds", "steps_per_second", "targets_outside_support"), float),
    "interrupted": bool,
    "stopped": str | None,
    "diverged": dict[str, int] | None,
    "failed": str | None,
    "success": dict[str, Any] | None,
    "hardware": dict[str, Any],
    **PER_SEED,
}
"""The entries that every summary has, and their types."""


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
    for name, kind in KINDS.items():
        _require(summary, name, kind)
    for name in PARTS:
        if summary[name] is not None:
            _require(summary[name], "name", str)
    _require(summary["settings"], "seed", int)
    _require(summary["settings"], "discount", float)
    count, seed = summary["seeds"], summary["settings"]["seed"]
    if not (count > 0 and 0 <= seed <= MOST_INT - count and 0 <= summary["settings"]["discount"] <= 1):
        raise MismatchError("its seeds or its discount are impossible")
    if odd := [name for name in PER_SEED if len(summary[name]) != count]:
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
