"""How well a learned distribution of the return predicts returns, compared with the exact distribution.

The learned distribution is given by draws from it, so that every family, and every mixture over members, is judged
alike.
"""

from typing import NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Float

from uppertail.exact.discrete import ExactReturn

INTERVALS = (0.5, 0.8, 0.95)
"""Learned central intervals whose exact mass is reported."""

Draws = Float[np.ndarray, " draws"]


class Score(NamedTuple):
    """The continuous ranked probability score, in units of return: the lower, the better.

    Args:
        learned: the score of the learned distribution, a mean over exact returns.
        best: the score of the exact distribution itself; no other is lower.
    """

    learned: float
    best: float


def coverage(exact: ExactReturn, draws: Draws, level: float, tolerance: float = 0.0) -> float:
    """The exact probability of the learned distribution's central interval, which should be `level`.

    Args:
        exact: the exact distribution.
        draws: draws from the learned one.
        level: how much of the learned mass is in the interval.
        tolerance: how far beyond its ends counts as inside, in units of return: a certain return is a single point,
            which the interval of a continuous family may just miss.
    """
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    inside = (exact.atoms >= low - tolerance) & (exact.atoms <= high + tolerance)
    return float(exact.probabilities[inside].sum())


def cramer(exact: ExactReturn, draws: Draws) -> float:
    """Cramér distance, the square root of the integral of (F - G)^2, to the distribution that gave the draws."""
    return float(scipy.stats.energy_distance(exact.atoms, draws, exact.probabilities) / np.sqrt(2.0))


def crps(exact: ExactReturn, draws: Draws) -> Score:
    """E over exact returns y of the integral of (F(z) - 1{y <= z})^2, where F is the learned distribution function.

    It is the integral of (F - G)^2, the squared Cramér distance to the exact G, plus that of G (1 - G).
    """
    below = np.cumsum(exact.probabilities)[:-1]
    best = float(np.sum(below * (1 - below) * np.diff(exact.atoms)))
    return Score(cramer(exact, draws) ** 2 + best, best)


def reliability(exact: ExactReturn, draws: Draws, levels: Float[np.ndarray, " levels"]) -> Float[np.ndarray, " levels"]:
    """The exact probability of a return below each learned quantile; equal to the levels where both agree.

    Half of an atom at the quantile itself counts as below.
    """
    quantiles = np.quantile(draws, levels)
    return np.array([exact.probabilities @ (0.5 * (exact.atoms < q) + 0.5 * (exact.atoms <= q)) for q in quantiles])
