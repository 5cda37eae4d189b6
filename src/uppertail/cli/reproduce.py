"""`uppertail reproduce`: the paper's figures, made by `reproduction/`, which is part of a source checkout only."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import uppertail
from uppertail.cli.parsing import Values
from uppertail.errors import InputError


def figures() -> dict[str, str]:
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


def main(config: Values) -> int:
    """Runs the command."""
    if not (names := [*figures()]):
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
