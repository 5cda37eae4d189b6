"""MiniGrid with a new layout in each episode and the partial view: steps until the mean return of 100 episodes is 0.9.

Usage: python -m experiments.tasks.minigrid_layouts [--out results/minigrid_layouts] [--seeds 5] [--seed 0] [--steps
120000] [--envs DoorKey-8x8] [--views objects whole] [--powers 1 0]

Needs `uppertail[minigrid]`. The settings are those of the command on docs/minigrid.md.
Training is paid the same at any time; the goal is of MiniGrid's own returns. Files that are there already are kept, and
curves.png and curves.svg drawn anew.
"""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from matplotlib.ticker import EngFormatter

import uppertail as ut
from experiments.common import options, write
from experiments.tasks.minigrid_marks import own_returns
from experiments.tasks.minigrid_runs import PAID_ALIKE, PRIZE, SETTINGS, C
from experiments.tasks.minigrid_tasks import PREFIX, VERSION
from uppertail.analysis.figures import COLORS, Figure, own_style, save

UNSEEN, EMPTY, WALL = [0, 0, 0], [1, 0, 0], [2, 5, 0]
"""MiniGrid's fields that are no objects: kind, color and state."""

VIEWS: dict[str, dict[str, Any]] = {
    "objects": {"background": [UNSEEN, EMPTY, WALL]},
    "whole": {"hash_size": 32_768},
}
"""What of the view tells states apart."""

WINDOW, GOAL = 100, 0.9
"""Training episodes whose mean return has to reach the goal."""


def last_sums(returns: Sequence[float] | np.ndarray) -> np.ndarray:
    """The sum of each episode's return and those before it in the window, once there are as many."""
    sums = np.cumsum([0.0, *returns])
    return sums[WINDOW:] - sums[:-WINDOW]


def reached(own: np.ndarray, end_steps: np.ndarray, goal: float = GOAL) -> int | None:
    """The step at which the last episodes reached the goal for the first time, if ever."""
    there = np.flatnonzero(last_sums(own) >= goal * WINDOW)
    return int(end_steps[there[0] + WINDOW - 1]) if there.size else None


def learn(name: str, seed: int, seeds: int, steps: int, view: str, power: float) -> dict[str, Any]:
    """Trains all seeds; returns what each earned."""
    full_name = f"{PREFIX}{name}-v0"
    env = ut.Gym(full_name, wrappers=[PAID_ALIKE], encoding="hashed", returns=(0.0, PRIZE), **VIEWS[view])
    limit = gymnasium.make(full_name).unwrapped.max_steps  # pyright: ignore[reportAttributeAccessIssue]
    settings = ut.Settings(seed=seed, seeds=seeds, episodes=10**6, steps=steps, rollout_steps=16, **SETTINGS)
    result = ut.train(env, ut.Gaussian(), ut.UCB(C, C, power=power), settings, learner=ut.LeastSquares(sweeps=2))
    summary, episodes = result.record.summary(), result.record.episodes
    own = [own_returns(each.returns, each.lengths, limit) for each in episodes]
    last = [returns[each.end_steps > 0.9 * steps] for returns, each in zip(own, episodes, strict=True)]
    return {
        "env": name,
        "minigrid": VERSION,
        "view": view,
        "power": power,
        "seeds": list(range(seed, seed + seeds)),
        "steps_each": steps,
        "reached_step": [reached(returns, each.end_steps) for returns, each in zip(own, episodes, strict=True)],
        "last_tenth": [round(float(returns.mean()), 3) if returns.size else None for returns in last],
        "returns": [np.round(returns, 3).tolist() for returns in own],
        "lengths": [each.lengths.tolist() for each in episodes],
        "asked": {part: summary[part] for part in ("env", "distribution", "policy", "settings")},
        **{fact: summary[fact] for fact in ("env_steps", "wall_seconds", "steps_per_second", "hardware")},
    }


def curve(returns: list[float], lengths: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the mean return of the last episodes there."""
    return np.cumsum(lengths)[WINDOW - 1 :], last_sums(returns) / WINDOW


@own_style
def draw(runs: list[dict[str, Any]], stem: Path) -> None:
    """Draws a panel for each environment, and a line for each seed: the mean return of the last episodes."""
    figure = Figure(figsize=(3.6 * len(runs), 2.8), layout="constrained")
    for axes, run in zip(np.ravel(figure.subplots(1, len(runs), sharey=True, squeeze=False)), runs, strict=True):
        for steps, means in run["curves"] if "curves" in run else map(curve, run["returns"], run["lengths"]):
            axes.plot(steps, means, color=COLORS[0], linewidth=1.1, alpha=0.8)
        axes.axhline(run.get("goal", GOAL), color="0.8", linewidth=0.8, zorder=0)
        axes.set(title=run["env"], xlabel="environment steps", ylim=(-0.03, 1.03))
        axes.set_xlim(0, run["steps_each"])
        axes.locator_params(axis="x", nbins=4)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("mean return of 100 episodes")
    save(figure, stem)


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any] | None:
    """The first seed of a stored result, made again."""
    if "asked" not in stored:
        return None
    found = learn(stored["env"], stored["seeds"][0], 1, stored["steps_each"], stored["view"], stored["power"])
    return {each: found[each] for each in ("reached_step", "returns", "lengths")}


if __name__ == "__main__":
    several: dict[str, Any] = {"envs": ["DoorKey-8x8"], "views": VIEWS, "powers": [1.0]}
    given = options(
        __doc__, "results/minigrid_layouts", {"views": ["objects"]}, seeds=5, seed=0, steps=120_000, **several
    )
    for name, view, power in itertools.product(given.envs, given.views, given.powers):
        seeds = f"seeds-{given.seed}-to-{given.seed + given.seeds - 1}"
        path = given.out / f"{name}-{view}-power-{power:g}-{seeds}.json"
        if not path.exists():
            cell = learn(name, given.seed, given.seeds, given.steps, view, power)
            write(path, cell, indent=None)
            print(path.stem, cell["reached_step"], cell["last_tenth"], cell["wall_seconds"], flush=True)
    runs = [json.loads(path.read_text()) for path in sorted(given.out.glob("*-objects-*.json"))]
    draw(runs, given.out / "curves")
