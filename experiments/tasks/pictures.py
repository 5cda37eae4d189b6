"""What a network beside counts of pixels reaches in pictures that hardly repeat, beside the same without a part of it.

    python -m experiments.tasks.pictures --out results/pictures                        # all of them, the defaults
    python -m experiments.tasks.pictures --task flicker --method no_evidence --seeds 2

Each task and method is one JSON file of all seeds, which are trained one after another; what is there already is not
run again.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import uppertail as ut
from experiments.common import options, write
from experiments.tasks.bonus import Bonus, PixelsAlone
from uppertail.training.process import hardware

FIRST = 9100
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


class Car(gymnasium.Wrapper[Any, Any, Any, Any]):
    """MountainCar as two pictures of 20 x 40 pixels, now and a decision before; an action lasts four steps."""

    SHAPE = 20, 40

    def __init__(self) -> None:
        super().__init__(gymnasium.make("MountainCar-v0"))
        self.observation_space = gymnasium.spaces.Box(0, 255, (*self.SHAPE, 2), np.uint8)
        self.before = np.zeros(self.SHAPE, np.uint8)

    def picture(self, position: float) -> np.ndarray:
        """The car as a blurred dot on its hill."""
        rows, columns = np.mgrid[: self.SHAPE[0], : self.SHAPE[1]]
        row, column = 18 - (np.sin(3 * position) * 0.45 + 0.55) * 16, (position + 1.2) / 1.8 * 37 + 1
        return (np.clip(2.0 - np.hypot(rows - row, columns - column), 0, 1) * 255).astype(np.uint8)

    def reset(self, **asked: Any) -> Any:
        """A car that stands still."""
        state, info = self.env.reset(**asked)
        self.before = self.picture(state[0])
        return np.stack([self.before, self.before], axis=-1), info

    def step(self, action: Any) -> Any:
        """Four steps, or as many as the episode has left; their rewards are summed."""
        total, ended, state, rest = 0.0, False, None, ()
        for _ in range(4):
            state, reward, *rest = self.env.step(action)
            total, ended = total + float(reward), rest[0] or rest[1]
            if ended:
                break
        assert state is not None
        seen, self.before = self.before, self.picture(state[0])
        return np.stack([seen, self.before], axis=-1), total, *rest


class Task(NamedTuple):
    """What is learned.

    Args:
        make: makes the environment.
        steps: how many of each seed.
        solved: the return of an episode that counts as solved.
        bound: where one optimistic value starts, in ranges of returns above 0: where the bound of the Gaussian does.
    """

    make: Callable[[], Any]
    steps: int = 6_000
    solved: float = 1.0
    bound: float = 1.08


def room(limit: int, **settings: Any) -> Callable[[], Any]:
    """Makes a room with a time limit."""
    return lambda: gymnasium.wrappers.TimeLimit(Room(**settings), limit)


TASKS = {
    "flicker": Task(room(96, flicker=True)),
    "snow": Task(room(96, snow=0.02)),
    "large": Task(room(240, size=30), steps=8_000),
    "scaled": Task(room(96, flicker=True, scale=4)),
    "car": Task(Car, steps=5_000, solved=-130.0, bound=0.08),
}
VALUE = {"distribution": ut.PointMass(), "policy": ut.EpsilonGreedy()}
METHODS: dict[str, Callable[[Task], dict[str, Any]]] = {
    "defaults": lambda task: {},
    "whole_images": lambda task: {"learner": ut.GradientDescent(), "evidence": ut.PixelCounts(chance=1.0)},
    "optimistic_value": lambda task: {
        "learner": ut.GradientDescent(), "evidence": ut.PixelCounts(), "distribution": ut.PointMass(start=task.bound),
    },
    "no_evidence": lambda task: {**VALUE, "learner": ut.GradientDescent(), "evidence": PixelsAlone()},
    "count_bonus": lambda task: {**VALUE, "learner": Bonus(), "evidence": PixelsAlone()},
}  # fmt: skip
"""The defaults; counts of whole images; one optimistic value on the same network, updates and counts; the same by
epsilon-greedy without the counts; and with a bonus by the counts as reward."""


def measure(name: str, method: str, seeds: int) -> dict[str, Any]:
    """All seeds, one after another."""
    task = TASKS[name]
    each = [ut.Settings(seeds=1, seed=seed, steps=task.steps) for seed in range(FIRST, FIRST + seeds)]
    parts = METHODS[method](task)
    records = [ut.train(task.make, settings=settings, **parts).record for settings in each]
    summary = records[0].summary()
    returns = [np.asarray(record.episodes[0].returns) for record in records]
    return {
        "task": name, "method": method, "steps": task.steps, "solved": task.solved,
        "seeds": [settings.seed for settings in each],
        "returns": [np.round(every, 3).tolist() for every in returns],
        "first": [int(np.argmax(every >= task.solved)) if (every >= task.solved).any() else None for every in returns],
        "last": [float((every[-20:] >= task.solved).mean()) for every in returns],
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
    asked = options(__doc__, "results/pictures", {"method": ["defaults"]}, task=TASKS, method=METHODS, seeds=5)
    for name, method in itertools.product(asked.task, asked.method):
        if (path := asked.out / file_of(name, method)).exists():
            continue
        document = measure(name, method, asked.seeds)
        write(path, document, indent=None)
        print(f"{name:<8} {method:<17} {document['first']} {document['last']}", flush=True)


if __name__ == "__main__":
    main()
