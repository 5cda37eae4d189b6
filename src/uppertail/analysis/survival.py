"""Times until something happens, where some seeds were last seen before: Kaplan-Meier, and growth with size."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import scipy.stats
from jaxtyping import Bool, Float, Int

from uppertail.analysis.statistics import CONFIDENCE, QUANTILES, percentiles, resample, resample_counts

GROWTH_ITERATIONS, GROWTH_TOLERANCE, LEAST_ERROR, GROWTH_RESAMPLES = 2000, 1e-7, 1e-6, 500


class Times(NamedTuple):
    """When something happened to each seed; a seed to which it had not happened is censored.

    Args:
        at: the time of each seed, such as an episode.
        happened: whether it happened at that time; otherwise the seed was last seen then.
    """

    at: Float[np.ndarray, " seeds"]
    happened: Bool[np.ndarray, " seeds"]

    @classmethod
    def of(cls, found: Sequence[float | None], last: Sequence[int]) -> Self:
        """From the time of each seed, None where it did not happen, and from when each was last seen."""
        at = [float(end if each is None else each) for each, end in zip(found, last, strict=True)]
        return cls(np.array(at), np.array([each is not None for each in found]))


class Survival(NamedTuple):
    """The Kaplan-Meier estimate: for how many seeds it has not happened yet.

    Args:
        times: the times at which it happened, in order.
        share: share of the seeds to which it has not happened, from each time on.
        low, high: its 95% interval (Greenwood's variance, on the log-log scale).
    """

    times: Float[np.ndarray, " events"]
    share: Float[np.ndarray, " events"]
    low: Float[np.ndarray, " events"]
    high: Float[np.ndarray, " events"]


def kaplan_meier(seen: Times) -> Survival:
    """The estimate of Kaplan and Meier (1958), by SciPy; no interval where the share is 0."""
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
    counts = resample_counts(seen.at.size)
    estimates = medians(seen, np.concatenate([np.ones_like(counts[:1]), counts]))
    bounds = np.quantile(estimates[1:], QUANTILES, method="inverted_cdf")  # picks one: some may be infinite
    value, low, high = (float(bound) if np.isfinite(bound) else None for bound in (estimates[0], *bounds))
    return value, low, high


def medians(seen: Times, counts: Int[np.ndarray, "resamples seeds"]) -> Float[np.ndarray, " resamples"]:
    """Median of each resample; `counts` says how often each seed is in it. Infinite if it is never reached."""
    at, share = _shares(seen, counts)
    bounds = [
        np.where(reached.any(axis=1), at[reached.argmax(axis=1)], np.inf)
        for reached in (share <= 0.5 + 1e-9, share < 0.5 - 1e-9)
    ]
    return (bounds[0] + bounds[1]) / 2


def restricted_means(
    seen: Times, horizon: float, counts: Int[np.ndarray, "resamples seeds"]
) -> Float[np.ndarray, " resamples"]:
    """Mean of the time or the horizon, whichever comes first, in each resample: the area under its estimate."""
    at, share = _shares(seen, counts)
    edges = np.minimum(np.concatenate([[0.0], at, [np.inf]]), horizon)
    return edges[1] + share @ np.diff(edges[1:])


def _shares(
    seen: Times, counts: Int[np.ndarray, "resamples seeds"]
) -> tuple[Float[np.ndarray, " seeds"], Float[np.ndarray, "resamples seeds"]]:
    """The times in order, and after each of them the share to which it has not happened, in each resample."""
    order = np.lexsort([~seen.happened, seen.at])  # of equal times, those that happened come first
    counts = counts[:, order]
    at_risk = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
    return seen.at[order], np.cumprod(1 - seen.happened[order] * counts / np.maximum(at_risk, 1), axis=1)


class Growth(NamedTuple):
    """The exponent of a power law of time over size, and its 95% bootstrap interval, resampling seeds in each size."""

    exponent: float
    low: float
    high: float


def growth_exponent(sizes: dict[float, Times]) -> Growth | None:
    """The exponent; None unless some seed got there in each of two sizes or more.

    Args:
        sizes: size to the times of its seeds, all above 0.
    """
    if sum(bool(seen.happened.any()) for seen in sizes.values()) < 2:
        return None
    generator = np.random.default_rng(0)
    picks = [
        np.concatenate([np.arange(seen.at.size)[None], resample(seen.at.size, generator, GROWTH_RESAMPLES)])
        for seen in sizes.values()
    ]
    each = list(zip(sizes.items(), picks, strict=True))
    x = np.concatenate([np.full(pick.shape, np.log(size)) for (size, _), pick in each], axis=1)
    y = np.concatenate([np.log(seen.at)[pick] for (_, seen), pick in each], axis=1)
    happened = np.concatenate([seen.happened[pick] for (_, seen), pick in each], axis=1)
    enough = sum(seen.happened[pick].any(axis=1).astype(int) for (_, seen), pick in each) >= 2
    slopes = np.where(enough, _slopes(x, y, happened), np.nan)
    return Growth(float(slopes[0]), *percentiles(slopes[1:]))


def _slopes(
    x: Float[np.ndarray, "resamples seeds"],
    y: Float[np.ndarray, "resamples seeds"],
    happened: Bool[np.ndarray, "resamples seeds"],
) -> Float[np.ndarray, " resamples"]:
    """Slope of the censored regression of each row (Tobin, 1958), by expectation and maximization.

    The logarithm of a time is a line over the logarithm of the size, plus a normal error. Times that were not seen are
    replaced by what they are on average, given the line.
    """
    centred = x - x.mean(axis=1, keepdims=True)
    spread = np.maximum((centred**2).sum(axis=1), 1e-300)
    filled, hidden = y, np.zeros_like(y)
    slope = np.zeros(x.shape[0])
    for _ in range(GROWTH_ITERATIONS):
        before, slope = slope, (centred * filled).sum(axis=1) / spread
        line = filled.mean(axis=1, keepdims=True) + slope[:, None] * centred
        variance = ((filled - line) ** 2 + hidden).mean(axis=1, keepdims=True)
        error = np.maximum(np.sqrt(variance), LEAST_ERROR)
        beyond = (y - line) / error
        # mean of a standard normal above `beyond`, from logarithms, since both may be tiny
        mean = np.exp(scipy.stats.norm.logpdf(beyond) - scipy.stats.norm.logsf(beyond))
        filled = np.where(happened, y, line + error * mean)
        hidden = np.where(happened, 0.0, error**2 * np.clip(1 + beyond * mean - mean**2, 0.0, 1.0))
        if np.abs(slope - before).max() < GROWTH_TOLERANCE:
            break
    return slope
