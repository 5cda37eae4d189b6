"""Learning curves from records."""

import itertools
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from uppertail.analysis.figures import Style, own_style, save, save_png, styles
from uppertail.analysis.statistics import learning_curve
from uppertail.errors import InputError
from uppertail.records import Episodes

SMOOTHING_WINDOW = 50
TRIANGLE = 6.5
"""Size of a mark, in points."""


@own_style
def learning_curves(path: Path, title: str, methods: dict[str, list[Episodes]]) -> None:
    """Draws the mean return against the episode, one line per method with its 95% interval over seeds, as a PNG."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    for (label, seeds), style in zip(methods.items(), styles(methods).values(), strict=True):
        if finished := _finished(seeds):
            _curve(axes, finished, style, SMOOTHING_WINDOW, label)
    axes.set(xlabel="Episode", ylabel=_return_label(SMOOTHING_WINDOW))
    axes.set_title(title, fontsize=11, wrap=True)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    counts = {len(_finished(seeds)) for seeds in methods.values()} - {0}
    if counts:
        axes.set_xlim(0.0, max(1.0, axes.dataLim.x1) * 1.02)
        handles = [*axes.get_legend_handles_labels()[0], *([_band(counts)] if max(counts) > 1 else [])]
        axes.legend(handles=handles, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    else:
        axes.text(0.5, 0.5, "no episode ended", ha="center", transform=axes.transAxes, color="0.35")
        axes.set(xticks=[], yticks=[])
    save_png(figure, path)


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
            if finished := _finished(seeds):
                _curve(axes, finished, looks[method], smoothing)
        axes.set_title(name, fontsize=10, pad=5 + TRIANGLE * max(map(len, marks.values()), default=0))
        if index + columns >= len(panels):  # the lowest of its column
            axes.set_xlabel("Episode")
        if not index % columns:
            axes.set_ylabel(_return_label(smoothing).replace(" ", "\n", 1), fontsize=9)
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


def _curve(axes: Axes, seeds: list[Episodes], style: Style, smoothing: int, label: str | None = None) -> None:
    episodes, interval = learning_curve(seeds, smoothing)
    point = "o" if len(episodes) == 1 else None  # a line through one point cannot be seen
    axes.plot(episodes, interval.mean, color=style.colour, linestyle=style.dash, marker=point, label=label)
    axes.fill_between(episodes, interval.low, interval.high, color=style.colour, alpha=0.2, linewidth=0)


def _triangles(axes: Axes, episodes: list[float], style: Style, place: int) -> None:
    """Above the upper edge, where there is no curve to hide, one row for each method that has some."""
    raised = ScaledTranslation(0.0, (place + 0.5) * TRIANGLE / 72, axes.figure.dpi_scale_trans)
    axes.plot(
        episodes, [1.0] * len(episodes), marker="v", linestyle="none", transform=axes.get_xaxis_transform() + raised,
        clip_on=False, color=style.colour, markersize=TRIANGLE, markeredgecolor="white", markeredgewidth=0.6,
    )  # fmt: skip


def _legend(
    figure: Figure, panels: dict[str, dict[str, list[Episodes]]], looks: dict[str, Style], marks_label: str | None
) -> None:
    """Below all panels, in as many columns as the figure is wide."""
    handles: list[Artist] = []
    for method, (colour, dash) in looks.items():
        counts = {len(_finished(methods.get(method, []))) for methods in panels.values()} - {0}
        if counts:
            handles.append(Line2D([], [], color=colour, linestyle=dash, label=f"{method} ({_seeds(counts)})"))
        else:
            handles.append(Line2D([], [], color=colour, linestyle="none", marker="v", label=method))
    if handles:
        handles.append(Patch(color="0.35", alpha=0.2, linewidth=0, label="band: 95% interval over seeds"))
    if marks_label:
        handles.append(Line2D([], [], color="0.35", linestyle="none", marker="v", label=marks_label))
    if handles:
        widest = 0.072 * max(len(str(handle.get_label())) for handle in handles) + 0.55  # inches, at this size
        fit = max(1, int(figure.get_figwidth() / widest))
        even = -(-len(handles) // -(-len(handles) // fit))
        figure.legend(handles=handles, loc="outside lower center", ncols=even, frameon=False, fontsize=9)


def _band(counts: set[int]) -> Patch:
    """The legend's entry for the bands, with the number of seeds."""
    text = f"band: 95% interval\nof the mean, {_seeds(counts)}"
    return Patch(color="0.35", alpha=0.2, linewidth=0, label=text)


def _finished(seeds: list[Episodes]) -> list[Episodes]:
    return [seed for seed in seeds if seed.returns.size]


def _seeds(counts: set[int]) -> str:
    few, many = min(counts), max(counts)
    return f"{few if few == many else f'{few} to {many}'} seed{'s'[: many > 1]}"


def _return_label(smoothing: int) -> str:
    return f"Return (mean of last {smoothing} episodes)"
