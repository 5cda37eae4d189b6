"""Options from the signatures of classes; the first one that is wrong is an InputError."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

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


def command_parser(
    command: str, description: str, formatter_class: type[argparse.HelpFormatter] = DefaultHelpFormatter
) -> ArgumentParser:
    """The parser of a command: it raises its errors, and takes no abbreviated options."""
    return ArgumentParser(
        prog=f"uppertail {command}",
        description=description,
        formatter_class=formatter_class,
        exit_on_error=False,
        allow_abbrev=False,
    )


def run_parser(command: str, description: str) -> ArgumentParser:
    """The parser of a command about a run's folder; `parse_run` parses its arguments."""
    options = command_parser(command, description)
    options.add_argument("folder", type=str, nargs="?", default=None, help="the run's folder")
    return options


def add_parts(parser: ArgumentParser, light: bool, options: Sequence[str] = tuple(PARTS)) -> None:
    """Adds --env, --distribution and the other parts: any class of their contract, by name or import path.

    Args:
        parser: the parser to add to.
        light: only for showing help: imports nothing.
        options: which of the parts to add.
    """
    for option in options:
        part = PARTS[option]
        text = (
            f"{part.meaning}: {part.choices}, or the import path of your own class; its settings: --{option}.NAME VALUE"
        )
        if light:
            parser.add_argument(f"--{option}", type=str, default=None if part.optional else part.default, help=text)
            parser.add_argument(
                f"--{option}.help", metavar="CLASS", default=argparse.SUPPRESS, help="list the settings of one of these"
            )
        else:
            kind = part.load()
            default = None if part.optional else {"class_path": part.default_path}
            parser.add_argument(f"--{option}", type=kind | None if part.optional else kind, default=default, help=text)


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


def parse_run(parser: ArgumentParser, arguments: Sequence[str]) -> Namespace:
    """Parses the arguments of a command about a run's folder, which must be among them."""
    config = parse(parser, arguments)
    if config.folder is None:
        raise InputError(f"Which run? `{parser.prog} DIR`, with the folder that `uppertail train` wrote to.")
    config.folder = Path(config.folder)
    return config


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
