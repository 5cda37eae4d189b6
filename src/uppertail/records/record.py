"""The record of a run: what its summary.json and episodes.npz hold."""

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Float

from uppertail.records.episodes import FINAL_WINDOW, Episodes, median_episode
from uppertail.records.summary import summary_of

SIZES = ("length", "size", "map_name")
"""Settings of environments that say how large they are."""


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """A run of several seeds: its settings, its results and its cost.

    Args:
        asked: class name and settings of the environment and of each part of the method, the settings of the training
            run, and `measured_returns`: lowest and highest return by episodes of a random policy, None if known.
        success_return: return from which an episode counts as a success.
        floor_episodes: episode in which an agent of perfect memory first succeeds, on average; None where not known.
        episodes: finished episodes of each seed.
        env_steps: environment steps of each seed within its limits.
        greedy_returns: mean return of 20 greedy episodes at the end, for each seed; NaN if an environment failed.
        wall_seconds: time of the whole run, compilation and evaluation included.
        compile_seconds: time of compilation.
        training_seconds: time in the compiled training loop.
        interrupted: whether the run was stopped before its limits.
        diverged: seed and environment step of a loss that was not finite; None in a sound run.
        hardware: the machine and the versions of packages.
        stopped: why the run's callback stopped it before its limits; None if it did not.
        failed: why an environment could not go on; None in a sound run.
        outside_share: share of all targets whose mean was outside the range that the distribution can represent.
        compilations: programs that its last process compiled; others were in that process or on disk.
    """

    asked: dict[str, Any]
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
    compilations: int = 0

    @property
    def has_success(self) -> bool:
        """Whether success is defined."""
        return bool(np.isfinite(self.success_return))

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
        last = [seed.returns[-FINAL_WINDOW:] for seed in self.episodes]
        return [float(np.mean(each, dtype=np.float64)) if each.size else None for each in last]

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

    @property
    def success(self) -> dict[str, Any] | None:
        """What counts as a success and as solved, in words; None where success is not defined."""
        if not self.has_success:
            return None
        return {
            "return": self.success_return,
            "meaning": f"an episode succeeds whose undiscounted return is at least {self.success_return:g}",
            "solved": "the mean return of 50 episodes in a row reaches that but for a tenth of it",
        }

    def summary(self) -> dict[str, Any]:
        """The contents of summary.json."""
        return summary_of(self)

    def arrays(self) -> dict[str, Float[np.ndarray, "seeds episodes"]]:
        """The contents of episodes.npz: `return`, `length` and `step`, padded with NaN to the largest count."""
        columns = {"return": "returns", "length": "lengths", "step": "end_steps"}
        count = max((seed.returns.size for seed in self.episodes), default=0)
        padded = {name: np.full((len(self.episodes), count), np.nan) for name in columns}
        for row, seed in enumerate(self.episodes):
            for name, field in columns.items():
                values = getattr(seed, field)
                padded[name][row, : values.size] = values
        return padded


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
