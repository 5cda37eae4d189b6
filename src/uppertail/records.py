"""What a run leaves behind, and its one schema: read and written here, without jax."""

import contextlib
import dataclasses
import io
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from uppertail.errors import InputError
from uppertail.locks import LOCK, locked

SOLVED_WINDOW = 50
SOLVED_SHARE = 0.9
FINAL_WINDOW = 100

CONFIG, EPISODES, SUMMARY, CURVE = "config.yaml", "episodes.npz", "summary.json", "curve.png"
NETWORKS = "networks.safetensors"
FILES = (CONFIG, EPISODES, SUMMARY, NETWORKS, CURVE)
EvaluationPolicy = Literal["greedy", "ucb", "thompson", "trained"]
EVALUATIONS = {policy: f"evaluation-{policy}.json" for policy in get_args(EvaluationPolicy)}
"""What `evaluate` adds to the folder of a run; it is of the networks that were there then."""
LOG, WANDB_ID = "log.jsonl", "wandb-id.txt"
"""What loggers keep of a run: its numbers chunk by chunk, and its name at Weights & Biases."""
CHECKPOINTS, CHECKPOINT_PATTERN = "checkpoints", "step-*.safetensors"
TENSORBOARD = "tensorboard"
FOLDERS = {CHECKPOINTS: (CHECKPOINT_PATTERN, f".{CHECKPOINT_PATTERN}"), TENSORBOARD: ("events.out.tfevents.*",)}
"""The folders within the folder of a run, and what they hold, also of a process that was killed."""
PROBE = ".writable"
LEFTOVERS = (LOCK, PROBE, *(f".{name}" for name in (*FILES, *EVALUATIONS.values(), WANDB_ID)))
"""What a process that was killed may leave in the folder of a run."""


