"""Statistics over seeds, with intervals."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Float, Int

from uppertail.records import Episodes

CONFIDENCE = 0.95
QUANTILES = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
RESAMPLES = 2000


class Interval(NamedTuple):
    """A mean over seeds and its 95% interval; three equal numbers if there is one seed."""

    mean: Float[np.ndarray, " points"]
    low: Float[np.ndarray, " points"]
    high: Float[np.ndarray, " points"]


def bootstrap_mean(values: Float[np.ndarray, "seeds points"]) -> Interval:
    """Mean over seeds with a percentile bootstrap interval (seeds resampled with replacement).

    With few seeds it is narrower than its name: five seeds cannot show what a sixth might do.
    """
    return Interval(values.mean(axis=0), *bootstrap([values.T], np.mean))


def bootstrap(samples: Sequence[np.ndarray], statistic: Callable[..., Any]) -> tuple[Any, Any]:
    """The ends of a statistic's percentile bootstrap interval.

    Args:
        samples: values of the seeds of each group, seeds last; they are resampled within each group.
        statistic: takes the samples and `axis`; copies of all seeds of a group do not change it.
    """
    two = [sample.repeat(2, axis=-1) if sample.shape[-1] == 1 else sample for sample in samples]  # SciPy's least
    interval = scipy.stats.bootstrap(
        two, statistic, n_resamples=RESAMPLES, confidence_level=CONFIDENCE, axis=-1, method="percentile", rng=0
    ).confidence_interval
    return interval.low, interval.high


def mean_interval(values: Sequence[float]) -> list[float]:
    """Mean over seeds, and the lower and upper end of its bootstrap interval, for a table."""
    return [round(float(bound[0]), 4) for bound in bootstrap_mean(np.asarray(values, np.float64)[:, None])]


def share_interval(holds: Sequence[bool]) -> list[float]:
    """Share of the seeds for which something holds, and the lower and upper end of Wilson's 95% interval."""
    interval = scipy.stats.binomtest(sum(holds), len(holds)).proportion_ci(CONFIDENCE, method="wilson")
    return [round(float(bound), 4) for bound in (sum(holds) / len(holds), interval.low, interval.high)]


def learning_curve(
    seeds: list[Episodes], window: int, points: int = 200
) -> tuple[Float[np.ndarray, " points"], Interval]:
    """Mean return of the last `window` episodes against the episode, as far as every seed got.

    Args:
        seeds: finished episodes of each seed; at least one each.
        window: episodes to average over; fewer at the start of a curve.
        points: how many episodes to show.
    """
    count = min(seed.returns.size for seed in seeds)
    episodes = np.unique(np.linspace(1, count, min(points, count)).round().astype(int))
    totals = [np.concatenate([[0.0], np.cumsum(seed.returns[:count], dtype=np.float64)]) for seed in seeds]
    start = np.maximum(episodes - window, 0)
    curves = np.stack([(total[episodes] - total[start]) / (episodes - start) for total in totals])
    return episodes.astype(np.float64), bootstrap_mean(curves)


def resample(seeds: int, generator: np.random.Generator, resamples: int = RESAMPLES) -> Int[np.ndarray, "_ _"]:
    """Which seeds each resample of a group has, one row for each resample."""
    return generator.integers(seeds, size=(resamples, seeds))


def resample_counts(seeds: int, stream: int = 0) -> Int[np.ndarray, "_ _"]:
    """How many times each resample has each seed; those of another stream are independent."""
    return np.random.default_rng(stream).multinomial(seeds, np.full(seeds, 1 / seeds), size=RESAMPLES)


def percentiles(estimates: Float[np.ndarray, " resamples"]) -> tuple[float, float]:
    """The 95% interval of a number from its bootstrap estimates; those that are NaN do not count."""
    low, high = np.nanquantile(estimates, QUANTILES)
    return float(low), float(high)


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
