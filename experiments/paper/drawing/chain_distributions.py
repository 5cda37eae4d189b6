"""The appendix's illustration of a Chain while it is learned: each state's two return distributions, as bars."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.paper.drawing import shapes
from experiments.paper.drawing.learned_returns import LearnedReturn, Moment
from experiments.paper.drawing.panel import SHAPE, shape, span
from experiments.paper.drawing.transitions import Transition, chain_walk, transitions
from uppertail.analysis.figures import COLORS, own_style, save
from uppertail.environments import FiniteMDP

LEFT, WIDTH, GAP, RIGHT = 0.8, 1.12, 0.14, 0.15
HEIGHT, ROW_GAP, HEADING, TOP, BOTTOM = 0.68, 0.24, 0.62, 0.04, 0.55
"""All in inches."""
CORRECT = {"edgecolor": COLORS[2], "linewidth": 2.4, "linestyle": "-"}
WRONG = {"edgecolor": COLORS[1], "linewidth": 1.0, "linestyle": (0, (4, 2))}
SMALL = 7.5


@own_style
def chain_distributions_figure(stem: Path, mdp: FiniteMDP, moments: list[Moment]) -> None:
    """Draws a block for each moment: successive states from left to right, a row for each action.

    Args:
        stem: path without ending; .svg and .png are written.
        mdp: tables of a Chain.
        moments: all have every state and action; atoms with their probabilities, or densities.

    Raises:
        KeyError: a moment lacks a state and action.
    """
    walk, edges = chain_walk(mdp), transitions(mdp)
    everything = [learned for moment in moments for learned in moment.returns]
    atoms = all(learned.discrete for learned in everything)
    limits = _limits(everything)
    block = HEADING + mdp.num_actions * (HEIGHT + ROW_GAP)
    width = LEFT + len(walk) * (WIDTH + GAP) + RIGHT
    figure = Figure(figsize=(width, TOP + len(moments) * block + BOTTOM))
    for index, moment in enumerate(moments):
        top = BOTTOM + block * (len(moments) - index)
        _heading(figure, top - 0.22, "abcdefghijklmnopqrstuvwxyz"[index], moment.label)
        for position, (state, correct) in enumerate(walk):
            for action in range(mdp.num_actions):
                low = top - HEADING - action * (HEIGHT + ROW_GAP) - HEIGHT
                axes = shapes.in_inches(figure, LEFT + position * (WIDTH + GAP), low, WIDTH, HEIGHT)
                _panel(axes, moment.of(state, action), atoms, action == correct, edges[state, action])
                axes.set_xlim(*limits)
                lowest = action == mdp.num_actions - 1
                axes.tick_params(labelbottom=lowest and index == len(moments) - 1, labelleft=not position and atoms)
                if not action:
                    place = {"xytext": (0, 15), "textcoords": "offset points"}
                    axes.annotate(
                        f"state {position + 1}", (0.5, 1), xycoords="axes fraction", ha="center", fontsize=8.5, **place
                    )
                if not position:
                    axes.set_ylabel(
                        shapes.subscript("a", action + 1), rotation=0, ha="right", va="center", fontsize=9.5
                    )
    _legend(figure, atoms)
    save(figure, stem)


def _limits(learned: list[LearnedReturn]) -> tuple[float, float]:
    """The range of the axis: all atoms and half a bar on each side, or the visible part of densities."""
    low, high = span(learned)
    if all(one.discrete for one in learned):
        low = min(float(one.returns[0]) for one in learned)
        high = max(float(one.returns[-1]) for one in learned)
    margin = 0.1 * ((high - low) or 1.0)
    return low - margin, high + margin


def _panel(axes: Axes, learned: LearnedReturn, atoms: bool, correct: bool, edge: Transition) -> None:
    shape(axes, learned, to_peak=not atoms)
    axes.axvline(learned.mean, color="black", linestyle=(0, (3, 2)), linewidth=1.1)
    axes.set_ylim(0.0, 1.05)
    axes.set_yticks([0, 1] if atoms else [])
    shapes.whole_ticks(axes.xaxis, 2)
    axes.tick_params(labelsize=SMALL, length=2.5, pad=2)
    look = CORRECT if correct else WRONG
    for spine in axes.spines.values():
        spine.set(**look)
    mark = "goes on" if edge.next_state is not None else f"ends, r = {shapes.number(edge.reward)}"
    axes.set_title(mark, fontsize=SMALL, pad=2.5, color=shapes.INK, weight="bold" if correct else "normal")


def _heading(figure: Figure, y: float, letter: str, label: str) -> None:
    across, up = figure.get_size_inches()
    figure.text(0.12 / across, y / up, f"{letter})", fontsize=10.5, weight="bold")
    figure.text(0.36 / across, y / up, label, fontsize=10.5)


def _legend(figure: Figure, atoms: bool) -> None:
    across, up = figure.get_size_inches()
    height = "probability of each return" if atoms else "density of the return, scaled to its peak"
    handles = [
        Patch(color=SHAPE, label=height),
        Line2D([], [], color="black", linestyle=(0, (3, 2)), linewidth=1.1, label="its mean"),
        Patch(facecolor="white", label="correct action", **CORRECT),
        Patch(facecolor="white", label="wrong action", **WRONG),
    ]
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False, fontsize=9)
    figure.text(
        (LEFT + (across - LEFT - RIGHT) / 2) / across,
        (BOTTOM + ROW_GAP - 0.4) / up,
        "Return",
        ha="center",
        fontsize=9.5,
    )
