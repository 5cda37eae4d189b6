"""The appendix's drawing of the Chain: ordered, and randomized as seed 0 draws it (Randomized Chain)."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.paper.cells import Cell, CellResult
from experiments.paper.drawing import shapes
from experiments.paper.drawing.transitions import Transition, chain_walk, transitions
from uppertail.analysis.figures import COLORS, own_style, save
from uppertail.environments import Chain, FiniteMDP
from uppertail.records import describe
from uppertail.training.loop import seed_keys

LENGTH, SEED = 7, 0
CHAINS = {"ordered": Chain(length=LENGTH, ordered=True), f"randomized, seed {SEED}": Chain(length=LENGTH)}

ALL = 8
FIRST, LAST = 4, 2
"""A Chain of more than 8 states is drawn as its first 4 and last 2."""
STEP, NAMES, ROW, DROP, LEGEND = 1.0, 1.4, 1.55, 0.72, 0.4
"""Inches: between states, for the names of the rows, per row, down to where a wrong action ends, for the legend."""
TOP = 0.45
GOES_ON, ENDS = COLORS[2], COLORS[1]


def cells(quick: bool) -> list[Cell]:
    """Nothing is computed."""
    del quick
    return []


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws it from the tables."""
    del results, quick
    key = seed_keys(SEED).environment
    chain_domain_figure(folder / "chain-domain", {label: chain.build(key) for label, chain in CHAINS.items()})
    return {"seed": SEED, "chains": {label: describe(chain) for label, chain in CHAINS.items()}}


def table(summary: dict[str, Any]) -> list[dict[str, str]]:
    """A drawing has no numbers."""
    del summary
    return []


@own_style
def chain_domain_figure(stem: Path, mdps: dict[str, FiniteMDP]) -> None:
    """Draws each Chain as a row: the correct action goes on to the right, the others end the episode.

    Args:
        stem: path without ending; .svg and .png are written.
        mdps: name of a row to its tables.
    """
    walks = {name: chain_walk(mdp) for name, mdp in mdps.items()}
    slots = max(len(_slots(len(walk))) for walk in walks.values())
    width = NAMES + STEP * slots + 0.3
    figure = Figure(figsize=(width, ROW * len(mdps) + LEGEND))
    for index, (name, walk) in enumerate(walks.items()):
        axes = shapes.canvas(figure, 0.0, LEGEND + ROW * (len(mdps) - 1 - index), width, ROW)
        axes.text(0.12, ROW - TOP, name.replace(", ", ",\n"), va="center", fontsize=9.5)
        _row(axes, walk, transitions(mdps[name]), mdps[name].num_actions)
    looks = {"correct action": (GOES_ON, shapes.HEAVY), "wrong action": (ENDS, shapes.LIGHT)}
    lines = [Line2D([], [], color=color, linewidth=wide, label=name) for name, (color, wide) in looks.items()]
    lines.append(
        Line2D([], [], color="0.75", markeredgecolor=shapes.INK, marker="s", linestyle="none", label="end of episode")
    )
    figure.legend(handles=lines, loc="lower center", ncols=3, frameon=False, fontsize=9)
    save(figure, stem)


def _slots(length: int) -> list[int | None]:
    """Positions along the Chain that are drawn, None for those left out."""
    if length <= ALL:
        return list(range(length))
    return [*range(FIRST), None, *range(length - LAST, length)]


def _row(axes: Axes, walk: list[tuple[int, int]], edges: dict[tuple[int, int], Transition], num_actions: int) -> None:
    level = ROW - TOP
    for slot, position in enumerate(_slots(len(walk))):
        here, right = (NAMES + STEP * slot, level), (NAMES + STEP * (slot + 1), level)
        if position is None:
            axes.plot([here[0] - 0.13, here[0], here[0] + 0.13], [level] * 3, ".", color=shapes.INK, markersize=5)
            shapes.arrow(axes, here, right, (0.28, shapes.RADIUS), GOES_ON, shapes.HEAVY)
            continue
        state, correct = walk[position]
        shapes.circle(axes, here, str(position + 1))
        _correct(axes, here, right, correct, edges[state, correct], position == len(walk) - 1)
        wrong = [action for action in range(num_actions) if action != correct]
        for action in wrong:
            _wrong(axes, here, action, edges[state, action])


def _correct(axes: Axes, here: shapes.Point, right: shapes.Point, action: int, edge: Transition, last: bool) -> None:
    gap = 0.55 * shapes.SQUARE if last else shapes.RADIUS
    shapes.arrow(axes, here, right, (shapes.RADIUS, gap), GOES_ON, shapes.HEAVY)
    if last:
        shapes.square(axes, right)
    middle = (here[0] + right[0]) / 2 - 0.02
    shapes.write(axes, (middle, here[1] + 0.09), shapes.subscript("a", action + 1), up="bottom")
    weight = "bold" if edge.reward else "normal"
    shapes.write(axes, (middle, here[1] - 0.09), f"r = {shapes.number(edge.reward)}", up="top", weight=weight)


def _wrong(axes: Axes, here: shapes.Point, action: int, edge: Transition) -> None:
    end = (here[0], here[1] - DROP)
    shapes.arrow(axes, here, end, (shapes.RADIUS, 0.55 * shapes.SQUARE), ENDS, shapes.LIGHT)
    shapes.square(axes, end)
    shapes.write(axes, (here[0] - 0.06, here[1] - 0.55 * DROP), shapes.subscript("a", action + 1), across="right")
    shapes.write(axes, (end[0], end[1] - 0.12), f"r = {shapes.number(edge.reward)}", up="top")
