"""Reads YAML files of users as data; what cannot be read is an InputError."""

from pathlib import Path
from typing import Any

import yaml

from uppertail.errors import InputError, message_of


def read_yaml(path: Path, what: str) -> Any:
    """Reads a file; a sentence that says why one cannot be used begins with what it is."""
    name = f"{what} {str(path)!r}"
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise InputError(f"{name} is not valid YAML{where}: correct it there.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name} cannot be read: give the path of a YAML file.") from error
    except RecursionError as error:
        raise InputError(f"{name} is nested too deep: write its options as `name: value` lines.") from error
    except ValueError as error:  # an impossible file name, a number of thousands of digits, an impossible date
        raise InputError(f"{name} cannot be read ({message_of(error)}): correct it, or give another file.") from error


def read_options(path: Path) -> dict[str, Any]:
    """The options in a configuration file; one with something else at its top level is refused."""
    options = read_yaml(path, "The config file")
    if not isinstance(options, dict) or not all(isinstance(name, str) for name in options):
        raise InputError(f"The config file {str(path)!r} holds no options: write them as `name: value` lines.")
    return options
