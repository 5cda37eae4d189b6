"""Fig. 3: Thompson sampling with each return distribution against epsilon-greedy, on deterministic FrozenLake 8x8."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.paper.cells import Cell, CellResult
from experiments.paper.drawing.curve_panels import curve_panels
from experiments.paper.form import ONE_LAYER, paper_gaussian, paper_mixture, paper_settings
from experiments.paper.training_cell import numbers, training_cell, training_row
from uppertail.distributions import Categorical, PointMass
from uppertail.environments import FrozenLake
from uppertail.exact import exact_returns, optimal_policy
from uppertail.policies import EpsilonGreedy, Thompson
from uppertail.records import FINAL_WINDOW, Episodes

ENVIRONMENT = FrozenLake(map_name="8x8", is_slippery=False)
METHODS = {
    "Gaussian, Thompson": (paper_gaussian(), Thompson()),
    "Categorical, Thompson": (Categorical(bins=31), Thompson()),
    "GaussianMixture, Thompson": (paper_mixture(), Thompson()),
    "PointMass, epsilon-greedy": (PointMass(), EpsilonGreedy()),
}
SETTINGS = paper_settings(seeds=5, episodes=3000, updates_per_rollout=4)
"""Five repetitions as in the paper; one hidden layer and four passes over the data as in the released job."""

QUICK_SETTINGS = dataclasses.replace(SETTINGS, seeds=2, episodes=300)


def cells(quick: bool) -> list[Cell]:
    """One per method."""
    settings = QUICK_SETTINGS if quick else SETTINGS
    return [
        training_cell(_name(label), ENVIRONMENT, distribution, policy, settings, ONE_LAYER)
        for label, (distribution, policy) in METHODS.items()
    ]


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws the learning curves and returns the table of their numbers."""
    settings = QUICK_SETTINGS if quick else SETTINGS
    curves = {label: Episodes.of_arrays(results[_name(label)].arrays) for label in METHODS}
    title = f"FrozenLake 8x8, deterministic, seeds: {settings.seeds}"
    curve_panels(folder / "frozen-lake", title, {"": curves}, columns=1)
    rows = [
        {"method": label, **numbers(results[_name(label)]), "steps_to_the_goal": _steps_to_the_goal(curves[label])}
        for label in METHODS
    ]
    return {"settings": dataclasses.asdict(settings), "fewest_steps": _fewest_steps(), "rows": rows}


def _name(label: str) -> str:
    return label.partition(",")[0]


def _steps_to_the_goal(seeds: list[Episodes]) -> list[float | None]:
    """For each seed the mean length of the successes among its last 100 episodes; None where there are none."""
    last = [(seed.lengths[-FINAL_WINDOW:], seed.returns[-FINAL_WINDOW:]) for seed in seeds]
    successes = [lengths[returns >= ENVIRONMENT.success_return] for lengths, returns in last]
    return [round(float(np.mean(lengths)), 1) if lengths.size else None for lengths in successes]


def _fewest_steps() -> int:
    """Steps of the shortest path to the goal: the exact optimal value of the start is discount^(steps - 1)."""
    lake = ENVIRONMENT.build(jax.random.key(0))
    returns = exact_returns(lake, optimal_policy(lake, SETTINGS.discount_per_step), SETTINGS.discount_per_step)
    best = max(returns[int(lake.start_state[0]), action].mean for action in range(lake.num_actions))
    return 1 + round(math.log(best) / math.log(SETTINGS.discount_per_step))


def table(summary: dict[str, Any]) -> list[dict[str, str]]:
    """One row per method; steps of the successes among the last 100 episodes, the mean over seeds."""
    rows = []
    for row in summary["rows"]:
        steps = [count for count in row["steps_to_the_goal"] if count is not None]
        rows.append({**training_row(row), "steps": f"{np.mean(steps):.1f}" if steps else "-"})
    return rows
