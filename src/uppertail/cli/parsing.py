"""Options from the signatures of classes; the first one that is wrong is an InputError."""

import argparse
import dataclasses
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace

from uppertail.cli.checks import check
from uppertail.errors import InputError, printable
from uppertail.parts import PARTS
from uppertail.presets import values_of
from uppertail.yaml_files import read_options

REFUSED = (argparse.ArgumentError, ImportError, AttributeError, ArithmeticError, LookupError, TypeError, ValueError)
"""What the parser raises for options that it refuses."""

LONGEST = 600
"""The most characters of what the parser itself says."""


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of `uppertail`, whose options are taken as they are written, without abbreviations.

    Args:
        name: its name.
        description: what its help says first.
        options: its options, each with arguments of `add_argument`.
        parts: the parts of a run that are among its options, with their settings.
        settings: a class whose arguments are among them, too.
        formatter: how its help is formatted.
    """

    name: str
    description: str
    options: Mapping[str, Mapping[str, Any]]
    parts: Sequence[str] = ()
    settings: type | None = None
    formatter: type[argparse.HelpFormatter] = DefaultHelpFormatter

    def parser(self, light: bool = False) -> ArgumentParser:
        """Its parser; a light one imports no part, and only shows help."""
        parser = ArgumentParser(
            prog=f"uppertail {self.name}",
            description=self.description,
            formatter_class=self.formatter,
            exit_on_error=False,
            allow_abbrev=False,
        )
        for part in self.parts:
            _add_part(parser, part, light)
        if self.settings is not None:
            parser.add_class_arguments(self.settings, None)
        for name, arguments in self.options.items():
            parser.add_argument(name, **arguments)
        return parser

    def parse(self, arguments: Sequence[str]) -> Namespace:
        """The values of its options; the folder of a run must be among them."""
        config = parse(self.parser(), arguments)
        if "folder" not in self.options:
            return config
        if config.folder is None:
            command = f"`uppertail {self.name} DIR`"
            raise InputError(f"Which run? {command}, with the folder that `uppertail train` wrote to.")
        return Namespace({**config, "folder": Path(config.folder)})


def option(kind: Any, default: Any, text: str, **more: Any) -> dict[str, Any]:
    """An option with a value."""
    return {"type": kind, "default": default, "help": text, **more}


def flag(text: str) -> dict[str, Any]:
    """An option without a value."""
    return {"action": "store_true", "help": text}


FOLDER = {"folder": option(str, None, "the run's folder", nargs="?")}
QUIET = {"--quiet": flag("print nothing but errors")}
TRUST = {"--trust": flag("run the code that the folder names, also if you did not make it on this machine")}


def _add_part(parser: ArgumentParser, name: str, light: bool) -> None:
    """Adds --env, --distribution or another part: any class of its contract, by name or import path."""
    part = PARTS[name]
    text = f"{part.meaning}: {part.choices}, or the import path of your own class; its settings: --{name}.NAME VALUE"
    if light:
        parser.add_argument(f"--{name}", type=str, default=None if part.optional else part.default, help=text)
        parser.add_argument(
            f"--{name}.help", metavar="CLASS", default=argparse.SUPPRESS, help="list the settings of one of these"
        )
    else:
        kind = part.load()
        default = None if part.optional else {"class_path": part.default_path}
        parser.add_argument(f"--{name}", type=kind | None if part.optional else kind, default=default, help=text)


def parse(parser: ArgumentParser, arguments: Sequence[str]) -> Namespace:
    """Parses arguments."""
    configs = [read_options(Path(path)) for path, _ in values_of("--config", arguments)]
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # as `python -m uppertail` does, so that classes in the current folder are found
    check(parser, arguments, configs)
    try:
        return parser.parse_args(_join_exponents(arguments))
    except RecursionError as error:
        raise InputError("An option is nested too deep: write it in fewer brackets.") from error
    except REFUSED as error:
        text = printable(" ".join(str(error).split()).rstrip("."))
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
        raise InputError(f"{shown}; `{parser.prog} --help` lists the options.") from error


def instantiate(parser: ArgumentParser, config: Namespace) -> Namespace:
    """Builds the classes of a parsed configuration."""
    try:
        return parser.instantiate(config)
    except (ValueError, TypeError) as error:
        raise InputError(printable(" ".join(str(error).split()))) from error


def _join_exponents(arguments: Sequence[str]) -> list[str]:
    """Joins `--option -1e-3` to `--option=-1e-3`, since argparse reads such a number as an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and re.fullmatch(r"--[^=]+", joined[-1]) and re.fullmatch(r"-[\d.]+[eE][+-]?\d+", argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined
