"""When a run on MiniGrid counts as solved; by NumPy alone: the peers have nothing of ours, a figure no minigrid."""

import numpy as np

STEPS = 200_000
"""The limit of a run, in environment steps of each seed."""

SHARE = 0.9
"""The share of the best return that counts as solved."""

LAST = 20
"""Training episodes whose mean return has to reach it, of ours."""

EVERY = 500
"""Steps from one episode of a peer's greedy policy to the next; one such episode has to reach it."""


def own_returns(rewards: np.ndarray, lengths: np.ndarray, limit: int) -> np.ndarray:
    """The environment's own returns: 1 - 0.9 * steps / limit where the goal was reached, which training paid alike.

    Args:
        rewards: what training paid in each episode; 0 where the goal was not reached.
        lengths: steps of each episode.
        limit: steps after which an episode is truncated.
    """
    return np.where(rewards > 0, 1 - 0.9 * lengths / limit, 0.0)


def last_means(returns: np.ndarray) -> np.ndarray:
    """The mean return of the last episodes, once there are as many."""
    sums = np.concatenate([[0.0], np.cumsum(returns)])
    return (sums[LAST:] - sums[:-LAST]) / LAST


def solved_at(returns: np.ndarray, lengths: np.ndarray, best: float) -> tuple[int, int] | None:
    """The episodes and steps after which the last episodes were near the best return for the first time, if ever."""
    reached = np.flatnonzero(last_means(returns) >= SHARE * best)
    if reached.size == 0:
        return None
    episodes = int(reached[0]) + LAST
    return episodes, int(lengths[:episodes].sum())
