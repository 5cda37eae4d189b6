"""One corridor, seen through observation spaces of several kinds: `--env.id corridors:CorridorDict-v0`, and others.

`Crumbs-v0` is a Chain whose reward is far beyond what a random policy sees.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

CELLS, FIRST_CELLS, TIME_LIMIT = 8, 3, 40

SPACES: dict[str, spaces.Space[Any]] = {
    "Dict": spaces.Dict({"cell": spaces.Discrete(CELLS), "far": spaces.Box(0.0, np.inf, (2,), np.float32)}),
    "Tuple": spaces.Tuple((spaces.MultiBinary(CELLS), spaces.Box(-1.0, 1.0, (1,), np.float32))),
    "Image": spaces.Box(0, 255, (CELLS, CELLS), np.uint8),
    "MultiDiscrete": spaces.MultiDiscrete([2, CELLS // 2]),
}


def seen(kind: str, cell: int) -> Any:
    """The observation of a cell."""
    row = (np.arange(CELLS) == cell).astype(np.int8)
    views = {
        "Dict": {"cell": np.int64(cell), "far": np.array([cell, 100 - cell], np.float32)},
        "Tuple": (row, np.array([np.sin(cell)], np.float32)),
        "Image": np.tile(255 * row.astype(np.uint8), (CELLS, 1)),
        "MultiDiscrete": np.array(divmod(cell, CELLS // 2)),
    }
    return views[kind]


class Corridor(gymnasium.Env[Any, Any]):
    """Action 1 goes right, action 0 left; an episode begins in one of the first cells and is paid for in the last."""

    def __init__(self, kind: str) -> None:
        self.kind, self.cell = kind, 0
        self.observation_space, self.action_space = SPACES[kind], spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(FIRST_CELLS))
        return seen(self.kind, self.cell), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.cell = max(self.cell + (1 if action else -1), 0)
        end = self.cell == CELLS - 1
        return seen(self.kind, self.cell), float(end), end, False, {}


class Crumbs(gymnasium.Env[int, int]):
    """Each of 40 cells leads on by one of four actions, which pays little; another ends the episode; the end pays 1."""

    observation_space: Any = spaces.Discrete(40)
    action_space: Any = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.cell = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action != self.cell % 4:
            return self.cell, 0.001, True, False, {}
        self.cell += 1
        return self.cell % 40, 1.0 if self.cell == 40 else 0.0005, self.cell == 40, False, {}


gymnasium.register("Crumbs-v0", "experiments.robustness.corridors:Crumbs", max_episode_steps=100)
for name in SPACES:
    gymnasium.register(f"Corridor{name}-v0", "corridors:Corridor", kwargs={"kind": name}, max_episode_steps=TIME_LIMIT)
