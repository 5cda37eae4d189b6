"""Fig. 2: learning curves on randomized Chains of four lengths, three return distributions beside epsilon-greedy."""

import dataclasses
from pathlib import Path
from typing import Any

from uppertail.analysis.figures import curve_panels
from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass
from uppertail.environments import Chain
from uppertail.experiments.cells import Cell, CellResult
from uppertail.experiments.reproduction import Figure
from uppertail.experiments.training_cell import numbers, training_cell, training_row
from uppertail.policies import UCB, EpsilonGreedy
from uppertail.records import Episodes
from uppertail.training.settings import Settings

METHODS = {
    "Gaussian, UCB": (Gaussian(), UCB()),
    "Categorical, UCB": (Categorical(bins=7, low=-0.2, high=1.2), UCB()),
    "GaussianMixture, UCB": (GaussianMixture(), UCB()),
    "PointMass, epsilon-greedy": (PointMass(), EpsilonGreedy()),
}
"""Fig. 2's legend; the paper does not say which output its epsilon-greedy curve has."""

LENGTHS = (10, 25, 50, 100)
SETTINGS = Settings(seeds=10, episodes=3000, updates_per_rollout=1)
"""The paper's sizes; one update per 16 steps, so that fresh data are learned once, with as much replay."""

QUICK_LENGTHS = (10, 25)
QUICK_SETTINGS = Settings(seeds=3, episodes=600)


def cells(quick: bool) -> list[Cell]:
    """One per length and method."""
    lengths, settings = (QUICK_LENGTHS, QUICK_SETTINGS) if quick else (LENGTHS, SETTINGS)
    return [
        training_cell(_name(length, label), Chain(length=length), distribution, policy, settings)
        for length in lengths
        for label, (distribution, policy) in METHODS.items()
    ]


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws the learning curves and returns the table of their numbers."""
    lengths, settings = (QUICK_LENGTHS, QUICK_SETTINGS) if quick else (LENGTHS, SETTINGS)
    panels = {
        f"Chain of length {length}": {
            label: Episodes.of_arrays(results[_name(length, label)].arrays) for label in METHODS
        }
        for length in lengths
    }
    curve_panels(folder / "chain", f"Randomized Chain, seeds: {settings.seeds}", panels)
    rows = [
        {"length": length, "method": label, **numbers(results[_name(length, label)])}
        for length in lengths
        for label in METHODS
    ]
    return {"settings": dataclasses.asdict(settings), "rows": rows}


def _name(length: int, label: str) -> str:
    return f"{length}-{label.partition(',')[0]}"


def table(summary: dict[str, Any]) -> list[dict[str, str]]:
    """One row per length and method."""
    return [{"length": str(row["length"]), **training_row(row)} for row in summary["rows"]]


FIGURE = Figure("chain", cells, finish, table)
