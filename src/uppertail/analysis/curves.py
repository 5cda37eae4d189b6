"""Learning curves from records."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from uppertail.analysis.figures import ShownFigure, Style, own_style, save_png, styles
from uppertail.analysis.statistics import learning_curve
from uppertail.records import Episodes

SMOOTHING_WINDOW = 50


@own_style
def learning_curves(path: Path, title: str, methods: dict[str, list[Episodes]]) -> None:
    """Draws `curves_figure` as a PNG."""
    save_png(curves_figure(title, methods), path)


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
        handles = [*axes.get_legend_handles_labels()[0], *([_band(counts)] if max(counts) > 1 else [])]
        axes.legend(handles=handles, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    else:
        axes.text(0.5, 0.5, "no episode ended", ha="center", transform=axes.transAxes, color="0.35")
        axes.set(xticks=[], yticks=[])
    return figure


def draw_curve(axes: Axes, seeds: list[Episodes], style: Style, smoothing: int, label: str | None = None) -> None:
    """Draws the learning curve of one method with its band."""
    episodes, interval = learning_curve(seeds, smoothing)
    point = "o" if len(episodes) == 1 else None  # a line through one point cannot be seen
    axes.plot(episodes, interval.value, color=style.colour, linestyle=style.dash, marker=point, label=label)
    axes.fill_between(episodes, interval.low, interval.high, color=style.colour, alpha=0.2, linewidth=0)


def _band(counts: set[int]) -> Patch:
    """The legend's entry for the bands, with the number of seeds."""
    text = f"band: 95% interval\nof the mean, {seeds_text(counts)}"
    return Patch(color="0.35", alpha=0.2, linewidth=0, label=text)


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
