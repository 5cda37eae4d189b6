"""Fig. 3: Thompson sampling with each return distribution against epsilon-greedy, on deterministic FrozenLake 8x8."""

import dataclasses
from pathlib import Path
from typing import Any

from uppertail.analysis.curves import curve_panels
from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass
from uppertail.environments import FrozenLake
from uppertail.experiments.cells import Cell, CellResult
from uppertail.experiments.reproduction import Figure
from uppertail.experiments.training_cell import numbers, training_cell, training_row
from uppertail.policies import EpsilonGreedy, Thompson
from uppertail.records import Episodes
from uppertail.training.settings import Settings

ENVIRONMENT = FrozenLake(map_name="8x8", is_slippery=False)
METHODS = {
    "Gaussian, Thompson": (Gaussian(), Thompson()),
    "Categorical, Thompson": (Categorical(bins=31), Thompson()),
    "GaussianMixture, Thompson": (GaussianMixture(), Thompson()),
    "PointMass, epsilon-greedy": (PointMass(), EpsilonGreedy()),
}
SETTINGS = Settings(seeds=5, episodes=3000, hidden_layers=1, updates_per_rollout=4)
"""Five repetitions as in the paper; one hidden layer and four passes over the data as in the released job."""

QUICK_SETTINGS = dataclasses.replace(SETTINGS, seeds=2, episodes=300)


def cells(quick: bool) -> list[Cell]:
    """One per method."""
    settings = QUICK_SETTINGS if quick else SETTINGS
    return [
        training_cell(_name(label), ENVIRONMENT, distribution, policy, settings)
        for label, (distribution, policy) in METHODS.items()
    ]


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws the learning curves and returns the table of their numbers."""
    settings = QUICK_SETTINGS if quick else SETTINGS
    curves = {label: Episodes.of_arrays(results[_name(label)].arrays) for label in METHODS}
    title = f"FrozenLake 8x8, deterministic, seeds: {settings.seeds}"
    curve_panels(folder / "frozen-lake", title, {"": curves}, columns=1)
    rows = [{"method": label, **numbers(results[_name(label)])} for label in METHODS]
    return {"settings": dataclasses.asdict(settings), "rows": rows}


def _name(label: str) -> str:
    return label.partition(",")[0]


def table(summary: dict[str, Any]) -> list[dict[str, str]]:
    """One row per method."""
    return [training_row(row) for row in summary["rows"]]


FIGURE = Figure("frozen-lake", cells, finish, table)
