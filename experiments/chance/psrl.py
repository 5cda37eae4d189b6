"""PSRL (Strens 2000; Osband et al. 2013): acts by the best policy of a model that is drawn from the posterior."""

from typing import Any

import numpy as np

from experiments.chance.peer import SWEEPS, TOLERANCE, Peer


class PSRL(Peer):
    """A model is drawn anew when an episode ends, and when the visits of a pair have doubled (Ouyang et al. 2017).

    The next state has a Dirichlet prior that counts as one visit in all, over all states and the end; the mean reward a
    normal-gamma prior with mean in the middle of the rewards' range, of one observation.

    Args:
        arguments: those of `Peer`.
        prior: of the Dirichlet, in visits.
    """

    def __init__(self, *arguments: Any, prior: float = 1.0) -> None:
        super().__init__(*arguments)
        self.prior, self.before = prior, np.full_like(self.q, -1.0)
        self.drawn = [self._draw(seed) for seed in range(len(self.q))]

    def plan(self, ended: np.ndarray) -> None:
        visits = self.visits
        doubled = (visits >= 2 * np.maximum(self.before, 1)).any(axis=(1, 2))
        for seed in np.flatnonzero(ended | doubled):
            self.before[seed], self.drawn[seed] = visits[seed], self._draw(seed)
            self._solve(seed)

    def _draw(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """P[s, a, s'], whose rest ends the episode, and the mean rewards R[s, a]."""
        rng, (states, actions), (low, high) = self.rngs[seed], self.q.shape[1:], self.world.rewards
        alpha = np.full((states, actions, states + 1), self.prior / (states + 1))
        to = np.where(self.world.terminated[seed], states, self.world.next_state[seed])
        np.add.at(alpha, (*np.ogrid[:states, :actions, :1][:2], to), self.outcomes[seed])
        chance = rng.standard_gamma(alpha)
        n, total, squares = self.visits[seed], self.reward_sum[seed], self.reward_squares[seed]
        middle, spread = (low + high) / 2, (high - low) / 2
        mean = (middle + total) / (1 + n)
        # the sum of squared errors of the observations and the prior's, about the mean of both
        errors = np.maximum(squares + middle**2 - (1 + n) * mean**2, 0.0)
        precision = rng.gamma(1 + n / 2) / (spread**2 + errors / 2)
        return chance / chance.sum(axis=2, keepdims=True), rng.normal(mean, 1 / np.sqrt(precision * (1 + n)))

    def _solve(self, seed: int) -> None:
        chance, reward = self.drawn[seed]
        inside, span = self.discount * chance[..., :-1], self.world.returns[1] - self.world.returns[0]
        for _ in range(SWEEPS):
            new = reward + inside @ self.q[seed].max(axis=1)
            change = np.abs(new - self.q[seed]).max()
            self.q[seed] = new
            if change <= TOLERANCE * span:
                break
