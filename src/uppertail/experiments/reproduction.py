"""How a figure of the paper is made: cell after cell, then the figure and its numbers."""

import dataclasses
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from uppertail import records
from uppertail.errors import InputError
from uppertail.experiments import cells
from uppertail.experiments.cells import Cell, CellResult, Report
from uppertail.training.process.interrupt import interruptible

MARKER, CELLS, SUMMARY = "figure.json", "cells", "summary.json"


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Args:
        name: its name on the command line.
        cells: the cells of its quick version or of its full one.
        finish: draws it from all cells' results into a folder; returns its numbers, for summary.json.
        table: a few of these numbers as rows to print, headings as keys.
    """

    name: str
    cells: Callable[[bool], list[Cell]]
    finish: Callable[[Path, dict[str, CellResult], bool], dict[str, Any]]
    table: Callable[[dict[str, Any]], list[dict[str, str]]]


def claim(folder: Path, name: str, quick: bool) -> None:
    """Makes the folder of a figure, or goes on with an earlier one.

    Raises:
        InputError: it holds something else, or cannot be written.
    """
    marker, asked = folder / MARKER, {"figure": name, "quick": quick}
    with records.output_errors(folder):
        if marker.exists():
            if (found := _read_marker(marker)) != asked:
                raise InputError(
                    f"The output {folder} holds {_label(found)}, not {_label(asked)}: choose another --out."
                )
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"The output {folder} holds something else: choose another --out.")
        folder.mkdir(parents=True, exist_ok=True)
        records.write_text(marker, json.dumps(asked) + "\n")


def make(
    figure: Figure,
    folder: Path,
    quick: bool,
    say: Callable[[str], object],
    progress: Callable[[str], AbstractContextManager[Report]],
) -> dict[str, Any]:
    """Computes the cells that are not kept in the folder, draws the figure, and returns the contents of summary.json.

    Args:
        figure: the figure.
        folder: claimed for it.
        quick: its smaller version.
        say: prints one line.
        progress: shows a cell's progress, given its name.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM, whose number it holds; finished cells are kept.
    """
    wanted, results = figure.cells(quick), {}
    for cell in wanted:
        result = _read_kept(cell, folder / CELLS, say)
        if result is None:
            with interruptible() as asked_to_stop:  # the cell in progress is finished and kept
                with progress(cell.name) as report:
                    result = cell.compute(report)
                cells.write(folder / CELLS, cell, result)
            if asked_to_stop.is_set():
                raise KeyboardInterrupt(asked_to_stop.signal_number)
        results[cell.name] = result
    summary = {
        "figure": figure.name,
        "quick": quick,
        **figure.finish(folder, results, quick),
        "cells": {cell.name: cell.settings for cell in wanted},
    }
    records.write_text(folder / SUMMARY, json.dumps(summary, indent=1, allow_nan=False) + "\n")
    return summary


def _read_kept(cell: Cell, folder: Path, say: Callable[[str], object]) -> CellResult | None:
    try:
        kept = cells.read(folder, cell)
    except cells.UnusableCellError as reason:
        say(f"{cell.name}: {reason}, so it is computed again.")
        return None
    if kept is not None:
        say(f"{cell.name}: kept from an earlier call.")
    return kept


def _read_marker(marker: Path) -> dict[str, Any]:
    try:
        found = json.loads(marker.read_text(encoding="utf-8"))
        return {"figure": str(found["figure"]), "quick": bool(found["quick"])}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{marker} is damaged: choose another --out, or remove it.") from error


def _label(marker: dict[str, Any]) -> str:
    return f"{marker['figure']}{' (quick)' if marker['quick'] else ''}"
