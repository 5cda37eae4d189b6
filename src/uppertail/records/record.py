"""The record of a run and its files; each entry of summary.json once, with type and value, for writer and reader."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, get_origin

import numpy as np

from uppertail.parts import PARTS
from uppertail.records.distributions import Distributions
from uppertail.records.episodes import Episodes, arrays_of, median_episode
from uppertail.records.files import write_arrays, write_json
from uppertail.records.folder import DISTRIBUTIONS, EPISODES, SUMMARY
from uppertail.schema import MOST_INT, MismatchError, convert

SIZES = ("length", "size", "map_name")  # settings of environments that say how large they are


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """A run of several seeds: its settings, its results and its cost.

    `asked` has class name and settings of the environment and of each part of the method, the settings of the training
    run, and `measured_returns`: lowest and highest return by episodes of a random policy, None if they are known.
    """

    asked: dict[str, Any]
    success_return: float  # from which an episode counts as a success
    floor_episodes: float | None  # in which an agent of perfect memory first succeeds, on average; None: not known
    episodes: list[Episodes]  # of each seed, those that finished
    env_steps: list[int]  # of each seed within its limits
    greedy_returns: list[float]  # mean of 20 greedy episodes at the end, for each seed; NaN if an environment failed
    wall_seconds: float  # of the whole run, compilation and evaluation included
    compile_seconds: float
    training_seconds: float  # in the compiled training loop
    interrupted: bool  # whether it was stopped before its limits
    diverged: dict[str, int] | None  # seed and environment step of a loss that was not finite
    hardware: dict[str, Any]  # the machine and the versions of packages
    stopped: str | None = None  # why the run's callback stopped it before its limits
    failed: str | None = None  # why an environment could not go on
    outside_share: float = 0.0  # of all targets, those whose mean the distribution cannot represent
    compilations: int = 0  # programs that its last process compiled; others were in that process or on disk

    @property
    def has_success(self) -> bool:
        """Whether success is defined."""
        return math.isfinite(self.success_return)

    @property
    def environment(self) -> str:
        """The environment's name, with the setting that says how large it is, if it has one."""
        described = self.asked["environment"]
        size = next((f", {key} {described[key]}" for key in SIZES if described.get(key) is not None), "")
        return f"{described.get('id', described['name'])}{size}"

    @property
    def method(self) -> str:
        """The names of the distribution and the policy."""
        return f"{self.asked['distribution']['name']}, {self.asked['policy']['name']}"

    @property
    def final_returns(self) -> list[float | None]:
        """For each seed, the mean return of the last 100 episodes; None before the first."""
        return [seed.final_return() for seed in self.episodes]

    @property
    def greedy_solves(self) -> list[bool | None]:
        """For each seed, whether the greedy policy's mean return is a success; None where that is not known."""
        known = self.has_success
        return [bool(ret >= self.success_return) if known and ret == ret else None for ret in self.greedy_returns]

    @property
    def first_success_episode(self) -> list[int | None]:
        """For each seed, the first episode that succeeds."""
        return [seed.first_success(self.success_return) for seed in self.episodes]

    @property
    def solved_episode(self) -> list[int | None]:
        """For each seed, the episode at which it counts as solved."""
        return [seed.solved(self.success_return) for seed in self.episodes]

    @property
    def kept(self) -> list[float | None]:
        """For each seed, the share of successes among all episodes after it was solved."""
        return [seed.kept(self.success_return) for seed in self.episodes]

    @property
    def first_success_over_floor(self) -> float | None:
        """Median over seeds, as a multiple of the floor; None where there is no floor, or no median."""
        median = median_episode(self.first_success_episode)
        return None if median is None or self.floor_episodes is None else median / self.floor_episodes

    @property
    def steps_per_second(self) -> float:
        """Environment steps per second of all seeds together in the training loop."""
        return sum(self.env_steps) / max(self.training_seconds, 1e-9)

    def summary(self) -> dict[str, Any]:
        """The contents of summary.json."""
        asked = {"env" if name == "environment" else name: value for name, value in self.asked.items()}
        floor = {} if self.floor_episodes is None else {name: getattr(self, name) for name in WITH_FLOOR}
        return {**asked, **{name: value_of(self) for name, (_, value_of) in ENTRIES.items()}, **floor}


def _success(run: RunRecord) -> dict[str, Any] | None:
    """What counts as a success and as solved, in words; None where success is not defined."""
    if not run.has_success:
        return None
    return {
        "return": run.success_return,
        "meaning": f"an episode succeeds whose undiscounted return is at least {run.success_return:g}",
        "solved": "the mean return of 50 episodes in a row reaches that but for a tenth of it",
    }


def write_run(folder: Path, record: RunRecord, recorded: Distributions | None = None) -> None:
    """Writes episodes.npz, summary.json and distributions.npz, each whole or not at all, also after one that fails."""
    with contextlib.ExitStack() as files:
        if recorded is not None:
            files.callback(write_arrays, folder / DISTRIBUTIONS, recorded.arrays())
        files.callback(write_json, folder / SUMMARY, record.summary())
        files.callback(write_arrays, folder / EPISODES, arrays_of(record.episodes))


ASKED: dict[str, Any] = {
    **{name: dict[str, Any] | None if part.optional else dict[str, Any] for name, part in PARTS.items()},
    "settings": dict[str, Any],
    "measured_returns": tuple[float, float] | None,
}
"""The entries that describe a run's parts and settings, and their types."""

ENTRIES: dict[str, tuple[Any, Callable[[RunRecord], Any]]] = {
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
    "success": (dict[str, Any] | None, _success),
    "final_greedy_return": (list[float | None], lambda run: [None if math.isnan(r) else r for r in run.greedy_returns]),
    "greedy_solves": (list[bool | None], attrgetter("greedy_solves")),
    "hardware": (dict[str, Any], attrgetter("hardware")),
}
"""All other entries that every summary has: type and value. A list has a value for each seed."""

WITH_FLOOR = ("floor_episodes", "first_success_over_floor")  # entries of runs in environments that know their floor


def require_summary(summary: Any) -> dict[str, Any]:
    """The contents of a summary.json; a MismatchError says what is wrong with one that no run could have written."""
    if not isinstance(summary, dict):
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
    return summary


def _require(entries: Mapping[str, Any], name: str, kind: Any) -> None:
    if name not in entries:
        raise MismatchError(f"{name} is missing")
    try:
        convert(entries[name], kind)
    except MismatchError as error:
        raise MismatchError(f"{name}: {error}") from None


def describe(part: Any) -> dict[str, Any]:
    """Class name and settings of a part of a run, as summary.json and checkpoints show them."""
    shown = [field.name for field in dataclasses.fields(part) if field.repr]
    return {"name": type(part).__name__, **{name: plain(getattr(part, name)) for name in shown}}


def plain(value: Any) -> Any:
    """A setting for JSON: tuples and arrays as lists, and values that JSON does not have as Python prints them."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, int | float | str | None) else repr(value)
