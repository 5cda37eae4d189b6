"""The episodes of a run, and when they count as solved."""

import dataclasses
import importlib.util
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float, Int

SOLVED_WINDOW = 50
SLACK = 0.1
ROUNDED = 1e-5
"""What sums of rewards in 32 bits may lose, as a share of the mark: a hundred rewards of 0.01 are below 1."""
ROUNDED_AT_0 = 1e-6
"""The same in units of return, where the mark is 0, of rewards near 1."""
FINAL_WINDOW = 100

COLUMNS = {"return": "returns", "length": "lengths", "step": "end_steps"}
"""The arrays of episodes.npz, each [seeds, episodes] and padded with NaN, and the fields of `Episodes`."""
KINDS = (np.float32, np.int64, np.int64)  # their types within `Episodes`


@dataclasses.dataclass(frozen=True)
class Success:
    """When episodes are a success, by their undiscounted returns, and when a seed is solved.

    If single episodes are judged, each succeeds from `least` on, and a seed is solved once the mean of 50 is at most a
    tenth below. If the mean of several `episodes` in a row is judged, as the threshold of an environment of Gymnasium
    is meant, a seed is solved once their mean is `least`, and succeeds as long as it is at most a tenth below, since
    the mean of so few goes up and down by chance.
    """

    least: float = math.inf  # infinite: success is not defined
    episodes: int = 1

    @property
    def is_defined(self) -> bool:
        return math.isfinite(self.least)

    @property
    def near(self) -> float:
        """A tenth below the return that is asked for."""
        return self.least - SLACK * abs(self.least)

    @property
    def mark(self) -> float:
        """From where on an episode, or the mean of the last ones, is a success."""
        return self.least if self.episodes == 1 else self.near

    @property
    def solved_mark(self) -> float:
        """The mean return of `window` episodes from which a seed is solved."""
        return self.near if self.episodes == 1 else self.least

    @property
    def window(self) -> int:
        return SOLVED_WINDOW if self.episodes == 1 else self.episodes

    @property
    def in_words(self) -> str:
        """What a success is."""
        if self.episodes == 1:
            return f"an episode succeeds whose undiscounted return is at least {self.mark:g}"
        return f"the last {self.episodes} episodes succeed if their mean undiscounted return is at least {self.mark:g}"

    @property
    def solved_in_words(self) -> str:
        """When a seed is solved."""
        if self.episodes == 1:
            return f"the mean return of {self.window} episodes in a row reaches that but for a tenth of it"
        return f"the mean return of {self.window} episodes in a row is at least {self.solved_mark:g}"

    def judged(self, returns: Float[np.ndarray, " episodes"]) -> Bool[np.ndarray, " judged"]:
        """Whether each episode succeeds or, from the first on before which there were enough, the last ones do."""
        return at_least(means(returns, self.episodes), self.mark)

    def rate(self, returns: Float[np.ndarray, "seeds episodes"]) -> Float[np.ndarray, " seeds"]:
        """Share of successes among episodes played after training: a mean, if it is judged, is that of all of them."""
        judged = returns if self.episodes == 1 else returns.mean(axis=1, keepdims=True, dtype=np.float64)
        return at_least(judged, self.mark).mean(axis=1)


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

    def first_success(self, success: Success) -> int | None:
        """Number of the first episode, counted from 1, that succeeds or with which the last ones do."""
        successes = np.flatnonzero(success.judged(self.returns))
        return int(successes[0]) + success.episodes if successes.size else None

    def solved(self, success: Success) -> int | None:
        """Number of the first episode at which the seed is solved."""
        return self.reached(success.solved_mark, success.window)

    def reached(self, mean_return: float, window: int = SOLVED_WINDOW) -> int | None:
        """Number of the first episode at which the mean return of the last ones is at least this."""
        reached = np.flatnonzero(at_least(means(self.returns, window), mean_return))
        return int(reached[0]) + window if reached.size else None

    def kept(self, success: Success) -> float | None:
        """Share of successes at all episodes after the seed was solved; None if it was not, or none followed."""
        after = self._after_solved(success)
        return float(np.mean(after)) if after.size else None

    def longest_fall(self, success: Success) -> int | None:
        """The most episodes in a row without success after the seed was solved; None where `kept` is."""
        after = self._after_solved(success)
        if not after.size:
            return None
        ends = np.flatnonzero(np.concatenate([[True], after, [True]]))
        return int(np.max(np.diff(ends))) - 1

    def _after_solved(self, success: Success) -> Bool[np.ndarray, " episodes"]:
        """At which of the episodes after the seed was solved there is success."""
        solved = self.solved(success)
        judged = success.judged(self.returns)
        return judged[:0] if solved is None else judged[solved + 1 - success.episodes :]

    def final_return(self) -> float | None:
        """Mean return of the last 100 episodes; None before the first one."""
        last = self.returns[-FINAL_WINDOW:]
        return float(np.mean(last, dtype=np.float64)) if last.size else None

    def final_success_rate(self, success: Success) -> float | None:
        """Share of successes at the last 100 episodes; None before the first judgment, or if success is not defined."""
        last = success.judged(self.returns[1 - success.episodes - FINAL_WINDOW :])
        return float(np.mean(last)) if last.size and success.is_defined else None


def means(returns: Float[np.ndarray, " episodes"], window: int) -> Float[np.ndarray, " judged"]:
    """Mean return of each `window` episodes in a row; of single ones, their returns as they are."""
    if window == 1 or returns.size < window:
        return returns[: returns.size if window == 1 else 0]
    totals = np.cumsum(np.concatenate([[0.0], returns.astype(np.float64)]))
    return (totals[window:] - totals[:-window]) / window


def at_least(returns: Any, mark: float) -> Any:
    """Whether returns, or means of them, reach a mark, up to what sums in 32 bits may lose."""
    return returns >= mark - (ROUNDED * abs(mark) if mark else ROUNDED_AT_0)


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


def episode_text(value: float | None, form: str | None = None) -> str:
    """A number of episodes, which may end with a half, or of something counted in them, in a table; None is never."""
    if value is None:
        return "never"
    return format(value, form) if form else f"{value:,.1f}".removesuffix(".0")


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
