"""How the time to get there grows with size: the exponent of a power law, where some never got there.

The logarithm of a time is a line over the logarithm of the size, plus a normal error; a seed that had not got there
when it was last seen counts with the probability of that (the censored regression of Tobin, 1958). Fitted by
expectation and maximization: the times that were not seen are replaced by what they are on average, given the line.
"""

from typing import NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Bool, Float

from uppertail.analysis.statistics import percentiles, resample
from uppertail.analysis.survival import Times

ITERATIONS, TOLERANCE = 2000, 1e-7
LEAST_ERROR = 1e-6
RESAMPLES = 500


class Growth(NamedTuple):
    """The exponent of time over size, and its 95% bootstrap interval, for which seeds are resampled in each size."""

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
        np.concatenate([np.arange(seen.at.size)[None], resample(seen.at.size, generator, RESAMPLES)])
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
    """Slope of the censored regression of each row."""
    centred = x - x.mean(axis=1, keepdims=True)
    spread = np.maximum((centred**2).sum(axis=1), 1e-300)
    filled, hidden = y, np.zeros_like(y)
    slope = np.zeros(x.shape[0])
    for _ in range(ITERATIONS):
        before, slope = slope, (centred * filled).sum(axis=1) / spread
        line = filled.mean(axis=1, keepdims=True) + slope[:, None] * centred
        variance = ((filled - line) ** 2 + hidden).mean(axis=1, keepdims=True)
        error = np.maximum(np.sqrt(variance), LEAST_ERROR)
        beyond = (y - line) / error
        # mean of a standard normal above `beyond`, from logarithms, since both may be tiny
        mean = np.exp(scipy.stats.norm.logpdf(beyond) - scipy.stats.norm.logsf(beyond))
        filled = np.where(happened, y, line + error * mean)
        hidden = np.where(happened, 0.0, error**2 * np.clip(1 + beyond * mean - mean**2, 0.0, 1.0))
        if np.abs(slope - before).max() < TOLERANCE:
            break
    return slope
