"""`uppertail reproduce`: the paper's figures, made by `reproduction/`, which is part of a source checkout only."""

import importlib
import sys
from pathlib import Path

import uppertail
from uppertail.cli.options import Values
from uppertail.errors import InputError


def figures() -> dict[str, str]:
    """Name and purpose of each figure and of all; none where the package was installed without its source checkout."""
    root = Path(uppertail.__file__).parents[2]
    if not (root / "reproduction" / "command.py").is_file():
        return {}
    if str(root) not in sys.path:
        sys.path.append(str(root))
    return {**importlib.import_module("reproduction").FIGURES, "all": "all of them"}


def main(config: Values) -> int:
    """Runs the command."""
    if not (names := [*figures()]):
        raise InputError("`uppertail reproduce` needs the source checkout: run `pip install --editable .` in it.")
    if config.name is None:
        raise InputError(f"Which figure? `uppertail reproduce NAME`, with one of {', '.join(names)}.")
    if config.name not in names:
        raise InputError(f"Unknown figure {config.name!r}: use one of {', '.join(names)}.")
    folder = Path(config.out) if config.out else Path("runs", f"reproduce-{config.name}{'-quick' * config.quick}")
    return importlib.import_module("reproduction.command").run(config.name, folder, config.quick, config.quiet)
