"""Learned return distributions against the exact ones: means, standard deviations and Wasserstein-1 distances."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from uppertail.analysis.figures import COLOURS, own_style, save

MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@own_style
def evaluation_figure(stem: Path, documents: list[dict[str, Any]]) -> None:
    """Draws one row per environment; every point is a state and action of one seed.

    Args:
        stem: path without ending; .svg and .png are written.
        documents: one per environment and family, with `env`, `family` and the columns `pairs`.
    """
    environments = list(dict.fromkeys(document["env"] for document in documents))
    families = list(dict.fromkeys(document["family"] for document in documents))
    styles = {family: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i, family in enumerate(families)}
    figure = Figure(figsize=(9.6, 2.7 * len(environments) + 0.9), layout="constrained")
    grid = figure.subplots(len(environments), 3, squeeze=False)
    for row, environment in zip(grid, environments, strict=True):
        for document in (document for document in documents if document["env"] == environment):
            pairs = {key: np.array(column) for key, column in document["pairs"].items()}
            colour, marker = styles[document["family"]]
            style = {"marker": marker, "color": colour, "s": 13, "alpha": 0.55, "linewidths": 0}
            row[0].scatter(pairs["exact_mean"], pairs["mean"] - pairs["exact_mean"], **style)
            row[1].scatter(pairs["exact_std"], pairs["std"] - pairs["exact_std"], **style)
            _strip(row[2], families.index(document["family"]), pairs["wasserstein"], colour, marker)
        _against(row[0], environment, "mean")
        _against(row[1], environment, "sd")
        row[2].set(yscale="log", ylabel="Wasserstein-1 distance", title=environment, xticks=[])
        row[2].set_xlim(-0.6, len(families) - 0.4)
        row[2].spines[["top", "right"]].set_visible(False)
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="", label=family)
        for family, (colour, marker) in styles.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    save(figure, stem)


def _strip(axes: Axes, position: int, values: Any, colour: str, marker: str) -> None:
    """All distances of one family beside each other, and a line at their median."""
    spread = np.linspace(-0.25, 0.25, values.size)
    axes.scatter(position + spread, values, marker=marker, color=colour, s=9, alpha=0.5, linewidths=0)
    axes.hlines(np.median(values), position - 0.35, position + 0.35, color=colour, linewidth=2)


def _against(axes: Axes, environment: str, what: str) -> None:
    """What is learned too much or too little, against the truth."""
    axes.axhline(0.0, color="0.5", linewidth=0.8, zorder=0)
    axes.set(xlabel=f"exact {what}", ylabel=f"learned - exact {what}", title=environment)
    axes.spines[["top", "right"]].set_visible(False)
