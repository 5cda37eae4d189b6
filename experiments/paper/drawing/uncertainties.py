"""An ensemble's two variances along a run, beside the exact one, and how reliable its distributions are at the end."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uppertail.analysis.figures import COLORS, own_style, save


@own_style
def uncertainties_figure(stem: Path, documents: list[dict[str, Any]], levels: Float[np.ndarray, " levels"]) -> None:
    """Draws one row per environment and family: variances along the run, and reliability at its end.

    Args:
        stem: path without ending; .svg and .png are written.
        documents: one per row, with `env`, `family`, `steps` and, for each of `seeds`, `along`, `exact`, `reliability`.
        levels: the learned levels of the reliability.
    """
    figure = Figure(figsize=(8.2, 2.7 * len(documents) + 0.3), layout="constrained")
    grid = figure.subplots(len(documents), 2, squeeze=False, width_ratios=(1.7, 1.0))
    for row, document in zip(grid, documents, strict=True):
        _along(row[0], document)
        _reliability(row[1], document, levels)
    grid[0, 0].legend(frameon=False, fontsize=8)
    grid[0, 1].set_title("reliability at the end")
    save(figure, stem)


def _along(axes: Axes, document: dict[str, Any]) -> None:
    """A line for each variance and seed."""
    steps = np.array(document["steps"])
    for number, seed in enumerate(document["seeds"]):
        for name, color in zip(("between", "within"), COLORS, strict=False):
            label = {"between": "between members", "within": "within members"}[name] if number == 0 else None
            axes.plot(steps, [at[name] for at in seed["along"]], color=color, linewidth=1.1, alpha=0.8, label=label)
        for name, style in (("total", "--"), ("chance", ":")):
            label = {"total": "exact", "chance": "exact, the environment's chance"}[name] if number == 0 else None
            axes.axhline(seed["exact"][name], color="0.3", linewidth=1.0, linestyle=style, label=label)
    axes.set(xlabel="environment steps", ylabel="variance of the return")
    axes.set(title=f"{document['env']}, {document['family']}")
    axes.set_xscale("symlog", linthresh=max(float(steps[1]), 1.0))
    axes.set_yscale("symlog", linthresh=1e-4)
    axes.set(xlim=(0.0, float(steps[-1])), ylim=(0.0, None))
    axes.spines[["top", "right"]].set_visible(False)


def _reliability(axes: Axes, document: dict[str, Any], levels: Float[np.ndarray, " levels"]) -> None:
    """The diagonal, and a line for each seed."""
    axes.plot([0, 1], [0, 1], color="0.5", linewidth=0.8)
    for seed in document["seeds"]:
        axes.plot(levels, seed["reliability"], color=COLORS[2], linewidth=1.1, alpha=0.8)
    axes.set(xlabel="learned probability", ylabel="exact probability below", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.spines[["top", "right"]].set_visible(False)
