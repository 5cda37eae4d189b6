"""When a run on MiniGrid counts as solved; without minigrid itself, so that figures of past runs need not have it."""

import numpy as np
from jaxtyping import Float, Int

SHARE = 0.9
"""The share of the best return that counts as solved."""

LAST = 20
"""Training episodes whose mean return has to reach it."""


def last_means(returns: Float[np.ndarray, " episodes"]) -> Float[np.ndarray, " points"]:
    """The mean return of the last episodes, once there are as many."""
    sums = np.concatenate([[0.0], np.cumsum(returns)])
    return (sums[LAST:] - sums[:-LAST]) / LAST


def solved_at(
    returns: Float[np.ndarray, " episodes"], lengths: Int[np.ndarray, " episodes"], best: float
) -> tuple[int, int] | None:
    """The episodes and steps after which the last episodes were near the best return for the first time, if ever."""
    reached = np.flatnonzero(last_means(returns) >= SHARE * best)
    if reached.size == 0:
        return None
    episodes = int(reached[0]) + LAST
    return episodes, int(lengths[:episodes].sum())
