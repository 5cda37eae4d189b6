"""`uppertail reproduce`: the paper's figures, each from one command that can be interrupted."""

import argparse
import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser

from uppertail.cli.parsing import command_parser, parse
from uppertail.errors import InputError

if TYPE_CHECKING:
    from uppertail.experiments.reproduction import Figure

FIGURES = {
    "toy": "Fig. 1 and its full page: Gaussian distributions on the Toy, from wide to narrow",
    "chain": "Fig. 2: learning curves on randomized Chains of lengths 10, 25, 50, 100",
    "frozen-lake": "Fig. 3: Thompson sampling against epsilon-greedy on FrozenLake 8x8",
    "chain-domain": "the drawing of the Chain",
    "chain-distributions": "categorical distributions along a Chain of length 7, at three moments",
    "policy-evaluation": "not in the paper: learned distributions held against the exact ones",
    "uncertainties": "not in the paper: what an ensemble does not know and what is chance, along a run",
}
ALL = "all"

DESCRIPTION = "\n".join(
    [
        "Makes a figure of the paper: computes its cells, draws it (SVG and PNG), writes its numbers to summary.json.",
        "Called again with the same --out it goes on where it stopped.",
        "",
        "figures:",
        *(f"  {name:<20} {purpose}" for name, purpose in FIGURES.items()),
        f"  {ALL:<20} all of them",
    ]
)


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail reproduce`; a light parser is the same."""
    del light
    options = command_parser("reproduce", DESCRIPTION, argparse.RawDescriptionHelpFormatter)
    options.add_argument("name", type=str, nargs="?", default=None, help="the figure")
    options.add_argument("--out", type=str, default=None, help="folder for it (default: runs/reproduce-NAME)")
    options.add_argument("--quick", action="store_true", help="a version of a minute or two, not the paper's sizes")
    options.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = parse(parser(), arguments)
    if config.name is None:
        raise InputError(f"Which figure? `uppertail reproduce NAME`, with one of {', '.join((*FIGURES, ALL))}.")
    if config.name not in (*FIGURES, ALL):
        raise InputError(f"Unknown figure {config.name!r}: use one of {', '.join((*FIGURES, ALL))}.")
    folder = Path(config.out) if config.out else Path("runs", f"reproduce-{config.name}{'-quick' * config.quick}")
    return _reproduce(config.name, folder, config.quick, config.quiet)


def _reproduce(name: str, folder: Path, quick: bool, quiet: bool) -> int:
    from uppertail.experiments import reproduction
    from uppertail.locks import locked

    reproduction.claim(folder, name, quick)
    try:
        with locked(folder):
            for each in FIGURES if name == ALL else [name]:
                place = folder / each if name == ALL else folder
                reproduction.claim(place, each, quick)
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


def _make(name: str, folder: Path, quick: bool, quiet: bool) -> None:
    from rich.console import Console

    from uppertail.console import figure_table, progress_bar
    from uppertail.experiments import reproduction

    figure: Figure = importlib.import_module(f"uppertail.experiments.{name.replace('-', '_')}").FIGURE
    began = time.perf_counter()

    def say(line: str) -> None:
        if not quiet:
            print(line)

    say(f"{name}: {FIGURES[name]}")
    summary = reproduction.make(figure, folder, quick, say, lambda cell: progress_bar(cell, quiet))
    if not quiet and (rows := figure.table(summary)):
        Console().print(figure_table(rows))
    say(f"{name}: {time.perf_counter() - began:,.0f} s; figures and summary.json in {folder}")
