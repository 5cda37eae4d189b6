"""Circles, boxes and arrows of drawn MDPs, on axes measured in inches; names and numbers as they are written."""

from typing import Literal

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from matplotlib.ticker import MaxNLocator

Point = tuple[float, float]

RADIUS = 0.19
SQUARE = 0.15
LIGHT, HEAVY = 0.9, 2.2
INK, FAINT = "0.15", "0.45"
TEXT = 8.5


def canvas(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes without frame on a part of the figure; coordinates and arguments in inches, so that circles are round."""
    axes = in_inches(figure, left, bottom, width, height)
    axes.set_xlim(0.0, width)
    axes.set_ylim(0.0, height)
    axes.set_axis_off()
    return axes


def write(
    axes: Axes,
    place: Point,
    text: str,
    across: Literal["left", "center", "right"] = "center",
    up: Literal["bottom", "center", "top"] = "center",
    weight: Literal["normal", "bold"] = "normal",
    covers: bool = False,
) -> None:
    """Writes text at a place, aligned across and up; with `covers`, on a white ground."""
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.0} if covers else None
    axes.text(
        *place, text, ha=across, va=up, weight=weight, bbox=ground, fontsize=TEXT, color=INK, linespacing=1.05, zorder=5
    )


def in_inches(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes on a part of the figure, whose place is given in inches."""
    across, up = figure.get_size_inches()
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def circle(axes: Axes, center: Point, name: str) -> None:
    """Draws a state."""
    axes.add_patch(Circle(center, RADIUS, facecolor="white", edgecolor=INK, linewidth=1.2, zorder=3))
    axes.text(*center, name, ha="center", va="center_baseline", fontsize=TEXT + 0.5, color=INK, zorder=4)


def square(axes: Axes, center: Point) -> None:
    """Draws the end of an episode."""
    corner = (center[0] - SQUARE / 2, center[1] - SQUARE / 2)
    axes.add_patch(Rectangle(corner, SQUARE, SQUARE, facecolor="0.75", edgecolor=INK, linewidth=1.0, zorder=3))


def arrow(axes: Axes, tail: Point, head: Point, gaps: tuple[float, float], color: str, width: float) -> None:
    """Draws a straight arrow between two centers, with a gap in inches to each."""
    axes.add_patch(
        FancyArrowPatch(
            tail,
            head,
            arrowstyle="-|>,head_width=0.22,head_length=0.4",
            mutation_scale=9 + 2 * width,
            shrinkA=72 * gaps[0],
            shrinkB=72 * gaps[1],
            color=color,
            linewidth=width,
            zorder=2,
        )
    )


def whole_ticks(axis: Axis, count: int) -> None:
    """Few ticks at round numbers, written without needless zeros."""
    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(lambda value, _: number(value))


def subscript(letter: str, index: int) -> str:
    """A name such as s₀, in plain characters, so that it can be searched in an SVG."""
    return letter + str(index).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def number(value: float, form: str = "g") -> str:
    """A number with a true minus sign, and none before a zero."""
    text = format(value, form)
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")
