"""Options of commands, as help shows them, and the classes that some of them name, whose settings are options, too."""

import argparse
import dataclasses
import functools
import inspect
import json
import pydoc
import types
import typing
from typing import Any, Literal, get_args, get_origin

import docstring_parser

import uppertail
from uppertail.errors import InputError, message_of, nearest, printable, short_text
from uppertail.parts import PARTS

REQUIRED = inspect.Parameter.empty
"""The default of an option that must be given."""


@dataclasses.dataclass(frozen=True)
class Option:
    """An option: `--NAME VALUE`."""

    kind: Any  # the type of its value
    default: Any  # or `REQUIRED`
    text: str
    nargs: int | Literal["?", "*"] = 1  # as in argparse; ? or *: it is given without its name
    repeats: bool = False  # it may be given several times, and each time adds to a list

    def show(self, name: str, parser: argparse._ActionsContainer) -> None:
        """Adds the option to a command's help."""
        if self.nargs in ("?", "*"):
            parser.add_argument(name, nargs=self.nargs, help=self.text)
        elif self.nargs == 0:
            parser.add_argument(f"--{name}", action="store_true", help=self.text)
        else:
            default = json.dumps(self.default, default=str).strip('"')
            known = "required" if self.default is REQUIRED else f"default: {default}"
            choices = f"{{{','.join(map(str, get_args(self.kind)))}}}" if get_origin(self.kind) is Literal else None
            kind = "" if choices else f"type: {_type_text(self.kind)}, "
            text = f"{self.text} ({kind}{known})".replace("%", "%%")
            shown = ("A", "B") if self.nargs == 2 else choices or name.rpartition(".")[2].upper()
            parser.add_argument(f"--{name}", nargs=None if self.nargs == 1 else self.nargs, metavar=shown, help=text)


def flag(text: str) -> Option:
    """An option without a value."""
    return Option(bool, False, text, nargs=0)


@functools.cache
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


def _type_text(kind: Any) -> str:
    """A type as help shows it: `int | null`."""
    if get_origin(kind) in (typing.Union, types.UnionType, Literal):
        return " | ".join(each if isinstance(each, str) else _type_text(each) for each in get_args(kind))
    if kind is types.NoneType:
        return "null"
    return kind.__name__ if isinstance(kind, type) and not get_origin(kind) else str(kind).replace("typing.", "")


@dataclasses.dataclass(frozen=True)
class Choice:
    """A class and its settings, before it is built."""

    kind: type
    settings: dict[str, Any]

    def build(self) -> Any:
        """The part; InputError if the class refuses its settings."""
        try:
            return self.kind(**self.settings)
        except (ValueError, TypeError) as error:
            raise InputError(printable(" ".join(str(error).split()))) from error

    def document(self) -> dict[str, Any]:
        """The class and all of its settings, as config.yaml has them."""
        name = self.kind.__qualname__
        home = "uppertail" if getattr(uppertail, name, None) is self.kind else self.kind.__module__
        settings = {name: self.settings.get(name, option.default) for name, option in options_of(self.kind).items()}
        settings = {name: value for name, value in settings.items() if name in self.settings or _is_data(value)}
        return {"class_path": f"{home}.{name}", **({"init_args": settings} if settings else {})}


def class_named(part: str, name: Any) -> type:
    """The class of a part that is built in, or at an import path; InputError if there is none of its kind."""
    known = PARTS[part]
    use = f"use {known.choices}, or the import path of your own class."
    if not isinstance(name, str):
        raise InputError(f"{part} is {'null' if name is None else short_text(name)}: {use}")
    shown = printable(name[:200])
    if name not in known.kinds and "." not in name:
        if part == "env" and "-v" in name:
            raise InputError(
                f"{shown} is not a class of UpperTail: for an environment of Gymnasium, use --env Gym --env.id {shown}."
            )
        raise InputError(f"Unknown {part} {shown!r}: {use}{nearest(name, known.kinds, 1)}")
    why = ""
    try:
        kind = pydoc.locate(known.path_of(name))
    except (pydoc.ErrorDuringImport, ValueError) as error:
        kind, why = None, f" ({message_of(getattr(error, 'value', error))})"
    if not inspect.isclass(kind):
        raise InputError(f"The class {shown} given for --{part} cannot be imported{why}: {use}")
    if not issubclass(kind, contract := known.load()):
        if part == "env":
            raise InputError(
                f"{shown} is not an environment builder: register the function that makes it "
                f"(gymnasium.register('My-v0', entry_point=...)), and use --env Gym --env.id MODULE:My-v0; or {use}"
            )
        raise InputError(f"The class {shown} given for --{part} is no subclass of {contract.__name__}: {use}")
    return kind


def _is_data(value: Any) -> bool:
    """Whether a file can hold a value."""
    if isinstance(value, list | tuple | dict):
        return all(map(_is_data, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, bool | int | float | str)
