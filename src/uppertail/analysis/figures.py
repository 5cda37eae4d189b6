"""The style of all figures, and their files."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib
import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from uppertail.errors import InputError, message_of
from uppertail.records import write_bytes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's palette, safe for colour-blind readers."""
Dash = Literal["-", "--", "-.", ":"]
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":")
DPI = 150

own_style = matplotlib.style.context("default")
"""Makes a function draw in the default style, whatever a user's matplotlibrc says about LaTeX, fonts and sizes."""


class PictureError(InputError):
    """A figure that cannot be drawn; its text says which, and why."""


class Style(NamedTuple):
    """The color and dash of one method in all figures."""

    colour: str
    dash: Dash


class ShownFigure(Figure):
    """A figure that a notebook shows when it is the last value of a cell."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        FigureCanvasAgg(self).print_png(content)
        return content.getvalue()


def save(figure: Figure, stem: Path) -> None:
    """Writes stem.svg and stem.png, each whole or not at all.

    The same figure gives the same bytes, and text stays text in the SVG, so that it can be searched and read aloud.
    """
    with matplotlib.rc_context({"svg.hashsalt": "uppertail", "svg.fonttype": "none"}):
        content = {
            "svg": render(figure, stem.name, format="svg", metadata={"Date": None}),
            "png": render(figure, stem.name, format="png", dpi=DPI),
        }
    for kind, drawn in content.items():
        # the name may hold dots ("discount-0.99"), which with_suffix would cut off
        write_bytes(stem.with_name(f"{stem.name}.{kind}"), drawn)


def save_png(figure: Figure, path: Path) -> None:
    """Writes a PNG, whole or not at all."""
    write_bytes(path, render(figure, path.name, format="png", dpi=DPI))


def render(figure: Figure, name: str, **how: Any) -> bytes:
    """The bytes of a figure's file."""
    FigureCanvasAgg(figure)  # independent of the user's backend
    drawn = io.BytesIO()
    try:
        figure.savefig(drawn, **how)
    except Exception as error:  # for example a damaged font or a missing library
        raise PictureError(
            f"The picture {name} cannot be drawn ({type(error).__name__}: {message_of(error)})."
        ) from error
    return drawn.getvalue()


def styles(methods: Iterable[str]) -> dict[str, Style]:
    """One colour and dash per method, in order of first appearance."""
    return {
        method: Style(COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)])
        for index, method in enumerate(dict.fromkeys(methods))
    }
