"""Options from the signatures of classes, and errors as sentences."""

import argparse
import contextlib
import difflib
import inspect
import itertools
import json
import pydoc
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace

from uppertail.errors import InputError, printable
from uppertail.parts import PARTS
from uppertail.records import older
from uppertail.yaml_files import read_yaml

REGISTERED = re.compile(r"[\w:./-]+-v\d+")
"""How the ids of Gymnasium's environments look."""

LONGEST_SENTENCE = 1000
"""Characters of a sentence."""

KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "dict[str, typing.Any]": "a mapping like '{name: 1}'",
    "tuple": "a list like '[1, 2]'",
    "tuple with 2 elements": "a list of two like '[1, 2]'",
    "tuple[float, float]": "two numbers like '[1, 2]'",
    "tuple[str, ...]": "a list like '[SFF, FHG]'",
    "NoneType": "null",
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
            parser.add_argument(f"--{option}", type=str, default=part.default, help=text)
            parser.add_argument(
                f"--{option}.help", metavar="CLASS", default=argparse.SUPPRESS, help="list the settings of one of these"
            )
        else:
            kind = part.load()
            parser.add_argument(f"--{option}", type=kind, default={"class_path": part.default_path}, help=text)


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
        config = parser.parse_args(_join_exponents(arguments))
    except RecursionError as error:
        raise InputError("An option is nested too deep: write it in fewer brackets.") from error
    except (argparse.ArgumentError, ImportError, AttributeError, ValueError, TypeError) as error:
        raise InputError(_shorten(printable(_sentence(str(error), parser)))) from error
    _refuse_nulls(parser, config)
    return config


def _shorten(text: str) -> str:
    """A sentence that quotes something very long, without its middle."""
    return text if len(text) <= LONGEST_SENTENCE else f"{text[: LONGEST_SENTENCE // 2]} ... {text[-250:]}"


def instantiate(parser: ArgumentParser, config: Namespace) -> Namespace:
    """Builds the classes of a parsed configuration.

    Raises:
        InputError: a class refuses its settings.
    """
    try:
        return parser.instantiate(config)
    except (ValueError, TypeError) as error:
        raise InputError(printable(" ".join(str(error).split()))) from error


def _join_exponents(arguments: Sequence[str]) -> list[str]:
    """`--option -1e-3` as `--option=-1e-3`, since argparse takes such a number for an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and re.fullmatch(r"--[^=]+", joined[-1]) and re.fullmatch(r"-[\d.]+[eE][+-]?\d+", argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def later_options(arguments: Sequence[str]) -> list[str]:
    """Options that came after the version that wrote a run's config.yaml, as they were before there was a choice."""
    later: list[str] = []
    for path in _config_files(arguments):
        with contextlib.suppress(InputError):  # `parse` says so
            content = read_yaml(Path(path), "The config file")
            if isinstance(content, dict):
                whole = older.complete_options(content)
                later += [f"--{name}={json.dumps(whole[name])}" for name in whole if name not in content]
    return later


def _config_files(arguments: Sequence[str]) -> list[str]:
    """The values of --config."""
    files = [argument.partition("=")[2] for argument in arguments if argument.startswith("--config=")]
    return files + [path for option, path in itertools.pairwise([*arguments, ""]) if option == "--config"]


def _check_config(arguments: Sequence[str]) -> None:
    """A configuration file must exist and be YAML with options at its top level."""
    for path in _config_files(arguments):
        content = read_yaml(Path(path), "The config file")
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
        owner = re.search(r"class_path '([\w.]*?(\w+))'", text)
        if not (owner and option):
            return f"There is no option {unknown[1]!r}.{_suggest(unknown[1], _options(parser), '')}"
        hint = _suggest(unknown[1], _settings(owner[1]), f"--{option}.") or (
            f" `{parser.prog} --{option}.help {owner[2]}` lists its settings; to set those of another class, "
            f"name it before them, with --{option}."
        )
        return f"{owner[2]} has no setting {unknown[1]!r}.{hint}"
    if option and (
        value := re.search(r"(?:Expected a dot import path string|Unexpected import path format): ?(\S*)", text)
    ):
        hint = _suggest(value[1], list(PARTS[option].kinds), "")
        if option == "env" and REGISTERED.fullmatch(value[1]):
            return (
                f"{value[1]} is no class of ours: for an environment of Gymnasium, use --env Gym --env.id {value[1]}."
            )
        return f"Unknown {option} {value[1]!r}: use {_choices(option)}, or the import path of your own class.{hint}"
    if option and (value := re.search(r"Not a valid subclass of \w+\. Got value: (.*?) Subclass types", text)):
        return f"{option} is {value[1]}: use {_choices(option)}, or the import path of your own class."
    if option and re.search(
        r"[Uu]nable to import|No module named|has no attribute|does not correspond to a subclass", text
    ):
        return (
            f"The class given for --{option} cannot be used ({text.rpartition(': ')[2].rstrip('.')}): "
            f"use {_choices(option)}, or the import path of an installed class of that kind."
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


def _choices(option: str) -> str:
    return PARTS[option].choices


def _kind(shown: str) -> str:
    """A type as jsonargparse shows it, in a person's words."""
    name = shown.replace("<class '", "").replace("'>", "")
    return KINDS.get(name, f"of type {name}")


def _settings(path: str) -> list[str]:
    """The settings of a class."""
    kind = pydoc.locate(path)
    return list(inspect.signature(kind).parameters) if isinstance(kind, type) else []


def _options(parser: ArgumentParser) -> list[str]:
    return [name for action in parser._actions for name in (action.dest,) if name not in ("help", "print_config")]


def _suggest(name: str, names: Sequence[str], prefix: str) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {prefix}{close[0]}?" if close else ""
