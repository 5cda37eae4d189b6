"""Options of commands, and the settings of classes as options. Imports no part of a run."""

import dataclasses
import inspect
import typing
from typing import Any, Literal

import docstring_parser

REQUIRED = inspect.Parameter.empty
"""The default of an option that must be given."""


@dataclasses.dataclass(frozen=True)
class Option:
    """An option: `--NAME VALUE`.

    Args:
        kind: the type of its value.
        default: its value where it is not given, or `REQUIRED`.
        text: what it means.
        nargs: how many values it takes, as in argparse; "?" or "*": it is given without its name.
        repeats: whether it may be given several times, where each time adds to a list.
    """

    kind: Any
    default: Any
    text: str
    nargs: int | Literal["?", "*"] = 1
    repeats: bool = False


def flag(text: str) -> Option:
    """An option without a value."""
    return Option(bool, False, text, nargs=0)


def options_of(kind: Any) -> dict[str, Option]:
    """The arguments of a class by name, with the types that it declares and what its docstring says of them."""
    try:
        hints = typing.get_type_hints(kind.__init__)
    except (NameError, TypeError):  # a user's class may import a type for type checkers only
        hints = {}
    pages = [docstring_parser.parse(base.__doc__ or "") for base in reversed(kind.__mro__)]
    texts = {param.arg_name: " ".join((param.description or "").split()) for page in pages for param in page.params}
    parameters = inspect.signature(kind).parameters.values()
    return {
        each.name: Option(hints.get(each.name, Any), each.default, texts.get(each.name, ""))
        for each in sorted(parameters, key=lambda each: each.default is not REQUIRED)
        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    }
