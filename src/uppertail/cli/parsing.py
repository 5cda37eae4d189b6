"""Options from the signatures of classes, and errors as sentences."""

import argparse
import difflib
import importlib
import inspect
import pydoc
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace

from uppertail.errors import InputError

PARTS = {
    "env": ("uppertail.environments", "EnvironmentBuilder", "Chain"),
    "distribution": ("uppertail.distributions", "ReturnDistribution", "Gaussian"),
    "policy": ("uppertail.policies", "ExplorationPolicy", "UCB"),
}
"""For each part: its package, its contract, its default class."""

CHOICES = {
    "env": "Chain, TreasureChain, DeepSea, Toy, FrozenLake or Gym",
    "distribution": "Gaussian, Categorical, GaussianMixture or PointMass",
    "policy": "UCB, Thompson or EpsilonGreedy",
}


KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "dict[str, typing.Any]": "a mapping like '{name: 1}'",
}
"""What a person calls the types of settings."""


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


def add_parts(parser: ArgumentParser, light: bool, options: Sequence[str] = tuple(PARTS)) -> None:
    """Adds --env, --distribution and --policy: any class of their contract, by name or import path.

    Args:
        parser: the parser to add to.
        light: only for showing help: imports nothing.
        options: which of the three to add.
    """
    for option in options:
        package, contract, default = PARTS[option]
        text = f"{CHOICES[option]}, or the import path of your own class; settings as --{option}.NAME VALUE"
        if light:
            parser.add_argument(f"--{option}", type=str, default=default, help=text)
            parser.add_argument(f"--{option}.help", metavar="CLASS", help=f"list the settings of a class of {option}")
        else:
            kind = getattr(importlib.import_module(package), contract)
            parser.add_argument(f"--{option}", type=kind, default={"class_path": f"{package}.{default}"}, help=text)


def parse(parser: ArgumentParser, arguments: Sequence[str]) -> Namespace:
    """Parses arguments.

    Raises:
        InputError: one sentence about the first thing that is wrong.
    """
    _check_config(arguments)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # as `python -m uppertail` does, so that a class of your own is found beside you
    try:
        config = parser.parse_args(_joined(arguments))
    except (argparse.ArgumentError, ImportError, AttributeError, ValueError) as error:
        raise InputError(_sentence(str(error), parser)) from error
    _refuse_nulls(parser, config)
    return config


def instantiate(parser: ArgumentParser, config: Namespace) -> Namespace:
    """Builds the classes of a parsed configuration.

    Raises:
        InputError: a class refuses its settings.
    """
    try:
        return parser.instantiate(config)
    except (ValueError, TypeError) as error:
        raise InputError(" ".join(str(error).split())) from error


