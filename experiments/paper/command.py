"""Makes figures: cell after cell, then the drawing and its numbers; interrupted, it goes on where it stopped.

Usage: python -m experiments run paper [NAME] [--out DIR] [--quick] [--quiet]

Writes SVG, PNG and summary.json, with 95% intervals. Called again with the same --out, it continues where it stopped.
"""

import argparse
import importlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from experiments.common import ended
from experiments.paper import FIGURES, cells
from experiments.paper.cells import Cell, CellResult, Report
from experiments.provenance import record
from uppertail import records
from uppertail.cli import print_table
from uppertail.cli.train import progress_bar
from uppertail.errors import InputError
from uppertail.records import locked
from uppertail.training.process import interruptible

ALL = "all"
MARKER, CELLS, SUMMARY = "figure.json", "cells", "summary.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = "; ".join(f"{name}: {text}" for name, text in FIGURES.items())
    parser.add_argument("name", nargs="?", default=ALL, choices=[*FIGURES, ALL], metavar="NAME", help=names)
    parser.add_argument("--out", type=Path, help="folder for it (default: runs/paper-NAME)")
    parser.add_argument("--quick", action="store_true", help="a small version that takes a minute or two")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    asked = parser.parse_args(arguments)
    folder = asked.out or Path("runs", f"paper-{asked.name}{'-quick' * asked.quick}")
    return run(asked.name, folder, asked.quick, asked.quiet)


def run(name: str, folder: Path, quick: bool, quiet: bool) -> int:
    """Makes one figure, or all of them, in a folder.

    Returns:
        The exit code.

    Raises:
        InputError: the folder holds something else, is in use, or cannot be written.
        KeyboardInterrupt: Ctrl-C or SIGTERM, whose number it holds; finished cells are kept.
    """
    claim(folder, name, quick)
    try:
        with locked(folder):
            for each in FIGURES if name == ALL else [name]:
                place = folder / each if name == ALL else folder
                claim(place, each, quick)
                _make(each, place, quick, quiet)
    except KeyboardInterrupt:
        if not quiet:
            print(f"Finished cells are kept: the same command with --out {folder} goes on from there.")
        raise
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written ({error.strerror}): finished cells are kept; fix that, then call it again."
        ) from error
    return 0


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any] | None:
    """The first seed of a stored cell, made again."""
    figures = (importlib.import_module(f"experiments.paper.{name.replace('-', '_')}") for name in FIGURES)
    every = {cell.name: cell for figure in figures for cell in figure.cells(False)}
    first = every[stem].first if stem in every else None
    return first and cells.episodes_of(first(lambda progress: None).arrays)


def claim(folder: Path, name: str, quick: bool) -> None:
    """Makes the folder of a figure, or goes on with an earlier one.

    Raises:
        InputError: it holds something else, or cannot be written.
    """
    marker, wanted = folder / MARKER, json.dumps({"figure": name, "quick": quick})
    with records.output_errors(folder):
        if marker.exists():
            if (found := marker.read_text(encoding="utf-8", errors="replace").strip()) != wanted:
                raise InputError(f"The output {folder} holds {found}, not {wanted}: choose another --out.")
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"The output {folder} holds something else: choose another --out.")
        folder.mkdir(parents=True, exist_ok=True)
        records.write_text(marker, wanted + "\n")


def _make(name: str, folder: Path, quick: bool, quiet: bool) -> None:
    """Computes the cells of a figure that are not kept in the folder, and draws it."""
    figure: Any = importlib.import_module(f"experiments.paper.{name.replace('-', '_')}")
    began = time.perf_counter()

    def say(line: str) -> None:
        if not quiet:
            print(line)

    say(f"{name}: {FIGURES[name]}")
    wanted: list[Cell] = figure.cells(quick)
    results = {cell.name: _result(cell, folder / CELLS, say, progress_bar(cell.name, quiet)) for cell in wanted}
    settings = {cell.name: cell.settings for cell in wanted}
    summary = {"figure": name, "quick": quick, **figure.finish(folder, results, quick), "cells": settings}
    records.write_text(folder / SUMMARY, json.dumps(summary, indent=1, allow_nan=False) + "\n")
    record(folder / SUMMARY)
    if not quiet and (rows := figure.table(summary)):
        print_table(rows)
    say(f"{name}: {time.perf_counter() - began:,.0f} s; figures and summary.json in {folder}")


def _result(
    cell: Cell, folder: Path, say: Callable[[str], None], progress: AbstractContextManager[Report]
) -> CellResult:
    """The kept result of a cell, or a new one."""
    try:
        if kept := cells.read(folder, cell):
            say(f"{cell.name}: kept from an earlier call.")
            return kept
    except cells.UnusableCellError as reason:
        say(f"{cell.name}: {reason}, so it is computed again.")
    with interruptible() as asked_to_stop:  # the cell in progress is finished and kept
        with progress as report:
            result = cell.compute(report)
        cells.write(folder, cell, result)
    if asked_to_stop.is_set():
        raise KeyboardInterrupt(asked_to_stop.signal_number)
    return result


if __name__ == "__main__":
    ended(main)
