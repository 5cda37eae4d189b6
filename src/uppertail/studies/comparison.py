"""Is B better than A? Over the environments that both have been run in, with effects and intervals."""

from collections.abc import Mapping
from typing import Any

from uppertail.analysis.effects import difference_of_means, ratio_of_times
from uppertail.analysis.improvement import earlier_is_better, higher_is_better, improvement
from uppertail.errors import InputError
from uppertail.studies.runs import FINAL_RETURN, TIMES, Sample

SIGNIFICANT = 0.05


def compare(a: Mapping[str, Sample], b: Mapping[str, Sample]) -> dict[str, Any]:
    """For each metric, the probability that a run of B is better than one of A, and the effect.

    Args:
        a: environment to the seeds in it.
        b: likewise.

    Raises:
        InputError: they have no environment in common.
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
