"""How much better B is than A, with 95% bootstrap intervals: seeds are resampled within each environment."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from uppertail.analysis.resampling import percentiles, resample_counts
from uppertail.analysis.statistics import bootstrap
from uppertail.analysis.survival import Times, restricted_means


class Effect(NamedTuple):
    """An effect and its 95% interval."""

    value: float
    low: float
    high: float


def ratio_of_times(environments: Sequence[tuple[Times, Times]]) -> Effect:
    """Mean time of B over that of A, geometric mean over environments: below 1, B is faster.

    The means are restricted: each run counts until the last time at which both A and B were seen, at most.

    Args:
        environments: the times of A and B in each.
    """
    logarithms = np.zeros(1)
    for number, (a, b) in enumerate(environments):
        horizon = min(_seen_until(a), _seen_until(b))
        if not np.isfinite(horizon):
            horizon = max(a.at.max(), b.at.max())
        means = [restricted_means(seen, horizon, _counts(seen, 2 * number + k)) for k, seen in enumerate((a, b))]
        logarithms = logarithms + np.log(means[1] / means[0]) / len(environments)
    ratios = np.exp(logarithms)
    return Effect(float(ratios[0]), *percentiles(ratios[1:]))


def difference_of_means(
    environments: Sequence[tuple[Float[np.ndarray, " _"], Float[np.ndarray, " _"]]],
) -> Effect:
    """Mean of B less that of A, mean over environments.

    Args:
        environments: the values of A and B in each, higher for better.
    """

    def difference(*values: np.ndarray, axis: int = -1) -> Any:
        means = [each.mean(axis=axis) for each in values]
        return np.mean([b - a for b, a in zip(means[::2], means[1::2], strict=True)], axis=0)

    samples = [values for a, b in environments for values in (b, a)]
    low, high = bootstrap(samples, difference)
    return Effect(float(difference(*samples)), float(low), float(high))


def _seen_until(seen: Times) -> float:
    """The time until which a group was observed; infinite if all got there."""
    return np.inf if seen.happened.all() else float(seen.at.max())


def _counts(seen: Times, stream: int) -> np.ndarray:
    """How often each seed counts: once in the first row, then by resamples."""
    counts = resample_counts(seen.at.size, stream=stream)
    return np.concatenate([np.ones_like(counts[:1]), counts])
