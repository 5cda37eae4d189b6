"""Learned return distributions against the exact ones: means, standard deviations and Wasserstein-1 distances."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uppertail.analysis.figures import COLORS, own_style, save

SMALLEST = 1e-5
"""Smaller values are drawn here, since the axis is logarithmic."""

MEASURES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "error of the mean": lambda pairs: np.abs(pairs["mean"] - pairs["exact_mean"]),
    "error of the sd": lambda pairs: np.abs(pairs["std"] - pairs["exact_std"]),
    "Wasserstein-1 distance": lambda pairs: pairs["wasserstein"],
}
"""What each column of panels shows."""


@own_style
def evaluation_figure(stem: Path, documents: list[dict[str, Any]]) -> None:
    """Draws one row of panels per environment, and in each a line of dots per family.

    Args:
        stem: path without ending; .svg and .png are written.
        documents: one per environment and family, with `env`, `family` and the columns `pairs`.
    """
    environments = list(dict.fromkeys(document["env"] for document in documents))
    families = list(dict.fromkeys(document["family"] for document in documents))
    figure = Figure(figsize=(10.5, (0.28 * len(families) + 1.1) * len(environments) + 0.5), layout="constrained")
    grid = figure.subplots(len(environments), len(MEASURES), squeeze=False, sharey="row")
    for row, environment in zip(grid, environments, strict=True):
        of_environment = [document for document in documents if document["env"] == environment]
        for axes, (heading, measure) in zip(row, MEASURES.items(), strict=True):
            for document in of_environment:
                pairs = {key: np.array(column) for key, column in document["pairs"].items()}
                _strip(axes, families.index(document["family"]), measure(pairs))
            axes.set_title(f"{environment}: {heading}", fontsize=9)
            axes.set_xscale("log")
            axes.set_ylim(len(families) - 0.5, -0.5)
            axes.set_yticks(range(len(families)), families, fontsize=8)
            axes.tick_params(axis="x", labelsize=8)
            axes.grid(axis="x", alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("in units of return; a dot: one state and action of one seed; a bar: their median", fontsize=9)
    save(figure, stem)


def _strip(axes: Axes, position: int, values: Any) -> None:
    """All errors of one family beside each other, and a line at their median."""
    seen = np.maximum(values, SMALLEST)
    spread = np.linspace(-0.25, 0.25, seen.size)
    color = COLORS[position % len(COLORS)]
    axes.scatter(seen, position + spread, color=color, s=7, alpha=0.4, linewidths=0)
    axes.vlines(np.median(seen), position - 0.36, position + 0.36, color="black", linewidth=1.8)
