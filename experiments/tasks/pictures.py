"""What a network beside counts of pixels reaches in pictures that hardly repeat, beside the same without a part of it.

    python -m experiments.tasks.pictures --out results/pictures                        # all of them, the defaults
    python -m experiments.tasks.pictures --task flicker --method no_evidence --seeds 2

Each task and method is one JSON file of all seeds, which are trained one after another; what is there already is not
run again.
"""

import itertools
from typing import Any

import gymnasium
import numpy as np

import uppertail as ut
from experiments.common import options, write
from experiments.tasks.bonus import Bonus, PixelsAlone
from uppertail.training.process import hardware

FIRST = 9200
"""The first seed: none of them chose anything."""


class Room(gymnasium.Env[Any, Any]):
    """A room with a wall that has a door, seen from above. Only the goal, in the far corner, pays: 1.

    Args:
        size: cells a side.
        flicker: whether each pixel of the first row is lit at random.
        snow: share of all pixels that are lit at random.
        scale: pixels a side of a cell.
    """

    def __init__(self, size: int = 12, flicker: bool = False, snow: float = 0.0, scale: int = 1) -> None:
        self.size, self.flicker, self.snow, self.scale = size, flicker, snow, scale
        self.observation_space = gymnasium.spaces.Box(0, 255, (size * scale, size * scale, 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(4)
        self.cell = self.goal = size - 1, size - 1
        self.wall = {(size // 2, column) for column in range(size) if column != size // 4}

    def picture(self) -> np.ndarray:
        """The walker is red, the goal green, the wall blue."""
        picture = np.zeros((self.size, self.size, 3), np.uint8)
        for place, color in ((self.cell, 0), (self.goal, 1), *((each, 2) for each in self.wall)):
            picture[*place, color] = 255
        if self.flicker:
            picture[0, :, 2] = self.np_random.integers(2, size=self.size) * 255
        picture[self.np_random.random((self.size, self.size)) < self.snow, 2] = 200
        return picture.repeat(self.scale, axis=0).repeat(self.scale, axis=1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """In a random cell of the upper left quarter."""
        super().reset(seed=seed)
        self.cell = tuple(self.np_random.integers(self.size // 2, size=2).tolist())
        return self.picture(), {}

    def step(self, action: Any) -> Any:
        """Up, down, left or right, unless the wall is there."""
        down, across = ((-1, 0), (1, 0), (0, -1), (0, 1))[int(action)]
        row, column = (min(max(at + by, 0), self.size - 1) for at, by in zip(self.cell, (down, across), strict=True))
        self.cell = self.cell if (row, column) in self.wall else (row, column)
        done = self.cell == self.goal
        return self.picture(), float(done), done, False, {}


STEPS, LIMIT = 6_000, 96

TASKS: dict[str, dict[str, Any]] = {
    "flicker": {"flicker": True},
    "scaled": {"flicker": True, "scale": 4},
    "snow": {"snow": 0.02},
}
"""The settings of rooms."""

VALUE = {"distribution": ut.PointMass(), "policy": ut.EpsilonGreedy()}
METHODS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "network_alone": {"learner": ut.GradientDescent(), "evidence": ut.NoEvidence()},
    "whole_images": {"learner": ut.GradientDescent(), "evidence": ut.PixelCounts(chance=1.0)},
    "optimistic_value": {
        "learner": ut.GradientDescent(), "evidence": ut.PixelCounts(), "distribution": ut.PointMass(start=1.08),
    },
    "no_evidence": {**VALUE, "learner": ut.GradientDescent(), "evidence": PixelsAlone()},
    "count_bonus": {**VALUE, "learner": Bonus(), "evidence": PixelsAlone()},
}  # fmt: skip
"""The defaults; the network of other images, alone; counts of whole images; one optimistic value on the network,
updates and counts of the defaults, from where the bound of the Gaussian is; the same by epsilon-greedy without the
counts; and with a bonus by the counts as reward."""


def measure(name: str, method: str, seeds: int) -> dict[str, Any]:
    """All seeds, one after another."""
    each = [ut.Settings(seeds=1, seed=seed, steps=STEPS) for seed in range(FIRST, FIRST + seeds)]
    parts = METHODS[method]

    def make() -> Any:
        return gymnasium.wrappers.TimeLimit(Room(**TASKS[name]), LIMIT)

    records = [ut.train(make, settings=settings, **parts).record for settings in each]
    summary = records[0].summary()
    returns = [np.asarray(record.episodes[0].returns) for record in records]
    return {
        "task": name, "method": method, "steps": STEPS,
        "seeds": [settings.seed for settings in each],
        "returns": [np.round(every, 3).tolist() for every in returns],
        "first": [int(np.argmax(every == 1)) if (every == 1).any() else None for every in returns],
        "last": [float((every[-20:] == 1).mean()) for every in returns],
        "greedy": [record.summary()["final_greedy_return"][0] for record in records],
        "training_seconds": [round(record.training_seconds, 1) for record in records],
        **{part: summary[part] for part in ("distribution", "policy", "learner", "settings")},
        "hardware": hardware(),
    }  # fmt: skip


def file_of(name: str, method: str) -> str:
    """The file of a result."""
    return f"{name}-{method}.json"


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any] | None:
    """The first seed of a stored result, made again."""
    found = measure(stored["task"], stored["method"], 1)
    return {each: found[each] for each in ("returns", "first", "last", "greedy")}


def main() -> None:
    """Runs what is asked for."""
    asked = options(__doc__, "results/pictures", {"method": ["defaults"]}, task=TASKS, method=METHODS, seeds=3)
    for name, method in itertools.product(asked.task, asked.method):
        if (path := asked.out / file_of(name, method)).exists():
            continue
        document = measure(name, method, asked.seeds)
        write(path, document, indent=None)
        print(f"{name:<8} {method:<17} {document['first']} {document['last']}", flush=True)


if __name__ == "__main__":
    main()
