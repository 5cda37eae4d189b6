"""A learned return distribution within axes: its shape and its mean."""

import numpy as np
from matplotlib.axes import Axes

from experiments.paper.drawing.learned_returns import LearnedReturn
from uppertail.analysis.figures import COLORS

SHAPE = COLORS[0]


def shape(axes: Axes, learned: LearnedReturn, to_peak: bool) -> None:
    """Draws bars for atoms, a filled curve for a density; as they are, or scaled to a peak of 1."""
    peak = float(np.max(learned.density))
    heights = learned.density / peak if to_peak and peak > 0 else learned.density
    if learned.discrete:
        spacing = float(np.min(np.diff(learned.returns))) if learned.returns.size > 1 else 1.0
        axes.bar(learned.returns, heights, 0.8 * spacing, color=SHAPE, linewidth=0)
    else:
        axes.fill_between(learned.returns, heights, color=SHAPE, alpha=0.3, linewidth=0)
        axes.plot(learned.returns, heights, color=SHAPE, linewidth=1.1)


def span(learned: list[LearnedReturn]) -> tuple[float, float]:
    """Least and greatest return that can be seen in the shapes or is the mean of one."""
    low, high = np.inf, -np.inf
    for one in learned:
        seen = one.returns[one.density > 1e-3 * np.max(one.density)]
        values = [*seen, one.mean]
        low, high = min(low, *values), max(high, *values)
    return float(low), float(high)
