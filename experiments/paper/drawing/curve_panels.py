"""Learning curves in several panels, with the episodes at which other code solved them."""

import itertools
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from uppertail.analysis.figures import (
    SMOOTHING_WINDOW,
    Style,
    draw_curve,
    finished,
    own_style,
    return_label,
    save,
    seeds_text,
    styles,
)
from uppertail.errors import InputError
from uppertail.records import Episodes

TRIANGLE = 6.5
"""Size of a mark, in points."""


@own_style
def curve_panels(
    stem: Path,
    title: str,
    panels: dict[str, dict[str, list[Episodes]]],
    columns: int = 2,
    smoothing: int = SMOOTHING_WINDOW,
    marks: dict[str, dict[str, list[float]]] | None = None,
    marks_label: str = "solved by other code",
) -> None:
    """Draws learning curves in several panels with one axis of returns and one legend.

    Args:
        stem: path without ending; .svg and .png are written.
        title: above all panels.
        panels: title of a panel to method to its seeds; a method looks the same in all of them.
        columns: panels beside each other.
        smoothing: episodes to average over.
        marks: title of a panel to method to episodes, drawn as triangles on the upper edge.
        marks_label: what the triangles are.

    Raises:
        InputError: the marks name a panel that does not exist.
    """
    marks = {name: {method: at for method, at in of.items() if at} for name, of in (marks or {}).items()}
    if unknown := sorted(marks.keys() - panels.keys()):
        raise InputError(f"marks has {unknown[0]!r}, but the panels are {', '.join(map(repr, panels))}.")
    looks = styles(itertools.chain(*panels.values(), *marks.values()))
    columns = max(1, min(columns, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    figure = Figure(figsize=(0.9 + 3.6 * columns, 1.3 + 2.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for index, (axes, (name, methods)) in enumerate(zip(grid.flat, panels.items(), strict=False)):
        for method, seeds in methods.items():
            if ended := finished(seeds):
                draw_curve(axes, ended, looks[method], smoothing)
        axes.set_title(name, fontsize=10, pad=5 + TRIANGLE * max(map(len, marks.values()), default=0))
        if index + columns >= len(panels):  # the lowest of its column
            axes.set_xlabel("Episode")
        if not index % columns:
            axes.set_ylabel(return_label(smoothing).replace(" ", "\n", 1), fontsize=9)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        marked = marks.get(name, {})
        for place, (method, episodes) in enumerate(marked.items()):
            _triangles(axes, episodes, looks[method], place)
        axes.set_xlim(0.0, 1.03 * max([1.0, axes.dataLim.x1, *itertools.chain(*marked.values())]))
    limits = [axes.dataLim for axes in grid.flat]  # of what is drawn; infinite and reversed without curves
    low, high = min([0.0, *(limit.y0 for limit in limits)]), max([1.0, *(limit.y1 for limit in limits)])
    grid[0, 0].set_ylim(low - 0.02, high + 0.04)  # a curve at 0 stays visible above the axis
    figure.suptitle(title, fontsize=11)
    _legend(figure, panels, looks, marks_label if any(marks.values()) else None)
    save(figure, stem)


def _triangles(axes: Axes, episodes: list[float], style: Style, place: int) -> None:
    """Above the upper edge, where there is no curve to hide, one row for each method that has some."""
    raised = ScaledTranslation(0.0, (place + 0.5) * TRIANGLE / 72, axes.figure.dpi_scale_trans)
    axes.plot(
        episodes, [1.0] * len(episodes), marker="v", linestyle="none", transform=axes.get_xaxis_transform() + raised,
        clip_on=False, color=style.color, markersize=TRIANGLE, markeredgecolor="white", markeredgewidth=0.6,
    )  # fmt: skip


def _legend(
    figure: Figure, panels: dict[str, dict[str, list[Episodes]]], looks: dict[str, Style], marks_label: str | None
) -> None:
    """Below all panels, in as many columns as the figure is wide."""
    handles: list[Artist] = []
    for method, (color, dash) in looks.items():
        counts = {len(finished(methods.get(method, []))) for methods in panels.values()} - {0}
        if counts:
            handles.append(Line2D([], [], color=color, linestyle=dash, label=f"{method} ({seeds_text(counts)})"))
        else:
            handles.append(Line2D([], [], color=color, linestyle="none", marker="v", label=method))
    if handles:
        handles.append(Patch(color="0.35", alpha=0.2, linewidth=0, label="band: 95% interval over seeds"))
    if marks_label:
        handles.append(Line2D([], [], color="0.35", linestyle="none", marker="v", label=marks_label))
    if handles:
        widest = 0.072 * max(len(str(handle.get_label())) for handle in handles) + 0.55  # inches, at this size
        fit = max(1, int(figure.get_figwidth() / widest))
        even = -(-len(handles) // -(-len(handles) // fit))
        figure.legend(handles=handles, loc="outside lower center", ncols=even, frameon=False, fontsize=9)