def _joined(arguments: Sequence[str]) -> list[str]:
    """`--option -1e-3` as `--option=-1e-3`, since argparse takes such a number for an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and re.fullmatch(r"--[^=]+", joined[-1]) and re.fullmatch(r"-[\d.]+[eE][+-]?\d+", argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def _check_config(arguments: Sequence[str]) -> None:
    """A configuration file must exist and be YAML with options at its top level."""
    for index, argument in enumerate(arguments):
        if argument == "--config" or argument.startswith("--config="):
            path = argument.partition("=")[2] or "".join(arguments[index + 1 : index + 2])
            try:
                content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"The config file {path!r} cannot be read: give the path of a YAML file.") from error
            except yaml.YAMLError as error:
                mark = getattr(error, "problem_mark", None)
                where = f" at line {mark.line + 1}" if mark else ""
                raise InputError(f"The config file {path!r} is not valid YAML{where}: mend it there.") from error
            if not isinstance(content, dict):
                raise InputError(f"The config file {path!r} holds no options: write them as `name: value` lines.")


def _refuse_nulls(parser: ArgumentParser, config: Namespace) -> None:
    """A setting is null only where that means something; jsonargparse lets every setting be."""
    for action in parser._actions:
        if action.dest in config and action.default is not None:
            _refuse_null(action.dest, config[action.dest], getattr(action, "_typehint", action.type))
    for option in PARTS:
        if isinstance(config.get(option), Namespace):
            parameters = inspect.signature(pydoc.locate(config[option].class_path)).parameters  # pyright: ignore[reportArgumentType]
            for name, value in config[option].get("init_args", {}).items():
                if name in parameters and parameters[name].default is not None:
                    _refuse_null(f"{option}.{name}", value, parameters[name].annotation)


def _refuse_null(name: str, value: object, kind: Any) -> None:
    if value is None and type(None) not in get_args(kind):
        raise InputError(f"{name} is null, but it needs a value: give one, or leave {name} out for its default.")


def _sentence(message: str, parser: ArgumentParser) -> str:
    """One sentence for what jsonargparse says in several lines."""
    text = " ".join(message.split())
    keys = re.findall(r'[Kk]ey "([\w.]+)"', text)
    option = next((key for key in keys if key in PARTS), None)
    if unknown := re.search(r"(?:unrecognized arguments:|Unrecognized arguments:) (--?[\w.]+)", text):
        hint = _suggest(unknown[1].lstrip("-"), _options(parser), "--") or f" `{parser.prog} --help` lists them."
        return f"There is no option {unknown[1]}.{hint}"
    if unknown := re.search(r"(?:Option|Key|Nested key|Group key) '([\w.]+)' is not (?:accepted|expected)", text):
        owner = re.search(r"class_path '[\w.]*?(\w+)'", text)
        where = f"{owner[1]} has no setting" if owner else "There is no option"
        remedy = (
            f" `{parser.prog} --{option}.help {owner[1]}` lists its settings; to set those of another class, "
            f"name it before them, with --{option}."
            if owner and option
            else ""
        )
        return f"{where} {unknown[1]!r}.{remedy or _suggest(unknown[1], _options(parser), '')}"
    if option and (
        value := re.search(r"(?:Expected a dot import path string|Unexpected import path format): ?(\S*)", text)
    ):
        names = re.split(r", | or ", CHOICES[option])
        hint = _suggest(value[1], names, "")
        return f"Unknown {option} {value[1]!r}: use {CHOICES[option]}, or the import path of your own class.{hint}"
    if option and (value := re.search(r"Not a valid subclass of \w+\. Got value: (.*?) Subclass types", text)):
        return f"{option} is {value[1]}: use {CHOICES[option]}, or the import path of your own class."
    if option and re.search(
        r"[Uu]nable to import|No module named|has no attribute|does not correspond to a subclass", text
    ):
        return (
            f"The class given for --{option} cannot be used ({text.rpartition(': ')[2].rstrip('.')}): "
            f"use {CHOICES[option]}, or the import path of an installed class of that kind."
        )
    if option and (missing := re.search(r"class_path '[\w.]*?(\w+)'.*arguments are required: (\w+)", text)):
        return f"{missing[1]} needs {missing[2]}: give it with --{option}.{missing[2]}."
    name = ".".join(dict.fromkeys(keys)) or "The option"
    if union := re.search(r"Union subtypes Subtypes: \[(.*?)\] Errors: .* Given value: (.*)$", text):
        kinds = [_kind(kind) for kind in re.split(r", (?![^\[]*\])", union[1])]
        return f"{name} is {union[2]}, but it must be {' or '.join(kinds)}."
    if expected := re.search(r"Expected a (.+?)\. Got value: ?(.*?)(?: Problem|$)", text):
        if literal := re.search(r"Literal\[(.*)\]", expected[1]):
            return f"{name} is {expected[2]}, but it must be one of {literal[1]}."
        return f"{name} is {expected[2] or 'empty'}, but it must be {_kind(expected[1])}."
    return f"{text.rstrip('.')}; `{parser.prog} --help` lists the options."


def _kind(shown: str) -> str:
    """A type as jsonargparse shows it, in a person's words."""
    name = shown.replace("<class '", "").replace("'>", "")
    words = {**KINDS, "NoneType": "null", "tuple[str, ...]": "a list like '[SFF, FHG]'"}
    return words.get(name, f"of type {name}")


def _options(parser: ArgumentParser) -> list[str]:
    return [name for action in parser._actions for name in (action.dest,) if name not in ("help", "print_config")]


def _suggest(name: str, names: Sequence[str], prefix: str) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {prefix}{close[0]}?" if close else ""
