"""Q-learning (Watkins 1989) with an optimistic start."""

from typing import Any

import numpy as np

from experiments.chance.peer import Peer


class QLearning(Peer):
    """Q starts at the highest return, and moves by (1 + n)^-power toward the target of its n-th visit.

    Args:
        arguments: those of `Peer`.
        power: in (0.5, 1), the polynomial rate of Even-Dar and Mansour (2003): chance averages out.
    """

    def __init__(self, *arguments: Any, power: float = 0.6) -> None:
        super().__init__(*arguments)
        self.power = power

    def observe(self, where: Any, reward: np.ndarray, next_state: np.ndarray, terminated: np.ndarray) -> None:
        super().observe(where, reward, next_state, terminated)
        pair, seeds = where[:3], where[0]
        target = reward + self.discount * np.where(terminated, 0.0, self.q[seeds, next_state].max(axis=1))
        self.q[pair] += (1 + self.visits[pair]) ** -self.power * (target - self.q[pair])

    def plan(self, ended: np.ndarray) -> None:
        """Does nothing: Q follows each step."""

    def greedy(self) -> np.ndarray:
        return self.q