@dataclasses.dataclass(frozen=True)
class Episodes:
    """The finished episodes of one seed, in order.

    Args:
        returns: undiscounted return of each episode.
        lengths: environment steps of each episode.
        end_steps: environment step of the run at which each episode ended.
    """

    returns: Float[np.ndarray, " episodes"]
    lengths: Int[np.ndarray, " episodes"]
    end_steps: Int[np.ndarray, " episodes"]

    @classmethod
    def none(cls) -> Self:
        """No episode yet."""
        return cls(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> list[Self]:
        """The episodes of each seed, from the arrays of episodes.npz."""
        finished = [np.isfinite(row) for row in arrays["return"]]
        rows = zip(arrays["return"], arrays["length"], arrays["step"], finished, strict=True)
        return [
            cls(returns[done].astype(np.float32), lengths[done].astype(np.int64), steps[done].astype(np.int64))
            for returns, lengths, steps, done in rows
        ]

    def extended(
        self,
        ended: Bool[np.ndarray, " steps"],
        returns: Float[np.ndarray, " steps"],
        lengths: Int[np.ndarray, " steps"],
        first_step: int,
    ) -> "Episodes":
        """With the episodes that ended in a block of steps, the first of which was step `first_step` of the run."""
        at = np.flatnonzero(ended)
        return Episodes(
            np.concatenate([self.returns, returns[at]]),
            np.concatenate([self.lengths, lengths[at].astype(np.int64)]),
            np.concatenate([self.end_steps, at + first_step]),
        )

    def until(self, episodes: int, steps: int | None) -> "Episodes":
        """Only the episodes within both limits."""
        count = episodes if steps is None else min(episodes, int(np.searchsorted(self.end_steps, steps, "right")))
        return Episodes(self.returns[:count], self.lengths[:count], self.end_steps[:count])

    def first_success(self, success_return: float) -> int | None:
        """Number of the first episode that reaches the return of a success, counted from 1."""
        successes = np.flatnonzero(self.returns >= success_return)
        return int(successes[0]) + 1 if successes.size else None

    def solved(self, success_return: float) -> int | None:
        """Number of the first episode at which the mean return of the last 50 is a success but for a tenth of it."""
        if self.returns.size < SOLVED_WINDOW:
            return None
        totals = np.cumsum(np.concatenate([[0.0], self.returns.astype(np.float64)]))
        means = (totals[SOLVED_WINDOW:] - totals[:-SOLVED_WINDOW]) / SOLVED_WINDOW
        needed = success_return - (1 - SOLVED_SHARE) * abs(success_return)
        reached = np.flatnonzero(means >= needed - 1e-9)
        return int(reached[0]) + SOLVED_WINDOW if reached.size else None

    def final_success_rate(self, success_return: float) -> float | None:
        """Share of the last 100 episodes that succeed; None before the first episode."""
        last = self.returns[-FINAL_WINDOW:]
        return float(np.mean(last >= success_return)) if last.size else None


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """A run of several seeds: what was asked, what came out, what it cost.

    Args:
        environment: class name and settings of the environment.
        distribution: class name and settings of the return distribution, as fitted to the environment.
        policy: class name and settings of the exploration policy.
        settings: settings of the training run.
        success_return: return from which an episode counts as a success.
        floor_episodes: when a memory-perfect agent first succeeds, on average; None where that is not known.
        episodes: finished episodes of each seed.
        env_steps: environment steps of each seed within its limits.
        greedy_returns: mean return of 20 greedy episodes at the end, for each seed; NaN if an environment failed.
        wall_seconds: time of the whole run, compilation and evaluation included.
        compile_seconds: time of compilation.
        training_seconds: time in the compiled training loop.
        interrupted: whether the run was stopped before its limits.
        diverged: seed and environment step of a loss that was not finite; None in a sound run.
        hardware: what it ran on, and with which versions.
        stopped: why the run's callback stopped it before its limits; None if it did not.
        failed: why an environment could not go on; None in a sound run.
        outside_share: share of all targets whose mean was outside of what the distribution can represent.
    """

    environment: dict[str, Any]
    distribution: dict[str, Any]
    policy: dict[str, Any]
    settings: dict[str, Any]
    success_return: float
    floor_episodes: float | None
    episodes: list[Episodes]
    env_steps: list[int]
    greedy_returns: list[float]
    wall_seconds: float
    compile_seconds: float
    training_seconds: float
    interrupted: bool
    diverged: dict[str, int] | None
    hardware: dict[str, Any]
    stopped: str | None = None
    failed: str | None = None
    outside_share: float = 0.0

    @property
    def first_success_episode(self) -> list[int | None]:
        """For each seed, the first episode that succeeds."""
        return [seed.first_success(self.success_return) for seed in self.episodes]

    @property
    def solved_episode(self) -> list[int | None]:
        """For each seed, the episode at which it counts as solved."""
        return [seed.solved(self.success_return) for seed in self.episodes]

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
        summary = {
            "env": self.environment,
            "distribution": self.distribution,
            "policy": self.policy,
            "settings": self.settings,
            "seeds": len(self.episodes),
            "episodes": [seed.returns.size for seed in self.episodes],
            "env_steps": sum(self.env_steps),
            "wall_seconds": round(self.wall_seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "steps_per_second": round(self.steps_per_second, 1),
            "interrupted": self.interrupted,
            "stopped": self.stopped,
            "diverged": self.diverged,
            "failed": self.failed,
            "targets_outside_support": round(self.outside_share, 6),
            "first_success_episode": self.first_success_episode,
            "solved_episode": self.solved_episode,
            "final_success_rate": [seed.final_success_rate(self.success_return) for seed in self.episodes],
            "final_greedy_return": [None if np.isnan(value) else float(value) for value in self.greedy_returns],
            "hardware": self.hardware,
        }
        if self.floor_episodes is not None:
            summary["floor_episodes"] = self.floor_episodes
            summary["first_success_over_floor"] = self.first_success_over_floor
        return summary

    def arrays(self) -> dict[str, Float[np.ndarray, "seeds episodes"]]:
        """The contents of episodes.npz: `return`, `length` and `step`, padded with NaN where seeds differ in count."""
        columns = {"return": "returns", "length": "lengths", "step": "end_steps"}
        count = max((seed.returns.size for seed in self.episodes), default=0)
        padded = {name: np.full((len(self.episodes), count), np.nan) for name in columns}
        for row, seed in enumerate(self.episodes):
            for name, field in columns.items():
                values = getattr(seed, field)
                padded[name][row, : values.size] = values
        return padded


def median_episode(episodes: list[int | None]) -> float | None:
    """Median over seeds, where a seed that never got there counts as later than all others; None if it is never."""
    median = float(np.median([np.inf if episode is None else episode for episode in episodes]))
    return median if np.isfinite(median) else None


def episode_text(value: float | None, form: str = ",.0f") -> str:
    """A number of episodes, or of something counted in them, as a table shows it; None is never."""
    return "never" if value is None else format(value, form)


def unused_folder(parent: Path, name: str) -> Path:
    """The first of parent/name, parent/name-2, parent/name-3, ... that does not exist."""
    candidates = (parent / (name if number == 1 else f"{name}-{number}") for number in itertools.count(1))
    return next(folder for folder in candidates if not folder.exists())


@contextlib.contextmanager
def output_errors(folder: Path) -> Iterator[None]:
    """Says in a sentence why a folder cannot hold results.

    Raises:
        InputError: what happens within raises OSError, or `folder` is no name that a folder could have.
    """
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"The output {folder} cannot be written ({error.strerror}): choose another --out.") from error
    except ValueError as error:
        raise InputError(f"The output {str(folder)!r} cannot be the name of a folder: choose another --out.") from error


def claim_folder(folder: Path, overwrite: bool | None = None) -> None:
    """Makes the folder of a run, or empties one of its earlier results.

    Args:
        folder: where the results go.
        overwrite: whether earlier results may be replaced; None where a command has no such option.

    Raises:
        InputError: it exists and may not be overwritten, is not the folder of a run, or cannot be written.
    """
    with output_errors(folder):
        if folder.exists():
            if not overwrite:
                remedy = "choose another --out" + ("" if overwrite is None else ", or add --overwrite")
                raise InputError(f"The output {folder} exists already: {remedy}.")
            if not folder.is_dir() or not _holds_only_a_run(folder):
                raise InputError(f"The output {folder} holds more than a run's files, so it is not overwritten.")
            with locked(folder):
                _empty(folder)
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / PROBE
        probe.touch()
        probe.unlink()


def config_of(folder: Path) -> Path:
    """The config.yaml of a run's folder.

    Raises:
        InputError: there is none.
    """
    config = folder / CONFIG
    if not config.is_file():
        raise InputError(f"{folder} is not the folder of a run: give one with a {CONFIG}, as `train` writes it.")
    return config


def _holds_only_a_run(folder: Path) -> bool:
    if {entry.name for entry in folder.iterdir()} - {*_files(), *FOLDERS}:
        return False
    places = [folder / name for name in FOLDERS if (folder / name).exists()]
    return all(place.is_dir() and set(place.iterdir()) == _contents(place) for place in places)


def _files() -> set[str]:
    return {*FILES, *EVALUATIONS.values(), LOG, WANDB_ID, *LEFTOVERS}


def _contents(place: Path) -> set[Path]:
    """What a run has written to one of its folders."""
    return {path for pattern in FOLDERS[place.name] for path in place.glob(pattern)}


def _empty(folder: Path) -> None:
    for name in _files() - {LOCK}:
        (folder / name).unlink(missing_ok=True)
    for place in (folder / name for name in FOLDERS):
        if place.exists():
            for path in _contents(place):
                path.unlink()
            place.rmdir()


def write(folder: Path, record: RunRecord, prefix: str = "") -> None:
    """Writes episodes.npz and summary.json, each at once or not at all.

    Args:
        folder: an existing folder.
        record: the run.
        prefix: put before both names, where several runs share a folder.
    """
    content = io.BytesIO()
    np.savez_compressed(content, **record.arrays())  # pyright: ignore[reportArgumentType]
    write_bytes(folder / f"{prefix}{EPISODES}", content.getvalue())
    write_text(folder / f"{prefix}{SUMMARY}", json.dumps(record.summary(), indent=2, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a text file at once or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file at once or not at all."""
    partial = path.with_name(f".{path.name}")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
