"""What a run's options would import, and where it is looked for."""

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from uppertail.parts import PARTS, is_id
from uppertail.yaml_files import content_of

OURS = re.compile(r"(uppertail|gymnasium)(\.[A-Za-z]\w*)+")  # import paths whose code runs without a question
WRAPPERS = re.compile(r"(gymnasium\.wrappers\.([a-z]\w*\.)*)?[A-Z]\w*")  # wrappers likewise, but for those that write
WRITERS = ("RecordVideo",)


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
    env = options.get("env")
    for asked in [*_readings(options.get("env.id")), *filter(is_id, _readings(env))]:
        module, colon, _ = str(asked).rpartition(":")
        is_import = (env == "Gym" or is_id(env)) and OURS.fullmatch(module)  # others would call what it names
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
    tops = {found[1] for name in foreign_names(options) if (found := re.match(r"(\w+)[.:]", name))}
    here = str(Path.cwd())
    if here not in sys.path and any(top.isidentifier() and not _is_installed(top) for top in tops):
        importlib.import_module("jax")
        importlib.import_module("gymnasium")
        sys.path.append(here)


def _is_installed(module: str) -> bool:
    return module in sys.modules or importlib.util.find_spec(module) is not None


def _is_foreign(name: Any) -> bool:
    """Whether this is an import path, and not one of ours; a name without a point is that of a built-in class."""
    return isinstance(name, str) and "." in name and not OURS.fullmatch(name)


def _readings(value: Any) -> list[Any]:
    """A value, and the content of a text that is YAML: options may be read either way."""
    readings = [value, content_of(value)]
    return [each for each in readings[: 2 if readings[1] != value else 1] if each is not None]
