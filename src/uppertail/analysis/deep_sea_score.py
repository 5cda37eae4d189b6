"""bsuite's own score of DeepSea, and regret, from the returns of episodes (bsuite 0.3.6, experiments/deep_sea).

An episode is *bad* when it leaves the way to the treasure. bsuite looks at the share of bad episodes at certain ones,
evenly spaced on a logarithmic scale (`LOGGED`), and calls a size solved at the first of them where fewer than nine
tenths of all episodes until then were bad; in the stochastic version, where fewer than eight tenths were, from episode
100 on. The score is the share of sizes solved within 10,000 episodes and before 2^size + 100, which dithering needs.
"""

import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float

SIZES = tuple(range(10, 51, 2))
"""The sizes of bsuite's sweep, each played once."""

EPISODES = 10_000
"""The episodes of each size that count."""

BAD_SHARE, BAD_SHARE_STOCHASTIC = 0.9, 0.8
"""Below which share of bad episodes a size is solved."""

FIRST_STOCHASTIC = 100
"""The first episode at which the stochastic version can be solved."""

FORGIVENESS = 100
"""How many episodes beyond 2^size a solution may take."""

RATIOS = (10, 12, 14, 17, 20, 25, *range(30, 100, 10))

LOGGED = np.array([*range(1, 10), *(ratio * 10**power for power in range(3) for ratio in RATIOS), EPISODES])
"""The episodes at which bsuite writes down how many were bad: 1, 2, ... 10, 12, 14, 17, 20, 25, 30, 40, ..."""


def bad_episodes(returns: Float[np.ndarray, " episodes"], success_return: float) -> Bool[np.ndarray, " episodes"]:
    """Which episodes left the way to the treasure: without slips, those whose return is no success.

    Args:
        returns: undiscounted return of each episode.
        success_return: return from which one is a success; that of `DeepSea`.
    """
    return ~(returns >= success_return)


def average_bad(bad: Bool[np.ndarray, " episodes"]) -> Float[np.ndarray, " episodes"]:
    """The share of bad ones among the episodes until each; what bsuite draws as regret."""
    return np.cumsum(bad) / np.arange(1, bad.size + 1)


def solved_at(bad: Bool[np.ndarray, " episodes"], stochastic: bool = False) -> int | None:
    """The episode at which bsuite calls a size solved; None where it never does.

    Args:
        bad: which episodes were bad.
        stochastic: whether the environment is the stochastic version.
    """
    most, first = (BAD_SHARE_STOCHASTIC, FIRST_STOCHASTIC) if stochastic else (BAD_SHARE, 1)
    seen = LOGGED[(first <= LOGGED) & (bad.size >= LOGGED)]
    reached = seen[average_bad(bad)[seen - 1] < most]
    return int(reached[0]) if reached.size else None


def deep_sea_score(bad_of: Mapping[int, Bool[np.ndarray, "..."]], stochastic: bool = False) -> float:
    """The share of the sizes that are solved, and before 2^size + 100 episodes; in [0, 1], NaN without any size.

    Args:
        bad_of: for each size, which of its episodes were bad; bsuite's own score is of all `SIZES`.
        stochastic: whether the environments are the stochastic version.
    """
    solved = {size: solved_at(bad, stochastic) for size, bad in bad_of.items()}
    beaten = [episode is not None and episode < 2**size + FORGIVENESS for size, episode in solved.items()]
    return float(np.mean(beaten)) if beaten else math.nan


def regret(returns: Float[np.ndarray, " episodes"], best_return: float) -> Float[np.ndarray, " episodes"]:
    """How much more the best policy would have earned, summed up to each episode.

    Args:
        returns: undiscounted return of each episode.
        best_return: mean undiscounted return of the best policy; on the deterministic DeepSea 1 - move_cost.
    """
    return np.cumsum(best_return - returns.astype(np.float64))
