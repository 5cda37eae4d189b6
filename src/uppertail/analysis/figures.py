"""Figures from records."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from uppertail.analysis.statistics import learning_curve
from uppertail.records import Episodes

SMOOTHING_WINDOW = 50
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's palette, safe for colour-blind readers."""
DASHES = ("-", "--", "-.", ":")


def learning_curves(path: Path, title: str, methods: dict[str, list[Episodes]]) -> None:
    """Draws the mean return against the episode, one line per method with its 95% interval over seeds."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    for index, (label, seeds) in enumerate(methods.items()):
        finished = [seed for seed in seeds if seed.returns.size]
        if finished:
            _curve(axes, label, finished, COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)])
    axes.set(xlabel="Episode", ylabel=f"Return (mean of last {SMOOTHING_WINDOW} episodes)", title=title)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        axes.set_xlim(left=0)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _curve(axes: Axes, label: str, seeds: list[Episodes], colour: str, dash: str) -> None:
    episodes, interval = learning_curve(seeds, SMOOTHING_WINDOW)
    count = len(seeds)
    axes.plot(episodes, interval.mean, color=colour, linestyle=dash, label=f"{label}\n({count} seed{'s'[: count > 1]})")
    axes.fill_between(episodes, interval.low, interval.high, color=colour, alpha=0.2, linewidth=0)
