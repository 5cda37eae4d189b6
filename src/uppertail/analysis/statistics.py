"""Statistics over seeds, with intervals; of times, too, where some seeds were last seen before."""

import math
import statistics
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Bool, Float, Int

from uppertail.records import Episodes

CONFIDENCE = 0.95
QUANTILES = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
RESAMPLES = 2000

Rows = Float[np.ndarray, "resamples seeds"]
Picks = Int[np.ndarray, "resamples seeds"]  # the seeds of each resample


class Interval(NamedTuple):
    """A number, or an array of them, and the ends of its 95% bootstrap interval over seeds."""

    value: Any
    low: Any
    high: Any


def bootstrap(samples: Sequence[np.ndarray], statistic: Callable[..., Any]) -> Interval:
    """A statistic and its percentile bootstrap interval (Efron, 1979), as SciPy's; of one seed, three equal numbers.

    Seeds, the last axis, are resampled within each sample. With few seeds the interval is narrower than its name: five
    cannot show what a sixth might do. The statistic takes the samples and `axis`.
    """
    generator = np.random.default_rng(0)
    seeds = [sample.shape[-1] for sample in samples]
    picks = [generator.integers(count, size=(RESAMPLES, count)) for count in seeds]
    drawn = statistic(*(sample[..., rows] for sample, rows in zip(samples, picks, strict=True)), axis=-1)
    return Interval(statistic(*samples, axis=-1), *np.quantile(drawn, QUANTILES, axis=-1))


def resample(seeds: int, generator: np.random.Generator) -> Int[np.ndarray, "_ _"]:
    """Which seeds each resample of a group has: a row for each, after a first row with each seed once."""
    return np.concatenate([np.arange(seeds)[None], generator.integers(seeds, size=(RESAMPLES, seeds))])


def percentiles(estimates: Float[np.ndarray, " resamples"]) -> Interval:
    """The interval of a number that was estimated from rows of `resample`; estimates that are NaN do not count."""
    return Interval(*(float(each) for each in (estimates[0], *np.nanquantile(estimates[1:], QUANTILES))))


def significant(number: float) -> float:
    """Six digits of a number, as tables and charts have them, however small it is."""
    return float(f"{number:.6g}")


def mean_interval(values: Sequence[float]) -> list[float]:
    """Mean over seeds, and the lower and upper end of its bootstrap interval, for a table."""
    return [significant(bound) for bound in bootstrap([np.asarray(values, np.float64)], np.mean)]


def share_interval(holds: Sequence[bool]) -> list[float]:
    """Share of the seeds for which something holds, and the lower and upper end of Wilson's 95% interval."""
    count, share = len(holds), sum(holds) / len(holds)
    z2 = statistics.NormalDist().inv_cdf(QUANTILES[1]) ** 2
    center, half = 2 * count * share + z2, math.sqrt(z2 * (z2 + 4 * count * share * (1 - share)))
    low, high = ((center + side * half) / (2 * (count + z2)) for side in (-1, 1))
    return [round(bound, 4) for bound in (share, max(low, 0.0), min(high, 1.0))]


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


class Times(NamedTuple):
    """When something happened to each seed; a seed to which it had not happened is censored."""

    at: Float[np.ndarray, " seeds"]  # the time of each seed, such as an episode
    happened: Bool[np.ndarray, " seeds"]  # whether it happened at that time; otherwise the seed was last seen then

    @classmethod
    def of(cls, found: Sequence[float | None], last: Sequence[int]) -> Self:
        """From the time of each seed, None where it did not happen, and from when each was last seen."""
        at = [float(end if each is None else each) for each, end in zip(found, last, strict=True)]
        return cls(np.array(at), np.array([each is not None for each in found]))


