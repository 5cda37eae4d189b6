"""Is B better than A? The probability that a run of B is, with its interval (Agarwal et al., 2021, Section 4.3)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from uppertail.analysis.statistics import RESAMPLES, Interval, bootstrap, percentiles, resample
from uppertail.analysis.survival import Times, restricted_means

DEALS = 10_000  # random deals of the permutation test


class Scores(NamedTuple):
    """All runs of an environment against all, those of A first."""

    scores: Float[np.ndarray, "runs runs"]  # 1 if the second is better, 0 if the first, 1/2 if neither is known to be
    first: int  # how many of them are A's

    @property
    def between(self) -> Float[np.ndarray, "first second"]:
        """Scores of A's runs against B's."""
        return self.scores[: self.first, self.first :]


class Improvement(NamedTuple):
    """How B compares with A."""

    probability: float  # that a run of B is better than one of A, in the same environment; mean over environments
    low: float  # its 95% interval, by resampling seeds within each environment
    high: float
    p_value: float  # how often runs that are dealt to A and B at random, within each environment, differ as much


def higher_is_better(a: Float[np.ndarray, " first"], b: Float[np.ndarray, " second"]) -> Scores:
    """Scores of returns."""
    each = np.concatenate([a, b])
    return Scores((np.sign(each[None, :] - each[:, None]) + 1) / 2, a.size)


def earlier_is_better(a: Times, b: Times) -> Scores:
    """Scores of times, some censored: a run that got there is earlier than one that had not by then (Gehan, 1965).

    Where that cannot be known, as neither got there or one was last seen before the other got there, it is 1/2.
    """
    at, happened = (np.concatenate(both) for both in zip(a, b, strict=True))
    later = (at[:, None] > at) | ((at[:, None] == at) & ~happened[:, None])
    second = later & happened
    return Scores((second.astype(np.float64) - second.T + 1) / 2, a.at.size)


def improvement(environments: Sequence[Scores]) -> Improvement:
    """Probability of improvement over environments, which all count equally."""
    generator = np.random.default_rng(0)
    estimates, dealt = np.zeros(1 + RESAMPLES), np.zeros(DEALS)
    for each in environments:
        rows, columns = (resample(seeds, generator) for seeds in each.between.shape)
        estimates += each.between[rows[:, :, None], columns[:, None, :]].mean(axis=(1, 2)) / len(environments)
        deals = generator.permuted(np.tile(np.arange(len(each.scores)), (DEALS, 1)), axis=1)
        a, b = deals[:, : each.first, None], deals[:, None, each.first :]
        dealt += each.scores[a, b].mean(axis=(1, 2)) / len(environments)
    found = percentiles(estimates)
    extreme = np.abs(dealt - 0.5) >= abs(found.value - 0.5) - 1e-9
    # the observed runs count as one of the deals, so that p is never 0
    return Improvement(*found, float((extreme.sum() + 1) / (DEALS + 1)))


def ratio_of_times(environments: Sequence[tuple[Times, Times]]) -> Interval:
    """Mean time of B over that of A, geometric mean over environments: below 1, B is faster.

    The means are restricted: each run counts until the last time at which both A and B were seen, at most.
    """
    generator, logarithms = np.random.default_rng(0), np.zeros(1)
    for a, b in environments:
        until = [seen.at.max() for seen in (a, b) if not seen.happened.all()]  # where all got there, all was seen
        horizon = min(until, default=max(a.at.max(), b.at.max()))
        means = [restricted_means(seen, horizon, resample(seen.at.size, generator)) for seen in (a, b)]
        logarithms = logarithms + np.log(means[1] / means[0]) / len(environments)
    return percentiles(np.exp(logarithms))


def difference_of_means(environments: Sequence[tuple[np.ndarray, np.ndarray]]) -> Interval:
    """Mean of B less that of A, mean over environments."""

    def difference(*values: np.ndarray, axis: int) -> Any:
        means = [each.mean(axis=axis) for each in values]
        return np.mean([b - a for a, b in zip(means[::2], means[1::2], strict=True)], axis=0)

    return Interval(*map(float, bootstrap([values for pair in environments for values in pair], difference)))
