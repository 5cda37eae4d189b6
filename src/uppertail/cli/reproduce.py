"""`uppertail reproduce`: the paper's figures, made by `reproduction/`, which is part of a source checkout only."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from jsonargparse import ArgumentParser

import uppertail
from uppertail.cli.parsing import command_parser, parse
from uppertail.errors import InputError

ALL = "all"

DESCRIPTION = """Makes a figure of the paper, in the source checkout: computes its cells, draws it (SVG and PNG), and
writes its numbers to summary.json. Called again with the same --out it goes on where it stopped."""


def parser() -> ArgumentParser:
    """The options of `uppertail reproduce`."""
    figures = {**_figures(), ALL: "all of them"}
    text = "\n".join([DESCRIPTION, "", "figures:", *(f"  {name:<20} {purpose}" for name, purpose in figures.items())])
    options = command_parser("reproduce", text, argparse.RawDescriptionHelpFormatter)
    options.add_argument("name", type=str, nargs="?", default=None, help="the figure")
    options.add_argument("--out", type=str, default=None, help="folder for it (default: runs/reproduce-NAME)")
    options.add_argument("--quick", action="store_true", help="a version of a minute or two, not the paper's sizes")
    options.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = parse(parser(), arguments)
    if not _figures():
        raise InputError(
            "`uppertail reproduce` needs the source checkout, whose folder `reproduction` is not installed: clone the "
            "repository, and install it with `pip install --editable .`."
        )
    names = [*_figures(), ALL]
    if config.name is None:
        raise InputError(f"Which figure? `uppertail reproduce NAME`, with one of {', '.join(names)}.")
    if config.name not in names:
        raise InputError(f"Unknown figure {config.name!r}: use one of {', '.join(names)}.")
    folder = Path(config.out) if config.out else Path("runs", f"reproduce-{config.name}{'-quick' * config.quick}")
    return _import("reproduction.command").run(config.name, folder, config.quick, config.quiet)


def _figures() -> dict[str, str]:
    """Name and purpose of each figure; none where the package was installed without its source checkout."""
    return _import("reproduction").FIGURES if (_root() / "reproduction" / "command.py").is_file() else {}


def _root() -> Path:
    return Path(uppertail.__file__).parents[2]


def _import(name: str) -> ModuleType:
    """Imports a module of the source checkout."""
    if (root := str(_root())) not in sys.path:
        sys.path.append(root)
    return importlib.import_module(name)
