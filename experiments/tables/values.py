"""Numbers that pages name in prose, by the names that they have there."""

import json
import math
import statistics
from collections.abc import Callable
from typing import Any

from experiments.tables.cells import RESULTS, number, read, summary
from experiments.tables.grids import runs_of
from experiments.tables.solved import VECTORS
from uppertail.records import median_episode


def first(method: str) -> str:
    """The median first success of a method of the headline."""
    return number(median_episode(summary(f"headline/cells/{method}")["first_success_episode"]))


def later_return(task: str, of_seeds: Callable[[list[float]], float]) -> str:
    """The mean return of episodes 51 to 100 on a vector task, of the median or the worst seed."""
    tens = read(f"least_squares/{task}-gaussian.json")["mean_return_by_tens"]
    return f"{of_seeds([statistics.mean(seed[5:]) for seed in tens]):.0f}"


def minigrid() -> list[list[int | None]]:
    """MiniGrid's layouts: after how many steps each was solved, an environment a row."""
    return [run["solved_step"] for run in runs_of(RESULTS / "minigrid")]


def medians() -> list[float]:
    """Their medians; a layout that was not solved is later than all others."""
    return [statistics.median(math.inf if step is None else step for step in row) for row in minigrid()]


def reached(name: str) -> list[int]:
    """After how many steps each seed reached its goal, in a file or in all whose names match."""
    files = sorted(RESULTS.glob(name))
    return [step for file in files for step in json.loads(file.read_text())["reached_step"] if step is not None]


def game(name: str) -> list[float]:
    """The return of each seed in the last tenth of its episodes in 1,000,000 frames of MinAtar."""
    rows = read("minatar_1m.json")["rows"]
    return [
        each["tenths"][-1]
        for row in rows
        if (row["env"], row["method"]) == (name, "UpperTail")
        for each in row["seeds"]
    ]


def ends(name: str, values: Callable[[], list[Any]]) -> dict[str, Callable[[], str]]:
    """The least and the greatest of some values."""
    return {f"{name}.{end.__name__}": lambda end=end: f"{end(values()):,.0f}" for end in (min, max)}


VALUES: dict[str, Callable[[], str]] = {
    **{
        f"headline.{name}": lambda name=name: first(name)
        for name in ("LeastSquares", "Gaussian", "Categorical", "GaussianMixture")
    },
    **{
        f"vectors.{task}.{of.__name__}": lambda task=task, of=of: later_return(task, of)
        for task in VECTORS
        for of in (statistics.median, min)
    },
    "minigrid.solved": lambda: str(sum(step is not None for row in minigrid() for step in row)),
    "minigrid.layouts": lambda: str(sum(map(len, minigrid()))),
    **ends(
        "minigrid.median", lambda: [statistics.median(math.inf if s is None else s for s in row) for row in minigrid()]
    ),
    **ends("layouts.DoorKey-8x8", lambda: reached("minigrid_layouts/DoorKey-8x8-objects-*.json")),
    **ends("imitation.MultiRoom-N4-S5", lambda: reached("minigrid_imitation/MultiRoom-N4-S5-v0-*.json")),
    **ends("imitation.KeyCorridorS3R3", lambda: reached("minigrid_imitation/**/KeyCorridorS3R3-v0-seeds-1*.json")),
    **{
        f"bsuite.{tag}": lambda tag=tag: f"{read('bsuite/scores.json')['tags']['UpperTail'][tag]:.2f}"
        for tag in ("basic", "scale", "noise", "credit_assignment", "generalization", "exploration")
    },
    "bsuite.cartpole_swingup": lambda: f"{read('bsuite/scores.json')['experiments']['cartpole_swingup']['score']:.2f}",
    **{
        f"minatar.{name}.{end}": of
        for name in ("SpaceInvaders", "Asterix", "Breakout")
        for end, of in (
            ("min", lambda name=name: f"{min(game(f'{name}-MinAtar')):.0f}"),
            ("max", lambda name=name: f"{max(game(f'{name}-MinAtar')):.0f}"),
        )
    },
}
