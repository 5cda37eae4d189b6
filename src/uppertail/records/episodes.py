"""The episodes of a run, and when they count as solved."""

import dataclasses
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float, Int

SOLVED_WINDOW = 50
SOLVED_SHARE = 0.9
FINAL_WINDOW = 100

COLUMNS = {"return": "returns", "length": "lengths", "step": "end_steps"}
"""The arrays of episodes.npz, each [seeds, episodes] and padded with NaN, and the fields of `Episodes`."""
KINDS = (np.float32, np.int64, np.int64)  # their types within `Episodes`


@dataclasses.dataclass(frozen=True)
class Episodes:
    """The finished episodes of one seed, in order."""

    returns: Float[np.ndarray, " episodes"]  # undiscounted
    lengths: Int[np.ndarray, " episodes"]  # in environment steps
    end_steps: Int[np.ndarray, " episodes"]  # environment step of the run at which each ended

    @classmethod
    def none(cls) -> Self:
        return cls(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> list[Self]:
        """The inverse of `arrays_of`."""
        rows = zip(*(arrays[name] for name in COLUMNS), strict=True)
        return [
            cls(*(column[~np.isnan(column)].astype(kind) for column, kind in zip(row, KINDS, strict=True)))
            for row in rows
        ]

    def extended(
        self,
        ended: Bool[np.ndarray, " steps"],
        returns: Float[np.ndarray, " steps"],
        lengths: Int[np.ndarray, " steps"],
        first_step: int,
        repeats: int = 1,
    ) -> "Episodes":
        """These episodes and those that ended in a block of actions, each of which is taken for `repeats` steps.

        The first action ended with step `first_step` of the run.
        """
        at = np.flatnonzero(ended)
        return Episodes(
            np.concatenate([self.returns, returns[at]]),
            np.concatenate([self.lengths, lengths[at].astype(np.int64)]),
            np.concatenate([self.end_steps, first_step + repeats * at]),
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
        """Number of the first episode at which the mean return of the last 50 is within a tenth of a success."""
        return self.reached(solved_return(success_return))

    def reached(self, mean_return: float) -> int | None:
        """Number of the first episode at which the mean return of the last 50 is at least this."""
        if self.returns.size < SOLVED_WINDOW:
            return None
        totals = np.cumsum(np.concatenate([[0.0], self.returns.astype(np.float64)]))
        means = (totals[SOLVED_WINDOW:] - totals[:-SOLVED_WINDOW]) / SOLVED_WINDOW
        reached = np.flatnonzero(means >= mean_return - 1e-9)
        return int(reached[0]) + SOLVED_WINDOW if reached.size else None

    def kept(self, success_return: float) -> float | None:
        """Share of all episodes after the seed was solved that succeed; None if it was not, or none followed."""
        after = self._after_solved(success_return)
        return float(np.mean(after)) if after.size else None

    def longest_fall(self, success_return: float) -> int | None:
        """The most episodes in a row that failed after the seed was solved; None where `kept` is."""
        after = self._after_solved(success_return)
        if not after.size:
            return None
        ends = np.flatnonzero(np.concatenate([[True], after, [True]]))
        return int(np.max(np.diff(ends))) - 1

    def _after_solved(self, success_return: float) -> Bool[np.ndarray, " episodes"]:
        """Which of the episodes after the seed was solved succeed."""
        solved = self.solved(success_return)
        return (self.returns if solved is not None else self.returns[:0])[solved or 0 :] >= success_return

    def final_return(self) -> float | None:
        """Mean return of the last 100 episodes; None before the first one."""
        last = self.returns[-FINAL_WINDOW:]
        return float(np.mean(last, dtype=np.float64)) if last.size else None

    def final_success_rate(self, success_return: float) -> float | None:
        """Share of the last 100 episodes that succeed; None before the first one, or if success is not defined."""
        last = self.returns[-FINAL_WINDOW:]
        return float(np.mean(last >= success_return)) if last.size and np.isfinite(success_return) else None


def solved_return(success_return: float) -> float:
    """The mean return from which 50 episodes count as solved."""
    return success_return - (1 - SOLVED_SHARE) * abs(success_return)


def arrays_of(episodes: Sequence[Episodes]) -> dict[str, Float[np.ndarray, "seeds episodes"]]:
    """The contents of episodes.npz."""
    padded = np.full((len(COLUMNS), len(episodes), max((seed.returns.size for seed in episodes), default=0)), np.nan)
    for row, seed in enumerate(episodes):
        padded[:, row, : seed.returns.size] = [getattr(seed, field) for field in COLUMNS.values()]
    return dict(zip(COLUMNS, padded, strict=True))


def median_episode(episodes: list[int | None]) -> float | None:
    """Median over seeds, where a seed that never got there counts as later than all others; None if it is never."""
    median = float(np.median([np.inf if episode is None else episode for episode in episodes]))
    return median if np.isfinite(median) else None


def episode_text(value: float | None, form: str = ",.0f") -> str:
    """A number of episodes, or of something counted in them, as a table shows it; None is never."""
    return "never" if value is None else format(value, form)


def table_of(seeds: Sequence[int], episodes: Sequence[Episodes]) -> Any:
    """The table of `TrainingResult.episodes`."""
    counts = [each.returns.size for each in episodes]
    columns = {
        "seed": np.repeat(np.asarray(seeds, np.int64), counts),
        "episode": np.concatenate([np.arange(1, count + 1) for count in counts]),
        **{name: np.concatenate([getattr(each, field) for each in episodes]) for name, field in COLUMNS.items()},
    }
    if importlib.util.find_spec("pandas") is not None:
        import pandas  # pyright: ignore[reportMissingImports]

        return pandas.DataFrame(columns)
    return np.rec.fromarrays([*columns.values()], dtype=[(name, column.dtype) for name, column in columns.items()])
