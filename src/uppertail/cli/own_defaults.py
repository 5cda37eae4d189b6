"""Each kind of a part has defaults of its own, also where it shares the name of a setting with the default kind."""

import contextlib
import inspect
import pydoc
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentParser

from uppertail.errors import InputError
from uppertail.parts import PARTS
from uppertail.presets import value_of
from uppertail.yaml_files import read_yaml


def use_own_defaults(parser: ArgumentParser, arguments: Sequence[str], files: Iterable[str]) -> None:
    """Makes the kinds that arguments name the parser's defaults.

    Otherwise jsonargparse would keep the settings of the default kind that the named one has, too: `--env RiskyArm`
    would have the length of a Chain.

    Args:
        parser: the parser of a command.
        arguments: its arguments.
        files: the configuration files that are among them.
    """
    contents = [_content(path) for path in files]
    for option, part in PARTS.items():
        given = [content[option] for content in contents if option in content]
        asked = value_of(f"--{option}", arguments) or value_of(f"--{option}.class_path", arguments)
        name = _class_path(given[-1] if asked is None and given else asked)
        if option not in parser.get_defaults() or name is None:
            continue
        path = f"{part.kinds[name]}.{name}" if name in part.kinds else name
        with contextlib.suppress(pydoc.ErrorDuringImport):  # `parse` refuses what is no kind of this part
            kind = pydoc.locate(path)
            if inspect.isclass(kind) and issubclass(kind, part.load()):
                parser.set_defaults({option: {"class_path": path}})


def _content(path: str) -> dict[str, Any]:
    """The options of a configuration file; none if it cannot be read, which `parse` refuses."""
    with contextlib.suppress(InputError):
        content = read_yaml(Path(path), "The config file")
        return content if isinstance(content, dict) else {}
    return {}


def _class_path(value: Any) -> str | None:
    """The class that a part's value names, as a name or as a mapping with `class_path`."""
    with contextlib.suppress(yaml.YAMLError, RecursionError, ValueError):
        value = yaml.safe_load(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        value = value.get("class_path")
    return value if isinstance(value, str) else None