class Survival(NamedTuple):
    """The Kaplan-Meier estimate: for how many seeds it has not happened yet."""

    times: Float[np.ndarray, " events"]  # the times at which it happened, in order
    share: Float[np.ndarray, " events"]  # share of the seeds to which it has not happened, from each time on
    low: Float[np.ndarray, " events"]  # its 95% interval: Greenwood's variance, on the log-log scale
    high: Float[np.ndarray, " events"]


def kaplan_meier(seen: Times) -> Survival:
    """The estimate of Kaplan and Meier (1958), by SciPy; no interval where the share is 0."""
    import scipy.stats  # imported late: it takes half a second

    times = np.unique(seen.at[seen.happened])
    data = scipy.stats.CensoredData(seen.at[seen.happened], right=seen.at[~seen.happened])
    estimate = scipy.stats.ecdf(data).sf
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # it warns where there is no interval
        band = estimate.confidence_interval(CONFIDENCE, method="log-log")
    share, low, high = (np.asarray(curve.evaluate(times)) for curve in (estimate, band.low, band.high))
    return Survival(times, share, np.where(share > 0, low, 0.0), np.where(share > 0, high, np.nan))


def median(seen: Times) -> tuple[float | None, float | None, float | None]:
    """Median time by Kaplan and Meier with its 95% bootstrap interval over seeds; None: later than any was seen.

    Where the share is exactly a half for a while, the median is the middle of that time, as for plain numbers.
    """
    estimates = medians(seen, resample(seen.at.size, np.random.default_rng(0)))
    bounds = np.quantile(estimates[1:], QUANTILES, method="inverted_cdf")  # picks one: some may be infinite
    value, low, high = (float(bound) if np.isfinite(bound) else None for bound in (estimates[0], *bounds))
    return value, low, high


def medians(seen: Times, picks: Picks) -> Float[np.ndarray, " resamples"]:
    """Median of each resample, by the seeds that it has. Infinite if it is never reached."""
    at, share = _shares(seen, picks)
    rows = np.arange(len(at))
    bounds = [
        np.where(reached.any(axis=1), at[rows, reached.argmax(axis=1)], np.inf)
        for reached in (share <= 0.5 + 1e-9, share < 0.5 - 1e-9)
    ]
    return (bounds[0] + bounds[1]) / 2


def restricted_means(seen: Times, horizon: float, picks: Picks) -> Float[np.ndarray, " resamples"]:
    """Mean of the time or the horizon, whichever comes first, in each resample: the area under its estimate."""
    at, share = _shares(seen, picks)
    edges = np.minimum(np.pad(at, ((0, 0), (0, 1)), constant_values=np.inf), horizon)
    return edges[:, 0] + (share * np.diff(edges, axis=1)).sum(axis=1)


def _shares(seen: Times, picks: Picks) -> tuple[Rows, Rows]:
    """The times of each resample in order, and after each of them the share to which it has not happened."""
    at, happened = seen.at[picks], seen.happened[picks]
    order = np.lexsort([~happened, at], axis=1)  # of equal times, those that happened come first
    left = np.arange(seen.at.size, 0, -1)
    return np.take_along_axis(at, order, 1), np.cumprod(1 - np.take_along_axis(happened, order, 1) / left, axis=1)


def growth_exponent(sizes: dict[float, Times]) -> Interval | None:
    """The exponent of a power law of the median time over size, by least squares of their logarithms.

    Sizes whose median was never reached are left out; None if fewer than two are left.
    """
    generator = np.random.default_rng(0)
    times = [medians(seen, resample(seen.at.size, generator)) for seen in sizes.values()]
    y = np.ma.masked_invalid(np.log(times))  # [sizes, resamples]
    if y[:, 0].count() < 2:
        return None
    x = np.ma.array(np.broadcast_to(np.log([*sizes])[:, None], y.shape), mask=np.ma.getmaskarray(y))
    centered = x - x.mean(axis=0)
    return percentiles(((centered * y).sum(axis=0) / (centered**2).sum(axis=0)).filled(np.nan))
