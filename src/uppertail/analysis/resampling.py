"""Bootstrap resamples of seeds: with replacement, and within each group by itself (stratified)."""

import numpy as np
from jaxtyping import Float, Int

from uppertail.analysis.statistics import CONFIDENCE, RESAMPLES

QUANTILES = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


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
