"""Figures: learning curves, panels of return distributions, their common style, and their files."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from uppertail.analysis.statistics import learning_curve
from uppertail.errors import InputError, message_of
from uppertail.exact.discrete import ExactReturn
from uppertail.records import Episodes, write_bytes

# Okabe and Ito's palette, safe for color-blind readers
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
Dash = Literal["-", "--", "-.", ":"]
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":")
DPI = 150
SMOOTHING_WINDOW = 50  # episodes
PANELS, FEW_ATOMS, BINS = 24, 30, 60

own_style = matplotlib.style.context("default")
"""Makes a function draw in the default style, whatever a user's matplotlibrc says about LaTeX, fonts and sizes."""


class Style(NamedTuple):
    """The color and dash of one method in all figures."""

    color: str
    dash: Dash


class ShownFigure(Figure):
    """A figure that a notebook shows when it is the last value of a cell."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        FigureCanvasAgg(self).print_png(content)
        return content.getvalue()


def styles(methods: Iterable[str]) -> dict[str, Style]:
    """One color and dash per method, in order of first appearance."""
    return {
        method: Style(COLORS[index % len(COLORS)], DASHES[index % len(DASHES)])
        for index, method in enumerate(dict.fromkeys(methods))
    }


def save(figure: Figure, stem: Path) -> None:
    """Writes stem.svg, whose text can be searched and read aloud, and stem.png; a figure gives the same bytes."""
    with matplotlib.rc_context({"svg.hashsalt": "uppertail", "svg.fonttype": "none"}):
        svg = _render(figure, stem.name, format="svg", metadata={"Date": None})
    png = _render(figure, stem.name, format="png", dpi=DPI)
    for kind, drawn in (("svg", svg), ("png", png)):
        # the name may hold dots ("discount-0.99"), which with_suffix would cut off
        write_bytes(stem.with_name(f"{stem.name}.{kind}"), drawn)


def _render(figure: Figure, name: str, **how: Any) -> bytes:
    """The bytes of a figure's file."""
    FigureCanvasAgg(figure)  # independent of the user's backend
    drawn = io.BytesIO()
    try:
        figure.savefig(drawn, **how)
    except Exception as error:  # for example a damaged font or a missing library
        why = f"{type(error).__name__}: {message_of(error)}"
        raise InputError(f"The picture {name} cannot be drawn ({why}).") from error
    return drawn.getvalue()


@own_style
def learning_curves(path: Path, title: str, methods: dict[str, list[Episodes]]) -> None:
    """Draws `curves_figure` as a PNG."""
    write_bytes(path, _render(curves_figure(title, methods), path.name, format="png", dpi=DPI))


@own_style
def curves_figure(title: str, methods: dict[str, list[Episodes]]) -> Figure:
    """The mean return against the episode, one line per method with its 95% interval over seeds."""
    figure = ShownFigure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    for (label, seeds), style in zip(methods.items(), styles(methods).values(), strict=True):
        if ended := finished(seeds):
            draw_curve(axes, ended, style, SMOOTHING_WINDOW, label)
    axes.set(xlabel="Episode", ylabel=return_label(SMOOTHING_WINDOW))
    axes.set_title(title, fontsize=11, wrap=True)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    counts = {len(finished(seeds)) for seeds in methods.values()} - {0}
    if counts:
        axes.set_xlim(0.0, max(1.0, axes.dataLim.x1) * 1.02)
        text = f"band: 95% interval\nof the mean, {seeds_text(counts)}"
        band = [Patch(color="0.35", alpha=0.2, linewidth=0, label=text)] if max(counts) > 1 else []
        handles = [*axes.get_legend_handles_labels()[0], *band]
        axes.legend(handles=handles, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    else:
        axes.text(0.5, 0.5, "no episode ended", ha="center", transform=axes.transAxes, color="0.35")
        axes.set(xticks=[], yticks=[])
    return figure


def draw_curve(axes: Axes, seeds: list[Episodes], style: Style, smoothing: int, label: str | None = None) -> None:
    """Draws the learning curve of one method with its band."""
    episodes, interval = learning_curve(seeds, smoothing)
    point = "o" if len(episodes) == 1 else None  # a line through one point cannot be seen
    axes.plot(episodes, interval.value, color=style.color, linestyle=style.dash, marker=point, label=label)
    axes.fill_between(episodes, interval.low, interval.high, color=style.color, alpha=0.2, linewidth=0)


def finished(seeds: list[Episodes]) -> list[Episodes]:
    """The seeds with at least one episode."""
    return [seed for seed in seeds if seed.returns.size]


def seeds_text(counts: set[int]) -> str:
    """How many seeds there are, where methods may differ in that: "5 seeds", "1 to 2 seeds"."""
    few, many = min(counts), max(counts)
    return f"{few if few == many else f'{few} to {many}'} seed{'s'[: many > 1]}"


def return_label(smoothing: int) -> str:
    """The label of an axis of smoothed returns."""
    return f"Return (mean of last {smoothing} episodes)"


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
    low, high = min(z.atoms[0] for z in shown.values()), max(z.atoms[-1] for z in shown.values())
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
    write_bytes(path, _render(figure, path.name, format="png", dpi=DPI))


def _panel(axes: Axes, z: ExactReturn, low: float, high: float) -> None:
    if z.atoms.size <= FEW_ATOMS:
        heights = z.probabilities
        axes.vlines(z.atoms, 0.0, heights, color=COLORS[0], linewidth=2)
        axes.plot(z.atoms, heights, "o", color=COLORS[0], markersize=3.5)
    else:
        heights, edges = np.histogram(z.atoms, BINS, (low, high), weights=z.probabilities)
        axes.bar(edges[:-1], heights, np.diff(edges), align="edge", color=COLORS[0])
    axes.axvline(z.mean, color=COLORS[1], linestyle="--", linewidth=1.2)
    axes.set_ylim(0.0, 1.12 * float(np.max(heights)))
    axes.locator_params(nbins=4)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
