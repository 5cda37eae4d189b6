"""Performance profiles: which share of runs reaches at least a score (Agarwal et al., 2021, Section 4.2)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from uppertail.analysis.statistics import bootstrap


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

    def share(*reached: np.ndarray, axis: int = -1) -> Any:
        return np.mean([each.mean(axis=axis) for each in reached], axis=0)

    reached = [(score >= thresholds[:, None]).astype(np.float64) for score in scores]
    return Profile(thresholds, share(*reached), *bootstrap(reached, share))
