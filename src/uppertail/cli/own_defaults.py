"""Each kind of a part has defaults of its own, also where it shares the name of a setting with the default kind."""

import contextlib
import inspect
import pydoc
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from jsonargparse import ArgumentParser

from uppertail.parts import PARTS
from uppertail.presets import value_of


def use_own_defaults(parser: ArgumentParser, arguments: Sequence[str], configs: Sequence[Mapping[str, Any]]) -> None:
    """Makes the kinds that arguments name the parser's defaults.

    Otherwise jsonargparse would keep the settings of the default kind that the named one has, too: `--env RiskyArm`
    would have the length of a Chain.

    Args:
        parser: the parser of a command.
        arguments: its arguments.
        configs: the options in the configuration files that are among them.
    """
    defaults = parser.get_defaults()
    for option, part in PARTS.items():
        given = [config[option] for config in configs if option in config]
        asked = value_of(f"--{option}", arguments) or value_of(f"--{option}.class_path", arguments)
        name = _class_path(given[-1] if asked is None and given else asked)
        if option not in defaults or name is None:
            continue
        path = part.path_of(name)
        with contextlib.suppress(pydoc.ErrorDuringImport):  # `parse` refuses what is no kind of this part
            kind = pydoc.locate(path)
            if inspect.isclass(kind) and issubclass(kind, part.load()):
                parser.set_defaults({option: {"class_path": path}})


def _class_path(value: Any) -> str | None:
    """The class that a part's value names, as a name or as a mapping with `class_path`."""
    with contextlib.suppress(yaml.YAMLError, RecursionError, ValueError):
        value = yaml.safe_load(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        value = value.get("class_path")
    return value if isinstance(value, str) else None
