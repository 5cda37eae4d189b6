"""The drawing of the Chain domain, from its tables (appendix, Randomized Chain)."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from uppertail.analysis import drawing
from uppertail.analysis.figures import COLOURS, own_style, save
from uppertail.analysis.transitions import Transition, chain_walk, transitions
from uppertail.environments import FiniteMDP

ALL = 8
FIRST, LAST = 4, 2
"""A Chain of more than 8 states is drawn as its first 4 and last 2."""
STEP, NAMES, ROW, DROP, LEGEND = 1.0, 1.4, 1.55, 0.72, 0.4
"""Inches: between states, for the names of the rows, per row, down to where a wrong action ends, for the legend."""
TOP = 0.45
GOES_ON, ENDS = COLOURS[2], COLOURS[1]


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
        axes = drawing.canvas(figure, 0.0, LEGEND + ROW * (len(mdps) - 1 - index), width, ROW)
        axes.text(0.12, ROW - TOP, name.replace(", ", ",\n"), va="center", fontsize=9.5)
        _row(axes, walk, transitions(mdps[name]), mdps[name].num_actions)
    looks = {"correct action": (GOES_ON, drawing.HEAVY), "wrong action": (ENDS, drawing.LIGHT)}
    lines = [Line2D([], [], color=colour, linewidth=wide, label=name) for name, (colour, wide) in looks.items()]
    lines.append(
        Line2D([], [], color="0.75", markeredgecolor=drawing.INK, marker="s", linestyle="none", label="end of episode")
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
            axes.plot([here[0] - 0.13, here[0], here[0] + 0.13], [level] * 3, ".", color=drawing.INK, markersize=5)
            drawing.arrow(axes, here, right, (0.28, drawing.RADIUS), GOES_ON, drawing.HEAVY)
            continue
        state, correct = walk[position]
        drawing.circle(axes, here, str(position + 1))
        _correct(axes, here, right, correct, edges[state, correct], position == len(walk) - 1)
        wrong = [action for action in range(num_actions) if action != correct]
        for action in wrong:
            _wrong(axes, here, action, edges[state, action])


def _correct(axes: Axes, here: drawing.Point, right: drawing.Point, action: int, edge: Transition, last: bool) -> None:
    gap = 0.55 * drawing.SQUARE if last else drawing.RADIUS
    drawing.arrow(axes, here, right, (drawing.RADIUS, gap), GOES_ON, drawing.HEAVY)
    if last:
        drawing.square(axes, right)
    middle = (here[0] + right[0]) / 2 - 0.02
    drawing.write(axes, (middle, here[1] + 0.09), drawing.subscript("a", action + 1), up="bottom")
    weight = "bold" if edge.reward else "normal"
    drawing.write(axes, (middle, here[1] - 0.09), f"r = {drawing.number(edge.reward)}", up="top", weight=weight)


def _wrong(axes: Axes, here: drawing.Point, action: int, edge: Transition) -> None:
    end = (here[0], here[1] - DROP)
    drawing.arrow(axes, here, end, (drawing.RADIUS, 0.55 * drawing.SQUARE), ENDS, drawing.LIGHT)
    drawing.square(axes, end)
    drawing.write(axes, (here[0] - 0.06, here[1] - 0.55 * DROP), drawing.subscript("a", action + 1), across="right")
    drawing.write(axes, (end[0], end[1] - 0.12), f"r = {drawing.number(edge.reward)}", up="top")
