"""The randomized Chain for Gymnasium, as the peers and the host loop step it. Imports nothing of UpperTail."""

from typing import Any

import gymnasium
import numpy as np


class Chain(gymnasium.Env[Any, Any]):
    """In each state one action of two, drawn at random, goes on; the other ends the episode.

    Args:
        length: number of states.
        seed: which actions go on.
    """

    def __init__(self, length: int, seed: int) -> None:
        self.correct = np.random.default_rng(seed).integers(0, 2, length)
        self.observation_space = gymnasium.spaces.Discrete(length)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.state = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.state = 0
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        goes_on = bool(action == self.correct[self.state])
        last = self.state == len(self.correct) - 1
        self.state += goes_on and not last
        return self.state, float(goes_on and last), not goes_on or last, False, {}
