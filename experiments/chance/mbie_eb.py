"""MBIE-EB (Strehl and Littman 2008, Section 3.3): the empirical model, with a bonus that falls as pairs are visited."""

from typing import Any

import numpy as np

from experiments.chance.peer import Peer


class MBIEEB(Peer):
    """Q = R + bonus / sqrt(n) + discount * sum_s' P max Q; what was never tried keeps the best that may follow.

    Args:
        arguments: those of `Peer`.
        bonus: the paper's beta, in units of the range of rewards.
    """

    def __init__(self, *arguments: Any, bonus: float = 0.4) -> None:
        super().__init__(*arguments)
        low, high = self.world.rewards
        self.bonus = bonus * (high - low)
        self.q += self.bonus / (1 - self.discount)

    def plan(self, ended: np.ndarray) -> None:
        visits = self.visits
        self.q = self.solve(self.q, visits > 0, self.reward + self.bonus / np.sqrt(np.maximum(visits, 1)))
