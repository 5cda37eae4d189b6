"""Numbers that pages name in prose, by the names that they have there."""

import json
import math
import statistics
from collections.abc import Callable
from typing import Any

from experiments.tables.cells import RESULTS, number, summary
from experiments.tables.grids import runs_of
from uppertail.records import median_episode


def first(method: str) -> str:
    """The median first success of a method of the headline."""
    return number(median_episode(summary(f"headline/cells/{method}")["first_success_episode"]))


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


def ends(name: str, values: Callable[[], list[Any]]) -> dict[str, Callable[[], str]]:
    """The least and the greatest of some values."""
    return {f"{name}.{end.__name__}": lambda end=end: f"{end(values()):,.0f}" for end in (min, max)}


VALUES: dict[str, Callable[[], str]] = {
    **{
        f"headline.{name}": lambda name=name: first(name)
        for name in ("LeastSquares", "Gaussian", "Categorical", "GaussianMixture")
    },
    "minigrid.solved": lambda: str(sum(step is not None for row in minigrid() for step in row)),
    "minigrid.layouts": lambda: str(sum(map(len, minigrid()))),
    **ends(
        "minigrid.median", lambda: [statistics.median(math.inf if s is None else s for s in row) for row in minigrid()]
    ),
    **ends("layouts.DoorKey-8x8", lambda: reached("minigrid_layouts/DoorKey-8x8-objects-*.json")),
    **ends("imitation.MultiRoom-N4-S5", lambda: reached("minigrid_imitation/MultiRoom-N4-S5-v0-*.json")),
    **ends("imitation.KeyCorridorS3R3", lambda: reached("minigrid_imitation/**/KeyCorridorS3R3-v0-seeds-1*.json")),
}
