"""Performance profiles: which share of runs reaches at least a score (Agarwal et al., 2021, Section 4.2)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from uppertail.analysis.resampling import QUANTILES, resample
from uppertail.analysis.statistics import RESAMPLES


class Profile(NamedTuple):
    """The share of runs with a score of at least each of some thresholds, mean over environments, and its 95% band."""

    thresholds: Float[np.ndarray, " thresholds"]
    share: Float[np.ndarray, " thresholds"]
    low: Float[np.ndarray, " thresholds"]
    high: Float[np.ndarray, " thresholds"]


def performance_profile(
    scores: Sequence[Float[np.ndarray, " _"]], thresholds: Float[np.ndarray, " thresholds"]
) -> Profile:
    """The profile of a method.

    Args:
        scores: of its runs in each environment; seeds are resampled within each.
        thresholds: the scores to reach.
    """
    generator = np.random.default_rng(0)
    reached = [(score[:, None] >= thresholds).astype(np.float64) for score in scores]
    estimates = np.zeros((RESAMPLES, thresholds.size))
    for each in reached:
        estimates += each[resample(each.shape[0], generator)].mean(axis=1)
    low, high = np.quantile(estimates / len(scores), QUANTILES, axis=0)
    return Profile(thresholds, np.mean([each.mean(axis=0) for each in reached], axis=0), low, high)
