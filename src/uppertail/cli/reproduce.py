"""`uppertail reproduce`: the paper's figures, made by `reproduction/`, which is part of a source checkout only."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import uppertail
from uppertail.cli.parsing import QUIET, Command, flag, option
from uppertail.errors import InputError

DESCRIPTION = """Makes a figure of the paper, in the source checkout: computes its cells, draws it (SVG and PNG), and
writes its numbers to summary.json. Called again with the same --out it goes on where it stopped."""


def _figures() -> dict[str, str]:
    """Name and purpose of each figure and of all; none where the package was installed without its source checkout."""
    return (
        {**_import("reproduction").FIGURES, "all": "all of them"}
        if (_root() / "reproduction" / "command.py").is_file()
        else {}
    )


def _root() -> Path:
    return Path(uppertail.__file__).parents[2]


def _import(name: str) -> ModuleType:
    """Imports a module of the source checkout."""
    if (root := str(_root())) not in sys.path:
        sys.path.append(root)
    return importlib.import_module(name)


COMMAND = Command(
    "reproduce",
    "\n".join([DESCRIPTION, "", "figures:", *(f"  {name:<20} {text}" for name, text in _figures().items())]),
    {
        "name": option(str, None, "the figure", nargs="?"),
        "--out": option(str, None, "folder for it (default: runs/reproduce-NAME)"),
        "--quick": flag("a version of a minute or two, not the paper's sizes"),
        **QUIET,
    },
    formatter=argparse.RawDescriptionHelpFormatter,
)


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = COMMAND.parse(arguments)
    if not (names := [*_figures()]):
        raise InputError(
            "`uppertail reproduce` needs the source checkout, whose folder `reproduction` is not installed: clone the "
            "repository, and install it with `pip install --editable .`."
        )
    if config.name is None:
        raise InputError(f"Which figure? `uppertail reproduce NAME`, with one of {', '.join(names)}.")
    if config.name not in names:
        raise InputError(f"Unknown figure {config.name!r}: use one of {', '.join(names)}.")
    folder = Path(config.out) if config.out else Path("runs", f"reproduce-{config.name}{'-quick' * config.quick}")
    return _import("reproduction.command").run(config.name, folder, config.quick, config.quiet)
