"""The schema of a run's results: what no run writes raises ValueError or another error, whatever its checksum says."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from uppertail.records.record import NOT_ALWAYS, OF_TABLE, Distributions
from uppertail.schema import convert

MOST_STEPS = 2**53  # beyond it, not all whole numbers are floats

OF_SEEDS: dict[str, Any] = {
    "episodes": list[int],
    "first_success_episode": list[int | None],
    "solved_episode": list[int | None],
    "kept": list[float | None],
    "final_return": list[float | None],
    "final_greedy_return": list[float | None],
}
"""The lists in summary.json that are read again, with a value for each seed."""

ENTRIES: dict[str, Any] = {
    **dict.fromkeys(("env", "distribution", "policy", "settings", "hardware"), dict[str, Any]),
    "seeds": int,
    **dict.fromkeys(("env_steps", "wall_seconds", "compile_seconds", "compilations"), float),
    "targets_outside_support": float | None,
    "interrupted": bool,
    **dict.fromkeys(("stopped", "failed"), str | None),
    **dict.fromkeys(("diverged", "success"), dict[str, Any] | None),
    **OF_SEEDS,
}
"""The entries of summary.json that are read again."""

KINDS = {
    **dict.fromkeys(("step", "episode"), ("iu", "ms")),
    "states": ("iu", "msn"),
    **dict.fromkeys(("mean", "std"), ("f", "msna")),
    **dict.fromkeys(("visits", "last"), ("iu", "msna")),
    "evidence": ("f", "msna"),
    "allowed": ("b", "msna"),
    "path": ("iu", "sp"),
    "table/next_state": ("iu", "sNao"),
    **dict.fromkeys(("table/reward", "table/probability", "table/reward_std"), ("f", "sNao")),
    "table/terminated": ("b", "sNao"),
    "table/action_mask": ("b", "sNa"),
    "table/start_state": ("iu", "sb"),
    "table/start_probability": ("f", "sb"),
    "plane/numbers": ("iu", "2"),
    "plane/area": ("f", "ms22"),
    **dict.fromkeys(("plane/std", "plane/evidence"), ("f", "mscc")),
    "names/actions": ("U", "a"),
    "rows": ("iu", ""),
}
"""Of arrays of distributions.npz, the kinds of numbers and a letter for each axis; axes of one letter are as long."""


def check_summary(summary: Mapping[str, Any]) -> None:
    """Checks the entries of summary.json."""
    json.dumps(summary, allow_nan=False, ensure_ascii=False).encode()  # its numbers are finite, its texts Unicode
    for name, kind in ENTRIES.items():
        convert(summary[name], kind)
    convert(summary.get("floor_episodes"), float | None)
    kept = convert(summary.get("kept_step"), list[int] | None)
    for name in ("env", "distribution", "policy"):
        convert(summary[name]["name"], str)
    convert(summary["settings"]["seed"], int)
    discount = convert(summary["settings"]["discount"], float)
    convert([] if summary["diverged"] is None else [summary["diverged"][name] for name in ("seed", "step")], list[int])
    success = summary["success"] or {"return": None}
    convert(success["return"], float | None)
    judged = convert(success.get("episodes", 1), int)
    counts = summary["episodes"]
    got_there = [*zip(summary["first_success_episode"], counts, strict=True)]
    got_there += zip(summary["solved_episode"], counts, strict=True)
    _require(
        0 <= discount <= 1,
        summary["seeds"] > 0,
        judged > 0,
        kept is None or len(kept) == summary["seeds"],
        all(len(summary[name]) == summary["seeds"] for name in OF_SEEDS),
        all(at is None or 1 <= at <= count for at, count in got_there),
        all(each is None or 0 <= each <= 1 for each in summary["kept"]),
    )


def check_distributions(recorded: Distributions) -> None:
    """Checks the arrays of distributions.npz."""
    arrays = recorded.arrays()
    sides: dict[str, int] = {"2": 2}
    for name, array in sorted(arrays.items()):
        if name.startswith("z/"):
            kinds, axes = "f", "msnka"
            _require(array.ndim >= len(axes))
        else:
            kinds, axes = KINDS.get(name, ("U", "?") if name.startswith("names/") else ("", ""))
            _require(array.ndim == len(axes))
        _require(array.dtype.kind in [*kinds], array.size > 0)
        for axis, length in zip(axes, array.shape, strict=False):
            _require(axis == "?" or sides.setdefault(axis, length) == length)
    table, plane, names = recorded.table, recorded.plane, recorded.names
    of_all = sides.get("N", 2**31)
    highest = int(recorded.states.max())
    _require(
        not table or {*OF_TABLE} - {*NOT_ALWAYS} <= table.keys(),
        not plane or {"numbers", "area", "std"} == plane.keys() - {"evidence"},  # none with `NoEvidence`
        (recorded.states >= -1).all() and highest < of_all,
        recorded.path is None or ((recorded.path >= -1).all() and recorded.path.max() <= highest),
        (recorded.states[-1] >= 0).any(axis=1).all(),
        1 <= recorded.rows <= max(sides["n"], sides.get("N", 1)),
        all((each >= 0).all() and (each < of_all).all() for each in _named(table, "next_state", "start_state")),
        all(np.isfinite(each).all() for each in _named(table, "reward", "probability", "reward_std")),
        all((each >= 0).all() for each in _named(table, "probability", "start_probability")),
        all((each >= 0).all() for each in (*_named(arrays, "step", "episode", "visits", "last", "plane/numbers"),)),
        all((each <= MOST_STEPS).all() for each in _named(arrays, "step", "episode")),
        len(names.get("states", range(of_all))) > highest,
        len(names.get("numbers", range(2**31))) > max(map(int, plane.get("numbers", [0]))),
    )
    "".join(itertools.chain(*names.values())).encode()  # Unicode


def _named(arrays: Mapping[str, np.ndarray], *names: str) -> list[np.ndarray]:
    """The arrays of these names that there are."""
    return [arrays[name] for name in names if name in arrays]


def _require(*true: Any) -> None:
    """Refuses what is not all true."""
    if not all(true):
        raise ValueError("no run wrote this")
