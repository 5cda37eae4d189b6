"""UCRL2's optimism (Jaksch et al. 2010), and MBIE's (Strehl and Littman 2008): the best model in a confidence set."""

from typing import Any

import numpy as np

from experiments.chance.peer import Peer


class UCRL2(Peer):
    """Plans in the most hopeful model of those that the data allow, by extended value iteration.

    Rewards may be sqrt(7 log(2 S A t / delta) / (2 n)) higher, in units of their range; the distribution of the next
    state may be off by sqrt(14 S log(2 A t / delta) / n) in L1 (equations 3 and 4). It plans by the discount instead of
    the average reward, and as often as our learners do, instead of when a count has doubled.

    Args:
        arguments: those of `Peer`.
        delta: chance that the true model is left out.
        scale: factor on both widths; 1 is what is proved.
    """

    def __init__(self, *arguments: Any, delta: float = 0.05, scale: float = 1.0) -> None:
        super().__init__(*arguments)
        self.delta, self.scale = delta, scale

    def plan(self, ended: np.ndarray) -> None:
        _, states, actions = self.q.shape
        steps = np.maximum(self.visits.sum(axis=(1, 2), keepdims=True), 1)
        of_reward = np.sqrt(3.5 * np.log(2 * states * actions * steps / self.delta))
        of_next = np.sqrt(14 * states * np.log(2 * actions * steps / self.delta))
        self.q = self.hope(self.scale * of_reward, self.scale * of_next)

    def hope(self, of_reward: Any, of_next: Any) -> np.ndarray:
        """The values of the most hopeful model within these widths, each divided by sqrt(n)."""
        n, (low, high) = np.maximum(self.visits, 1), self.world.rewards
        seen = self.visits > 0
        reward = np.where(seen, np.minimum(self.reward + of_reward * (high - low) / np.sqrt(n), high), high)
        return self.solve(self.q, np.ones_like(seen), reward, np.where(seen, of_next / np.sqrt(n), 2.0))


class MBIE(UCRL2):
    """MBIE with the widths that its paper tunes: a / sqrt(n) of the rewards' range, and b / sqrt(n) in L1.

    Args:
        arguments: those of `Peer`.
        a: width of the rewards.
        b: width of the distribution of the next state.
    """

    def __init__(self, *arguments: Any, a: float = 0.3, b: float = 0.0) -> None:
        super().__init__(*arguments)
        self.a, self.b = a, b

    def plan(self, ended: np.ndarray) -> None:
        self.q = self.hope(self.a, self.b)
