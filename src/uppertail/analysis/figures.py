"""How every figure looks and becomes files."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from uppertail.records import write_bytes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's palette, safe for colour-blind readers."""
Dash = Literal["-", "--", "-.", ":"]
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":")
DPI = 150


class Style(NamedTuple):
    """How one method is drawn, wherever it is drawn."""

    colour: str
    dash: Dash


def save(figure: Figure, stem: Path) -> None:
    """Writes stem.svg and stem.png, each at once or not at all, and closes the figure.

    The same figure gives the same bytes, and text stays text in the SVG, so that it can be searched and read aloud.
    """
    try:
        content = {kind: io.BytesIO() for kind in ("svg", "png")}
        with matplotlib.rc_context({"svg.hashsalt": "uppertail", "svg.fonttype": "none"}):
            figure.savefig(content["svg"], format="svg", metadata={"Date": None})
            figure.savefig(content["png"], format="png", dpi=DPI)
    finally:
        plt.close(figure)
    for kind, drawn in content.items():
        # the name may hold dots ("discount-0.99"), which with_suffix would cut off
        write_bytes(stem.with_name(f"{stem.name}.{kind}"), drawn.getvalue())


def styles(methods: Iterable[str]) -> dict[str, Style]:
    """One colour and dash per method, in the order in which they first come."""
    return {
        method: Style(COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)])
        for index, method in enumerate(dict.fromkeys(methods))
    }
