"""Fig. 2: learning curves on randomized Chains of four lengths, three return distributions beside epsilon-greedy."""

import dataclasses
from pathlib import Path
from typing import Any

from experiments.paper.cells import Cell, CellResult
from experiments.paper.drawing.curve_panels import curve_panels
from experiments.paper.form import paper_gaussian, paper_mixture, paper_settings, paper_ucb
from experiments.paper.training_cell import numbers, training_cell, training_row
from uppertail.distributions import Categorical, Gaussian, PointMass
from uppertail.environments import Chain
from uppertail.policies import UCB, EpsilonGreedy
from uppertail.records import Episodes
from uppertail.training.settings import Settings

METHODS = {
    "Gaussian, UCB": (paper_gaussian(), paper_ucb()),
    "Categorical, UCB": (Categorical(bins=7, low=-0.2, high=1.2), paper_ucb()),
    "GaussianMixture, UCB": (paper_mixture(), paper_ucb()),
    "PointMass, epsilon-greedy": (PointMass(), EpsilonGreedy()),
}
"""Fig. 2's legend; the paper does not say which output its epsilon-greedy curve has."""

OURS = {"defaults: Gaussian, UCB": (Gaussian(), UCB())}
"""The curve beside the paper's: what `uppertail train` does by default (docs/decisions/0012)."""

LENGTHS = (10, 25, 50, 100)
SETTINGS = paper_settings(seeds=10, episodes=3000, updates_per_rollout=1)
"""The paper's sizes; one update per 16 steps, so that fresh data are learned once, with as much replay."""

RELEASED = {
    10: {
        "Gaussian, UCB": (305.0, 191.0, 318.0),
        "Categorical, UCB": (420.0, 584.0, 571.0),
        "GaussianMixture, UCB": (527.0, 577.0, 459.0),
    },
    25: {
        "Gaussian, UCB": (513.0, 492.0, 448.0),
        "Categorical, UCB": (680.0, 655.0, 687.0),
        "GaussianMixture, UCB": (539.0, 396.0, 446.0),
    },
    50: {
        "Gaussian, UCB": (532.0, 653.0, 498.0),
        "Categorical, UCB": (692.0, 770.0, 725.0),
        "GaussianMixture, UCB": (498.0,),
    },
    100: {"Gaussian, UCB": (708.0, 609.0), "Categorical, UCB": (1329.0, 947.0)},
}
"""Episodes at which the authors' released code (tmoer/return_distribution_exploration, 2018) solved each seed that it
solved, run through TensorFlow's v1 graph mode; one hidden layer, biases, replay from 5,000 transitions on."""

QUICK_LENGTHS = (10, 25)
QUICK_SETTINGS = dataclasses.replace(SETTINGS, seeds=3, episodes=600)


def cells(quick: bool) -> list[Cell]:
    """One per length and method."""
    lengths, settings = (QUICK_LENGTHS, QUICK_SETTINGS) if quick else (LENGTHS, SETTINGS)
    ours = Settings(seeds=settings.seeds, episodes=settings.episodes)
    return [
        cell
        for length in lengths
        for cell in (
            *(
                training_cell(_name(length, label), Chain(length=length), distribution, policy, settings)
                for label, (distribution, policy) in METHODS.items()
            ),
            *(
                training_cell(_name(length, label), Chain(length=length), distribution, policy, ours, parts={})
                for label, (distribution, policy) in OURS.items()
            ),
        )
    ]


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws the learning curves and returns the table of their numbers."""
    lengths, settings = (QUICK_LENGTHS, QUICK_SETTINGS) if quick else (LENGTHS, SETTINGS)
    titles = {length: f"Chain of length {length}" for length in lengths}
    panels = {
        title: {label: Episodes.of_arrays(results[_name(length, label)].arrays) for label in (*METHODS, *OURS)}
        for length, title in titles.items()
    }
    released = {
        title: {label: list(solved) for label, solved in RELEASED.get(length, {}).items()}
        for length, title in titles.items()
    }
    curve_panels(
        folder / "chain", "Randomized Chain", panels, marks=released, marks_label="seeds solved by the released code"
    )
    rows = [
        {"length": length, "method": label, **numbers(results[_name(length, label)])}
        for length in lengths
        for label in (*METHODS, *OURS)
    ]
    return {"settings": dataclasses.asdict(settings), "rows": rows}


def _name(length: int, label: str) -> str:
    return f"{length}-{label.partition(',')[0].replace(': ', '-')}"


def table(summary: dict[str, Any]) -> list[dict[str, str]]:
    """One row per length and method."""
    return [{"length": str(row["length"]), **training_row(row)} for row in summary["rows"]]
