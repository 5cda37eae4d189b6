"""The paper's Fig. 1 and its full-page version: return distributions of a small MDP while it is learned."""

import itertools
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.paper.drawing import shapes
from experiments.paper.drawing.learned_returns import LearnedReturn, Moment
from experiments.paper.drawing.panel import shape, span
from experiments.paper.drawing.transitions import start, transitions
from experiments.paper.drawing.tree import OPTIMAL, draw_tree
from uppertail.analysis.figures import COLORS, own_style, save
from uppertail.environments import FiniteMDP

TREE, NAMES, PANEL, STRIP = 2.9, 0.65, 1.4, 1.26
HEIGHT, ROW_GAP, STATE_GAP = 0.64, 0.12, 0.36
TOP, BOTTOM, MARGIN = 0.42, 0.95, 0.12
"""All in inches."""
MEAN = COLORS[1]
SMALL = 7.5


@own_style
def toy_figure(
    stem: Path,
    mdp: FiniteMDP,
    moments: list[Moment],
    exact: dict[tuple[int, int], float],
    states: tuple[int, ...] | None = None,
) -> None:
    """Draws the MDP as a tree, and beside it one column of return distributions for each moment.

    Args:
        stem: path without ending; .svg and .png are written.
        mdp: deterministic tables without loops.
        moments: all have the states and actions that are shown.
        exact: optimal value of each state and action.
        states: the states that are shown; None: all.

    Raises:
        KeyError: a moment or `exact` lacks a state and action that is shown.
    """
    shown = tuple(range(mdp.num_states)) if states is None else states
    rows = [(state, action) for state in shown for action in range(mdp.num_actions)]
    steps = [HEIGHT + (ROW_GAP if one[0] == other[0] else STATE_GAP) for one, other in itertools.pairwise(rows)]
    tall = HEIGHT + sum(steps)
    column = PANEL + STRIP
    figure = Figure(figsize=(MARGIN + TREE + NAMES + column * len(moments), TOP + tall + BOTTOM))
    height = min(tall + 0.2, 4.4)
    axes = shapes.canvas(figure, MARGIN, BOTTOM + (tall - height) / 2, TREE, height)
    subset = set(shown) < set(range(mdp.num_states))
    draw_tree(axes, mdp, optimal_paths(mdp, exact), shown if subset else ())
    lows = BOTTOM + tall - HEIGHT - np.concatenate([[0.0], np.cumsum(steps)])
    for index, moment in enumerate(moments):
        left = MARGIN + TREE + NAMES + column * index
        for (state, action), low in zip(rows, lows, strict=True):
            axes = shapes.in_inches(figure, left, float(low), PANEL, HEIGHT)
            learned = moment.of(state, action)
            _panel(axes, learned, exact[state, action])
            of_state = [moment.of(state, other) for other in range(mdp.num_actions)]  # each moment has its own zoom
            _limits(axes, of_state, [exact[state, other] for other in range(mdp.num_actions)])
            axes.tick_params(labelbottom=action == mdp.num_actions - 1)  # the actions of a state share one axis
            if (state, action) == rows[-1]:
                axes.set_xlabel("Return", fontsize=8.5, labelpad=2)
            if not index:
                name = f"{shapes.subscript('s', state)}, {shapes.subscript('a', action)}"
                axes.text(-0.07, 0.42, name, ha="right", va="center", fontsize=9.5, transform=axes.transAxes)
        inches = figure.get_size_inches()
        x, y = left / inches[0], (BOTTOM + tall + 0.12) / inches[1]
        figure.text(x, y, f"{'abcdefghijklmnopqrstuvwxyz'[index]})", fontsize=10, weight="bold")
        figure.text((left + 0.22) / inches[0], y, moment.label, fontsize=10)
    _legends(figure, subset, all(learned.discrete for moment in moments for learned in moment.returns))
    save(figure, stem)


def optimal_paths(mdp: FiniteMDP, exact: dict[tuple[int, int], float]) -> set[tuple[int, int]]:
    """States and actions that the optimal policy takes from the start; all of them where several are optimal."""
    edges = transitions(mdp)
    waiting, taken = [start(mdp)], set()
    while waiting:
        state = waiting.pop()
        values = {action: exact[state, action] for action in range(mdp.num_actions) if (state, action) in exact}
        for action in (action for action, value in values.items() if np.isclose(value, max(values.values()))):
            following = edges[state, action].next_state
            if following is not None and (state, action) not in taken:
                waiting.append(following)
            taken.add((state, action))
    return taken


def _panel(axes: Axes, learned: LearnedReturn, optimum: float) -> None:
    axes.axvline(optimum, color="black", linewidth=0.8)
    axes.axvline(learned.mean, color=MEAN, linestyle=(0, (3, 2)), linewidth=1.5)
    shape(axes, learned, to_peak=True)  # above the lines, so that a narrow shape stays visible; the lines are taller
    axes.set_ylim(0.0, 1.3)
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(labelsize=SMALL, length=2.5, pad=2)
    facts = {"mean": shapes.number(learned.mean, ".2f"), "sd": _sd(learned.std)}
    facts |= {f"{policy} p": f"{share:.2f}" for policy, share in learned.chosen.items()}
    style = {"va": "baseline", "fontsize": SMALL, "transform": axes.transAxes}
    for line, (name, value) in enumerate(facts.items()):
        up = 0.5 + 0.22 * (len(facts) / 2 - line - 0.8)
        axes.text(1.05, up, name, ha="left", color="0.35", **style)
        axes.text(1.0 + (STRIP - 0.2) / PANEL, up, value, ha="right", **style)


def _sd(value: float) -> str:
    """Two decimals, or three where the distribution is narrow."""
    return f"{value:.2f}" if value >= 0.095 else f"{value:.3f}" if value >= 0.0005 or value == 0 else "<0.001"


def _limits(axes: Axes, learned: list[LearnedReturn], values: list[float]) -> None:
    low, high = span(learned)
    low, high = min(low, *values), max(high, *values)
    margin = 0.05 * ((high - low) or 1.0)
    axes.set_xlim(low - margin, high + margin)
    shapes.whole_ticks(axes.xaxis, 5)


def _legends(figure: Figure, boxed: bool, atoms: bool) -> None:
    across, up = figure.get_size_inches()
    tree = [
        Line2D([], [], color=OPTIMAL, linewidth=shapes.HEAVY, label="optimal path"),
        Line2D([], [], color="0.75", markeredgecolor=shapes.INK, marker="s", linestyle="none", label="end of episode"),
        Line2D([], [], color=shapes.FAINT, linestyle=":", linewidth=1.3, label="shown on the right"),
    ]
    style = {"fontsize": 8.5, "frameon": False, "loc": "lower left", "borderaxespad": 0.0}
    figure.legend(handles=tree[: 2 + boxed], bbox_to_anchor=(MARGIN / across, 0.08 / up), **style)
    height = "probability" if atoms else "density"
    lines = [
        Line2D([], [], color=COLORS[0], linewidth=4, alpha=0.5, label=f"learned return: {height}, scaled to its peak"),
        Line2D([], [], color=MEAN, linestyle=(0, (3, 2)), label="its mean"),
        Line2D([], [], color="black", linewidth=0.8, label="exact optimal value"),
        Line2D([], [], linestyle="none", label="p: probability that the policy takes the action"),
    ]
    left = (MARGIN + TREE + NAMES) / across
    figure.legend(handles=lines, bbox_to_anchor=(left, 0.08 / up), ncols=2, **style)
