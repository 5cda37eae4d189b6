"""Draws MiniGrid's learning curves: the mean return of the last 20 training episodes, seed by seed, beside the peers'.

Usage: python -m experiments.tasks.minigrid_figure [--runs results/minigrid]

Reads what experiments/tasks/minigrid_runs.py and minigrid_peers.py have written, and writes curves.png, curves.svg.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.ticker import FuncFormatter, NullFormatter

from experiments.tables.grids import AGENTS, peers_of, runs_of
from experiments.tasks.minigrid_marks import LAST, SHARE, STEPS, last_means
from uppertail.analysis.figures import COLORS, Figure, own_style, save

COLUMNS = 3
FIRST = 400
"""Where the axis of steps begins; it ends at the limit."""

OURS = "ours"
COLOR_OF = {
    OURS: COLORS[0],
    "DQN": "0.45",
    "DQN, shorter": COLORS[3],
    "QRDQN": COLORS[1],
    "PPO": COLORS[2],
}
"""The color of each agent that is drawn."""


class Curve(NamedTuple):
    """The training returns of one seed.

    Args:
        env: the environment.
        agent: who learned.
        best: the best return of its layout.
        returns: return of each episode.
        lengths: steps of each episode.
    """

    env: str
    agent: str
    best: float
    returns: Float[np.ndarray, " episodes"]
    lengths: Int[np.ndarray, " episodes"]

    def points(self) -> tuple[Int[np.ndarray, " points"], Float[np.ndarray, " points"]]:
        """Environment steps, and the mean return of the last episodes then, as a share of the best."""
        return np.cumsum(self.lengths)[LAST - 1 :], last_means(self.returns) / self.best


def curves(folder: Path) -> list[Curve]:
    """All that has been run."""
    found = list[Curve]()
    for run in runs_of(folder):
        seeds = zip(run["best_return"], run["returns"], run["lengths"], strict=True)
        found += [Curve(run["env"], OURS, best, np.array(ret), np.array(steps)) for best, ret, steps in seeds]
    for run in (each for each in peers_of(folder) if each["algorithm"] in COLOR_OF):
        returns, lengths = np.array(run["returns"]), np.array(run["lengths"])
        found.append(Curve(run["env"], run["algorithm"], run["best_return"], returns, lengths))
    return found


@own_style
def draw(found: list[Curve], stem: Path) -> None:
    """Draws a panel for each environment, and a line for each seed.

    Args:
        found: the curves.
        stem: path without ending; .svg and .png are written.
    """
    names = sorted({curve.env for curve in found})
    rows = -(-len(names) // COLUMNS)
    figure = Figure(figsize=(9.0, 2.5 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, sharey=True, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        for agent, color in COLOR_OF.items():
            label = AGENTS.get(agent, "Gaussian, UCB")
            own = [curve for curve in found if (curve.env, curve.agent) == (name, agent)]
            for place, curve in enumerate(own):
                axes.plot(*curve.points(), color=color, linewidth=1.1, label="" if place else label, alpha=0.8)
        axes.axhline(SHARE, color="0.8", linewidth=0.8, zorder=0)
        axes.set(title=name, xlabel="environment steps", ylim=(-0.03, 1.03))
        axes.set_xscale("log")
        axes.set_xlim(FIRST, STEPS)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda steps, _: f"{steps / 1000:g}k"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes in panels[::COLUMNS]:
        axes.set_ylabel("share of the best return")
    handles = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=COLUMNS, frameon=False)
    save(figure, stem)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draws MiniGrid's learning curves.")
    parser.add_argument("--runs", type=Path, default=Path("results/minigrid"))
    given = parser.parse_args()
    if not (found := curves(given.runs)):
        parser.error(f"{given.runs} holds no runs: write some with experiments/tasks/minigrid_runs.py.")
    draw(found, given.runs / "curves")
