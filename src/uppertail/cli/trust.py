"""Whose code runs: what a run's options would import, whether it may, and where it is looked for."""

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from uppertail import records
from uppertail.errors import InputError, printable
from uppertail.parts import PARTS
from uppertail.yaml_files import content_of, read_options

OURS = re.compile(r"(uppertail|gymnasium)(\.[A-Za-z]\w*)+")  # import paths whose code runs without a question
WRAPPERS = re.compile(r"(gymnasium\.wrappers\.([a-z]\w*\.)*)?[A-Z]\w*")  # wrappers likewise, but for those that write
WRITERS = ("RecordVideo",)


def require_trust(folder: Path, trust: bool | None) -> None:
    """Refuses to run code that a folder names, unless it is ours, the user's own, or wanted (None: it never is)."""
    for name in (records.CONFIG, records.NEXT_CONFIG):
        path = folder / name
        if not path.is_file() or not (named := sorted(set(foreign_names(read_options(path))))):
            continue
        if trust or (trust is not None and records.made_here(path)):
            continue
        what = (
            f"The run in {folder} names code that is neither UpperTail's nor Gymnasium's, or that writes files "
            f"({printable(', '.join(named[:5]))[:300]})"
        )
        if trust is None:
            raise InputError(f"{what}, and this command runs none: train with --record distributions.")
        raise InputError(
            f"{what}, and you did not make it on this machine: read that code, then add --trust (in Python, "
            "trust=True)."
        )


def foreign_names(options: Mapping[str, Any]) -> Iterator[str]:
    """What a run with these options would import that is neither ours nor Gymnasium's, or that writes files."""
    if "config" in options:  # no run writes it; it would replace other options
        yield "config"
    for part in PARTS:
        for name in _readings(options.get(part)):
            if _is_foreign(name):
                yield name
    for loggers in _readings(options.get("logger")):
        for name in loggers if isinstance(loggers, list) else [loggers]:
            if _is_foreign(name):
                yield name
    for asked in _readings(options.get("env.id")):
        module, colon, _ = str(asked).rpartition(":")
        is_import = options.get("env") == "Gym" and OURS.fullmatch(module)  # others would call what it names
        if colon and not is_import:
            yield str(asked)
    wrappers = content_of(options.get("env.wrappers"))
    for asked in wrappers if isinstance(wrappers, list) else []:
        path = str(asked.get("class_path") if isinstance(asked, Mapping) else asked)
        if not WRAPPERS.fullmatch(path) or path.rpartition(".")[2] in WRITERS:
            yield path
    if options.get("env.results_dir") is not None:
        yield f"results_dir {options['env.results_dir']}"


def find_here(options: Mapping[str, Any]) -> None:
    """Lets Python find modules in the current folder, if options name some that are nowhere else.

    JAX and Gymnasium are imported before: they look for optional packages and plugins of any origin.
    """
    tops = {re.split(r"[.:]", name)[0] for name in foreign_names(options)}
    here = str(Path.cwd())
    if here not in sys.path and any(top.isidentifier() and importlib.util.find_spec(top) is None for top in tops):
        importlib.import_module("jax")
        importlib.import_module("gymnasium")
        sys.path.append(here)


def _is_foreign(name: Any) -> bool:
    """Whether this is an import path, and not one of ours; a name without a point is that of a built-in class."""
    return isinstance(name, str) and "." in name and not OURS.fullmatch(name)


def _readings(value: Any) -> list[Any]:
    """A value, and the content of a text that is YAML: options may be read either way."""
    readings = [value, content_of(value)]
    return [each for each in readings[: 2 if readings[1] != value else 1] if each is not None]
