"""A command of `uppertail`: its options, and its help."""

import argparse
import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from uppertail.cli.options import REQUIRED, Option, class_named, options_of
from uppertail.cli.parsing import Values, parse
from uppertail.errors import InputError
from uppertail.parts import PARTS


@dataclasses.dataclass(frozen=True)
class Command:
    """A command; the module of its name has the function `main`, which runs it."""

    name: str
    purpose: str  # in the list of all commands
    description: str  # what its help says first
    options: Mapping[str, Option]
    parts: Sequence[str] = ()  # of a run, which are options, too, with their settings
    settings: type | None = None  # a dataclass whose fields are options, too
    more: Callable[[], str] = str  # what its help says last

    def parse(self, arguments: Sequence[str]) -> Values:
        """The values of its options; InputError if one is unknown or missing, or its value of another type."""
        settings = {} if self.settings is None else options_of(self.settings)
        values = parse(f"uppertail {self.name}", {**settings, **self.options}, self.parts, arguments)
        if "folder" in values:
            if values.folder is None:
                raise InputError(
                    f"Which run? `uppertail {self.name} DIR`, with the folder that `uppertail train` wrote to."
                )
            values["folder"] = Path(values.folder)
        return values

    def help(self, arguments: Sequence[str]) -> str:
        """All of its options; with `--PART.help CLASS` among the arguments, the settings of that class."""
        for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
            name, equals, value = argument.removeprefix("--").partition("=")
            if name.endswith(".help") and (part := name.removesuffix(".help")) in self.parts:
                kind = class_named(part, value if equals else following)
                command, about = f"uppertail {self.name} --{part} {kind.__name__}", str(kind.__doc__)
                parser = argparse.ArgumentParser(command, description=about.partition("\n\n")[0])
                for setting, option in options_of(kind).items():
                    _show(parser, f"{part}.{setting}", option)
                return parser.format_help().rstrip()
        parser = argparse.ArgumentParser(f"uppertail {self.name}", description=self.description)
        for name in self.parts:
            part = PARTS[name]
            own = f"or the import path of your own class; its settings: --{name}.NAME VALUE"
            default = None if part.optional else part.default
            _show(parser, name, Option(str, default, f"{part.meaning}: {part.choices}, {own}"))
            parser.add_argument(f"--{name}.help", metavar="CLASS", help="list the settings of one of these")
        for name, option in self.options.items():
            _show(parser, name, option)
        if self.settings is not None:
            group = parser.add_argument_group(str(self.settings.__doc__).partition(".\n")[0])
            for name, option in options_of(self.settings).items():
                _show(group, name, option)
        return f"{parser.format_help()}\n{self.more()}".rstrip()


def _show(parser: argparse._ActionsContainer, name: str, option: Option) -> None:
    """Adds an option to the help."""
    if option.nargs in ("?", "*"):
        parser.add_argument(name, nargs=option.nargs, help=option.text)
    elif option.nargs == 0:
        parser.add_argument(f"--{name}", action="store_true", help=option.text)
    else:
        default = json.dumps(option.default, default=str).strip('"')
        known = "required" if option.default is REQUIRED else f"default: {default}"
        choices = f"{{{','.join(map(str, get_args(option.kind)))}}}" if get_origin(option.kind) is Literal else None
        kind = "" if choices else f"type: {_type_text(option.kind)}, "
        text = f"{option.text} ({kind}{known})".replace("%", "%%")
        shown = ("A", "B") if option.nargs == 2 else choices or name.rpartition(".")[2].upper()
        parser.add_argument(f"--{name}", nargs=None if option.nargs == 1 else option.nargs, metavar=shown, help=text)


def _type_text(kind: Any) -> str:
    """A type as help shows it: `int | null`."""
    if get_origin(kind) in (typing.Union, types.UnionType, Literal):
        return " | ".join(each if isinstance(each, str) else _type_text(each) for each in get_args(kind))
    if kind is types.NoneType:
        return "null"
    return kind.__name__ if isinstance(kind, type) and not get_origin(kind) else str(kind).replace("typing.", "")
