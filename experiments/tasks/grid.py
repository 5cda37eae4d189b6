"""A 4 x 4 grid whose observations are MultiDiscrete([4, 4]), learned with every setting at its default.

Usage: python -m experiments.tasks.grid [--out results/grid.json] [--seeds 10] [--seed 0] [--features auto]

An episode starts in one corner and ends in the opposite one, which pays 1, or after 50 steps. By default the two
integers are one of 16 states; with `--features scaled` they are eight numbers, as they were before.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

import uppertail as ut
from experiments.common import options, write
from uppertail.training.process import hardware

MOVES = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
LIMIT, FIRST = 50, 30
"""The steps of an episode at most, and the episode from which successes are counted."""


class Grid(gymnasium.Env[Any, Any]):
    """Walks on a grid, from its first corner to its last."""

    observation_space = spaces.MultiDiscrete([4, 4])
    action_space = spaces.Discrete(len(MOVES))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = np.zeros(2, np.int64)
        return self.place.copy(), {}

    def step(self, action: Any) -> Any:
        self.place = np.clip(self.place + MOVES[action], 0, 3)
        found = bool((self.place == 3).all())
        return self.place.copy(), float(found), found, False, {}


def learn(seed: int, seeds: int, episodes: int, features: Any) -> dict[str, object]:
    """Trains all seeds; of each, the share of its episodes from `FIRST` on that reached the corner."""
    builder = ut.FromGymnasium(lambda: TimeLimit(Grid(), LIMIT), id="Grid", success=1.0, features=features)
    result = ut.train(builder, settings=ut.Settings(seed=seed, seeds=seeds, episodes=episodes))
    reached = [float((each.returns[FIRST - 1 :] == 1.0).mean()) for each in result.record.episodes]
    return {
        "seeds": list(range(seed, seed + seeds)),
        "episodes": episodes,
        "features": features,
        "reached": [round(share, 4) for share in reached],
        "greedy_returns": result.record.greedy_returns,
        "wall_seconds": result.record.summary()["wall_seconds"],
        "hardware": hardware(),
    }


if __name__ == "__main__":
    given = options(__doc__, "results/grid.json", seeds=10, seed=0, episodes=200, features="auto")
    document = learn(given.seed, given.seeds, given.episodes, given.features)
    print(f"reached from episode {FIRST} on: {document['reached']}, greedy {document['greedy_returns']}")
    write(given.out, document, indent=1)
