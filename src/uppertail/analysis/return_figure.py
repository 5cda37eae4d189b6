"""The figure of return distributions: one small panel per state and action."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uppertail.analysis.figures import COLOURS, own_style, save_png
from uppertail.exact.discrete import ExactReturn

PANELS = 24
FEW_ATOMS = 30
BINS = 60


@own_style
def return_panels(path: Path, title: str, returns: dict[tuple[int, int], ExactReturn]) -> None:
    """Draws the first 24 distributions, a row for each state and its actions beside each other, on one axis of returns.

    Few atoms are stems, many are added up in bins; a dashed line is the mean, the Q-value.
    """
    actions = 1 + max(action for _, action in returns)
    columns = min(actions, 6)  # a row for each state, where there are no more actions than that
    shown = dict(list(returns.items())[: PANELS - PANELS % columns])
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(max(2.1 * columns, 4.2), 1.45 * rows + 1.2), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    low = min(z.atoms[0] for z in shown.values())
    high = max(z.atoms[-1] for z in shown.values())
    margin = 0.06 * ((high - low) or 1.0)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    for axes, ((state, action), z) in zip(grid.flat, shown.items(), strict=False):
        axes.set_xlim(low - margin, high + margin)
        _panel(axes, z, low, high)
        axes.set_title(f"state {state}, action {action}", fontsize=8)
    note = f"; first {len(shown)} of {len(returns)} states and actions" if len(shown) < len(returns) else ""
    figure.suptitle(f"{title}{note}", fontsize=10, wrap=True)
    figure.supxlabel("Return (dashed: its mean)", fontsize=9)
    figure.supylabel("Probability", fontsize=9)
    save_png(figure, path)


def _panel(axes: Axes, z: ExactReturn, low: float, high: float) -> None:
    if z.atoms.size <= FEW_ATOMS:
        axes.vlines(z.atoms, 0.0, z.probabilities, color=COLOURS[0], linewidth=2)
        axes.plot(z.atoms, z.probabilities, "o", color=COLOURS[0], markersize=3.5)
        top = float(np.max(z.probabilities))
    else:
        heights, edges = np.histogram(z.atoms, BINS, (low, high), weights=z.probabilities)
        axes.bar(edges[:-1], heights, np.diff(edges), align="edge", color=COLOURS[0])
        top = float(np.max(heights))
    axes.axvline(z.mean, color=COLOURS[1], linestyle="--", linewidth=1.2)
    axes.set_ylim(0.0, 1.12 * top)
    axes.locator_params(nbins=4)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
