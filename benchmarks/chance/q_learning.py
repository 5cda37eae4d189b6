"""Q-learning (Watkins 1989) with an optimistic start."""

from typing import Any

import numpy as np

from chance.peer import Peer


class QLearning(Peer):
    """Q starts at the highest return, and moves by (h + 1) / (h + n) toward each target (the rate of Jin et al. 2018).

    Args:
        arguments: those of `Peer`.
        h: the horizon of this rate: the larger, the more the newest targets count.
    """

    def __init__(self, *arguments: Any, h: float = 10.0) -> None:
        super().__init__(*arguments)
        self.h = h

    def observe(self, where: Any, reward: np.ndarray, next_state: np.ndarray, terminated: np.ndarray) -> None:
        super().observe(where, reward, next_state, terminated)
        pair, seeds = where[:3], where[0]
        target = reward + self.discount * np.where(terminated, 0.0, self.q[seeds, next_state].max(axis=1))
        self.q[pair] += (self.h + 1) / (self.h + self.visits[pair]) * (target - self.q[pair])

    def plan(self, ended: np.ndarray) -> None:
        """Does nothing: Q follows each step."""

    def greedy(self) -> np.ndarray:
        return self.q
