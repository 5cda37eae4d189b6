"""What a run leaves behind, and its one schema."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from uppertail.records.episodes import Episodes, median_episode
from uppertail.records.folder import EPISODES, SUMMARY
from uppertail.records.writing import write_bytes, write_text


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """A run of several seeds: what was asked, what came out, what it cost.

    Args:
        environment: class name and settings of the environment.
        distribution: class name and settings of the return distribution, as fitted to the environment.
        policy: class name and settings of the exploration policy.
        network: class name and settings of the network.
        replay: class name and settings of the replay buffer.
        target: class name and settings of what bootstraps.
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
        measured_returns: lowest and highest return by episodes of a random policy; None where the range is known.
        outside_share: share of all targets whose mean was outside of what the distribution can represent.
    """

    environment: dict[str, Any]
    distribution: dict[str, Any]
    policy: dict[str, Any]
    network: dict[str, Any]
    replay: dict[str, Any]
    target: dict[str, Any]
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
    measured_returns: list[float] | None = None

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
    def longest_fall(self) -> list[int | None]:
        """For each seed, the most episodes in a row that failed after it was solved."""
        return [seed.longest_fall(self.success_return) for seed in self.episodes]

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
            "network": self.network,
            "replay": self.replay,
            "target": self.target,
            "settings": self.settings,
            "measured_returns": self.measured_returns,
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
            "kept": self.kept,
            "longest_fall": self.longest_fall,
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


def write(folder: Path, record: RunRecord, prefix: str = "") -> None:
    """Writes episodes.npz and summary.json, each at once or not at all; the second also where the first is too large.

    Args:
        folder: an existing folder.
        record: the run.
        prefix: put before both names, where several runs share a folder.

    Raises:
        OSError: one of them cannot be written.
    """
    content = io.BytesIO()
    np.savez_compressed(content, **record.arrays())  # pyright: ignore[reportArgumentType]
    try:
        write_bytes(folder / f"{prefix}{EPISODES}", content.getvalue())
    finally:
        write_text(folder / f"{prefix}{SUMMARY}", json.dumps(record.summary(), indent=2, allow_nan=False) + "\n")
