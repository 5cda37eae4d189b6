"""The record of a run, its return distributions at moments, and the files that both are written to."""

import contextlib
import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float, Int

from uppertail.records.episodes import Episodes, Success, arrays_of, at_least, median_episode
from uppertail.records.folder import DISTRIBUTIONS, EPISODES, SUMMARY, arrays_below, digest, write_arrays, write_json

CHECKSUM = "sha256"  # the last entry of summary.json
SIZES = ("length", "size", "map_name")  # settings of environments that say how large they are

PARAMETERS, TABLE, PLANE, NAMES = "z/", "table/", "plane/", "names/"
FIELDS = {PARAMETERS: "parameters", TABLE: "table", PLANE: "plane", NAMES: "names"}
"""Fields of `Distributions` with several arrays, by the beginning of the arrays' names."""

OF_TABLE = (
    *("next_state", "reward", "terminated", "probability", "reward_std"),  # [seeds, states, actions, outcomes]
    *("start_state", "start_probability"),  # [seeds, starts]
    "action_mask",  # [seeds, states, actions]
)
"""The arrays of a table."""

NOT_ALWAYS = ("reward_std", "action_mask")
"""Those that not every table has."""


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """A run of several seeds: its settings, its results and its cost.

    `asked` has class name and settings of the environment and of each part of the method, the settings of the training
    run, and `measured_returns`: lowest and highest return by steps of a random policy, None if they are known.
    """

    asked: dict[str, Any]
    success: Success
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
    kept_step: list[int] | None = None  # environment step of each seed's best evaluation; None: there were none

    @property
    def has_success(self) -> bool:
        return self.success.is_defined

    @property
    def environment(self) -> str:
        """The environment's name, with the setting that says how large it is, if it has one."""
        described = self.asked["environment"]
        size = next((f", {key} {described[key]}" for key in SIZES if described.get(key) is not None), "")
        return f"{described.get('id', described['name'])}{size}"

    @property
    def method(self) -> str:
        return f"{self.asked['distribution']['name']}, {self.asked['policy']['name']}"

    def network_of(self, row: int) -> str:
        """Which network of a seed was kept."""
        return "last" if self.kept_step is None else f"best, of step {self.kept_step[row]:,}"

    @property
    def final_returns(self) -> list[float | None]:
        """For each seed, the mean return of the last 100 episodes; None before the first."""
        return [seed.final_return() for seed in self.episodes]

    @property
    def greedy_solves(self) -> list[bool | None]:
        """For each seed, whether the greedy policy's mean return is a success; None where that is not known."""
        known = self.has_success
        return [bool(at_least(ret, self.success.mark)) if known and ret == ret else None for ret in self.greedy_returns]

    @property
    def first_success_episode(self) -> list[int | None]:
        """For each seed, the first episode that succeeds, or with which the last ones do."""
        return [seed.first_success(self.success) for seed in self.episodes]

    @property
    def solved_episode(self) -> list[int | None]:
        """For each seed, the episode at which it counts as solved."""
        return [seed.solved(self.success) for seed in self.episodes]

    @property
    def kept(self) -> list[float | None]:
        """For each seed, the share of successes at all episodes after it was solved."""
        return [seed.kept(self.success) for seed in self.episodes]

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
        """The contents of summary.json but for its checksum. A list has a value for each seed."""
        asked = {"env" if name == "environment" else name: value for name, value in self.asked.items()}
        success, seeds = self.success, self.episodes
        of_all = {
            "seeds": len(seeds),
            "episodes": [seed.returns.size for seed in seeds],
            "env_steps": sum(self.env_steps),
            "wall_seconds": round(self.wall_seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "compilations": self.compilations,
            "steps_per_second": round(self.steps_per_second, 1),
            "interrupted": self.interrupted,
            "stopped": self.stopped,
            "diverged": self.diverged,
            "failed": self.failed,
            "targets_outside_support": _finite(round(self.outside_share, 6)),
            "first_success_episode": self.first_success_episode,
            "solved_episode": self.solved_episode,
            "kept": self.kept,
            "longest_fall": [seed.longest_fall(success) for seed in seeds],
            "final_success_rate": [seed.final_success_rate(success) for seed in seeds],
            "final_return": [*map(_finite, self.final_returns)],
            "success": self._success(),
            "final_greedy_return": [*map(_finite, self.greedy_returns)],
            "greedy_solves": self.greedy_solves,
            "hardware": self.hardware,
        }
        floor = {"floor_episodes": self.floor_episodes, "first_success_over_floor": self.first_success_over_floor}
        kept = {} if self.kept_step is None else {"kept_step": self.kept_step}
        return {**asked, **of_all, **kept, **({} if self.floor_episodes is None else floor)}

    def _success(self) -> dict[str, Any] | None:
        """What counts as a success and as solved, in words; None where success is not defined."""
        if not self.has_success:
            return None
        success = self.success
        return {
            "return": success.least,
            "episodes": success.episodes,
            "meaning": success.in_words,
            "solved": success.solved_in_words,
        }


def _finite(number: float | None) -> float | None:
    """A number for JSON; None if it is not finite."""
    return number if number is not None and math.isfinite(number) else None


@dataclasses.dataclass(frozen=True, eq=False)
class Distributions:
    """Return distributions at moments of a run, of each seed, in some of its states.

    Steps and episodes of a seed are at most its limits. If observations are not states, the states are some of those
    along `path`, or state 0 stands for the run's first one, and there are no visits. Mean and standard deviation are
    those of the mixture of an ensemble's members.
    `plane`, of observations that are vectors, has `numbers`, two of theirs; `area`, their lowest and highest values at
    each moment, [moments, seeds, 2, 2]; `std` and `evidence`, the standard deviation of the best action's return and
    its share of the wide start that is left, [moments, seeds, side, side] with rows by the second number.
    """

    step: Int[np.ndarray, "moments seeds"]
    episode: Int[np.ndarray, "moments seeds"]
    states: Int[np.ndarray, "moments seeds states"]  # -1: none
    mean: Float[np.ndarray, "moments seeds states actions"]
    std: Float[np.ndarray, "moments seeds states actions"]
    parameters: dict[str, np.ndarray]  # the family's, [moments, seeds, states, members, actions, ...]
    visits: Int[np.ndarray, "moments seeds states actions"] | None = None  # how often each action was taken there
    last: Int[np.ndarray, "moments seeds states actions"] | None = None  # at which environment step; 0: never
    table: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # arrays of `OF_TABLE`
    rows: int = 1  # of equal length, in which a picture of the states has them
    plane: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)  # of actions, states and numbers
    evidence: Float[np.ndarray, "moments seeds states actions"] | None = None  # share of the wide start that is left
    allowed: Bool[np.ndarray, "moments seeds states actions"] | None = None  # which actions; None: all, or not known
    path: Int[np.ndarray, "seeds places"] | None = None  # states of a greedy episode at the end; -1 beyond its end

    @property
    def of_states(self) -> bool:
        return self.visits is not None or bool(self.table)

    @property
    def are_numbered(self) -> bool:
        """Whether its states have numbers: all but a run's first observation alone do."""
        return self.of_states or self.path is not None

    def arrays(self) -> dict[str, np.ndarray]:
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for prefix, field in FIELDS.items():
            plain |= {prefix + name: np.array(array) for name, array in plain.pop(field).items()}
        plain["rows"] = np.array(self.rows)
        return {name: array for name, array in plain.items() if array is not None}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        fields: dict[str, Any] = {name: array for name, array in arrays.items() if "/" not in name}
        fields |= {field: arrays_below(prefix, arrays) for prefix, field in FIELDS.items()}
        fields["names"] = {name: tuple(array.tolist()) for name, array in fields["names"].items()}
        return cls(**{**fields, "rows": int(arrays.get("rows", 1))})


def write_run(folder: Path, record: RunRecord, recorded: Distributions | None = None) -> None:
    """Writes episodes.npz, summary.json and distributions.npz, each whole or not at all, also after one that fails."""
    with contextlib.ExitStack() as files:
        if recorded is not None:
            files.callback(write_arrays, folder / DISTRIBUTIONS, recorded.arrays())
        files.callback(write_summary, folder / SUMMARY, record.summary())
        files.callback(write_arrays, folder / EPISODES, arrays_of(record.episodes))


def write_summary(path: Path, summary: Mapping[str, Any]) -> None:
    """Writes a summary.json with its checksum, whole or not at all."""
    write_json(path, {**summary, CHECKSUM: digest({}, json.dumps(summary))})


def read_summary(path: Path) -> dict[str, Any]:
    """The entries of a summary.json; a damaged one raises many kinds of errors."""
    summary = json.loads(path.read_text(encoding="utf-8"))
    if summary.pop(CHECKSUM) != digest({}, json.dumps(summary)):
        raise ValueError("another checksum")
    return summary


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
