"""Reads YAML of users as data; what cannot be read is an InputError."""

import contextlib
from pathlib import Path
from typing import Any

import yaml

from uppertail.errors import InputError, message_of, printable

MOST_BYTES, MOST_VALUES = 1_000_000, 200_000  # of a file: a study of 10,000 cells fits
LONGEST_TEXT = 50_000  # characters of an option that may be YAML


class _TwiceError(yaml.YAMLError):
    """A mapping names a key twice, of which YAML's own loader keeps the last."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(f"it names {key} twice")
        self.key, self.line = key, line


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, which refuses keys that come twice, and what would grow without end by its aliases."""

    def construct_document(self, node: yaml.Node) -> Any:
        counts = dict[yaml.Node, int]()

        def count(node: yaml.Node) -> int:
            """The values in a node, with those of its aliases each time that they are named."""
            if node not in counts:
                _require_once(node)
                counts[node] = MOST_VALUES + 1  # what it is if it holds itself
                counts[node] = 1 + sum(map(count, _parts(node)))
            return counts[node]

        if count(node) > MOST_VALUES:
            raise yaml.YAMLError(f"it holds more than {MOST_VALUES:,} values, aliases included")
        return super().construct_document(node)


def _require_once(node: yaml.Node) -> None:
    """Refuses a mapping that names a key twice; what is merged into it may be replaced there."""
    keys = (
        [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)] if isinstance(node, yaml.MappingNode) else []
    )
    seen = set[tuple[str, str]]()
    for key in keys:
        if (name := (key.tag, key.value)) in seen:
            raise _TwiceError(key.value, key.start_mark.line + 1)
        seen.add(name)


def _parts(node: yaml.Node) -> list[yaml.Node]:
    """The nodes that are directly in a node."""
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def content_of(value: Any) -> Any:
    """A value; of a text that is YAML, its content."""
    if isinstance(value, str) and len(value) <= LONGEST_TEXT:
        with contextlib.suppress(yaml.YAMLError, RecursionError, ValueError):
            return yaml.load(value, _Loader)
    return value


def read_yaml(path: Path, what: str) -> Any:
    """Reads a file; a sentence that says why one cannot be used begins with what it is."""
    name = f"{what} {str(path)!r}"
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{name} has more than {MOST_BYTES:,} bytes: give the path of a smaller YAML file.")
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except _TwiceError as error:
        raise InputError(f"{name} names {printable(error.key)} twice (line {error.line}): keep one.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else f" ({message_of(error)})"
        raise InputError(f"{name} is not valid YAML{where}: correct it.") from error
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
