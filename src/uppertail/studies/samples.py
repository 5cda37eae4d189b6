"""The seeds of runs as samples, and whether those of B are better than those of A, with effects and intervals."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from uppertail.analysis.improvement import (
    difference_of_means,
    earlier_is_better,
    higher_is_better,
    improvement,
    ratio_of_times,
)
from uppertail.analysis.survival import Times
from uppertail.errors import InputError
from uppertail.records import FINAL_WINDOW, RunFolder

FIRST_SUCCESS, SOLVED, FINAL_RETURN = "first_success", "solved", "final_return"
TIMES = {FIRST_SUCCESS: "first_success_episode", SOLVED: "solved_episode"}
"""The metrics that are counted in episodes, and their entries in summary.json."""
SIGNIFICANT = 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """The results of one method's seeds in one environment.

    Args:
        times: first success and solved, in episodes; a seed that never got there is censored at its last one.
        final_return: mean return of each seed's last 100 episodes; seeds that finished none are left out.
    """

    times: Mapping[str, Times]
    final_return: Float[np.ndarray, " seeds"]

    @classmethod
    def of(cls, runs: Iterable[RunFolder]) -> "Sample":
        """The seeds of one or several runs."""
        each = list(runs)
        last = [max(1, seed.returns.size) for run in each for seed in run.episodes]
        times = {
            metric: Times.of([episode for run in each for episode in run.summary[key]], last)
            for metric, key in TIMES.items()
        }
        ends = [seed.returns[-FINAL_WINDOW:] for run in each for seed in run.episodes if seed.returns.size]
        return cls(times, np.array([end.mean(dtype=np.float64) for end in ends], np.float64))


def compare(a: Mapping[str, Sample], b: Mapping[str, Sample]) -> dict[str, Any]:
    """For each metric, the probability that a run of B is better than one of A, and the effect.

    Args:
        a: environment to A's seeds in it.
        b: the same of B.
    """
    shared = [name for name in a if name in b]
    if not shared:
        raise InputError(
            f"A was run in {'; '.join(a)}, and B in {'; '.join(b)}: only runs in the same environment can be compared."
        )
    document: dict[str, Any] = {"environments": shared, "left_out": [name for name in {**a, **b} if name not in shared]}
    for metric in TIMES:
        pairs = [(a[name].times[metric], b[name].times[metric]) for name in shared]
        document[metric] = {
            **_round(improvement([earlier_is_better(*pair) for pair in pairs])._asdict()),
            "ratio": _round(ratio_of_times(pairs)._asdict()),
        }
    returns = [(a[name].final_return, b[name].final_return) for name in shared]
    if all(values.size for pair in returns for values in pair):
        document[FINAL_RETURN] = {
            **_round(improvement([higher_is_better(*pair) for pair in returns])._asdict()),
            "difference": _round(difference_of_means(returns)._asdict()),
        }
    return document


def verdict(found: Mapping[str, float]) -> str:
    """The verdict of a metric, in a word or two: the interval and the permutation test must agree."""
    if found["p_value"] < SIGNIFICANT and not found["low"] <= 0.5 <= found["high"]:
        return "B is better" if found["probability"] > 0.5 else "A is better"
    return "not told apart"


def _round(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in numbers.items()}
