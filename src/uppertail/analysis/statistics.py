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
    """A number, or an array of them, and the ends of its 95% bootstrap interval over seeds."""

    value: Any
    low: Any
    high: Any


def bootstrap(samples: Sequence[np.ndarray], statistic: Callable[..., Any]) -> Interval:
    """A statistic and its percentile bootstrap interval (Efron, 1979), by SciPy; of one seed, three equal numbers.

    Seeds, the last axis, are resampled within each sample. With few seeds the interval is narrower than its name: five
    cannot show what a sixth might do. The statistic takes the samples and `axis`; copies of all seeds do not change it.
    """
    two = [sample.repeat(2, axis=-1) if sample.shape[-1] == 1 else sample for sample in samples]  # SciPy's least
    interval = scipy.stats.bootstrap(
        two, statistic, n_resamples=RESAMPLES, confidence_level=CONFIDENCE, axis=-1, method="percentile", rng=0
    ).confidence_interval
    return Interval(statistic(*samples, axis=-1), interval.low, interval.high)


def resample(seeds: int, generator: np.random.Generator) -> Int[np.ndarray, "_ _"]:
    """Which seeds each resample of a group has: a row for each, after a first row with each seed once."""
    return np.concatenate([np.arange(seeds)[None], generator.integers(seeds, size=(RESAMPLES, seeds))])


def percentiles(estimates: Float[np.ndarray, " resamples"]) -> Interval:
    """The interval of a number that was estimated from rows of `resample`; estimates that are NaN do not count."""
    return Interval(*(float(each) for each in (estimates[0], *np.nanquantile(estimates[1:], QUANTILES))))


def mean_interval(values: Sequence[float]) -> list[float]:
    """Mean over seeds, and the lower and upper end of its bootstrap interval, for a table."""
    return [round(float(bound), 4) for bound in bootstrap([np.asarray(values, np.float64)], np.mean)]


def share_interval(holds: Sequence[bool]) -> list[float]:
    """Share of the seeds for which something holds, and the lower and upper end of Wilson's 95% interval."""
    interval = scipy.stats.binomtest(sum(holds), len(holds)).proportion_ci(CONFIDENCE, method="wilson")
    return [round(float(bound), 4) for bound in (sum(holds) / len(holds), interval.low, interval.high)]


def learning_curve(
    seeds: list[Episodes], window: int, points: int = 200
) -> tuple[Float[np.ndarray, " points"], Interval]:
    """Mean return of the last `window` episodes (fewer at the start) at some episodes, as far as every seed got."""
    count = min(seed.returns.size for seed in seeds)
    episodes = np.unique(np.linspace(1, count, min(points, count)).round().astype(int))
    totals = [np.concatenate([[0.0], np.cumsum(seed.returns[:count], dtype=np.float64)]) for seed in seeds]
    start = np.maximum(episodes - window, 0)
    curves = np.stack([(total[episodes] - total[start]) / (episodes - start) for total in totals])
    return episodes.astype(np.float64), bootstrap([curves.T], np.mean)
