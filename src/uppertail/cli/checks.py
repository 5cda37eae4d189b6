"""Checks the options of the command line and of configuration files before they are parsed.

Each setting of a part is an option of its own, such as env.length. The first wrong option is an InputError.
"""

import contextlib
import inspect
import pydoc
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args, get_origin

import yaml
from jsonargparse import ArgumentParser, Namespace

from uppertail.errors import InputError, message_of, nearest, printable, short_text
from uppertail.parts import PARTS
from uppertail.schema import SCALARS, MismatchError, convert

SHOWN = 200
"""The most characters of a value that a sentence shows."""


class GivenOption(NamedTuple):
    """An option with its value: text of the command line, or a value of a configuration file."""

    name: str
    value: Any
    is_text: bool

    @property
    def shown(self) -> str:
        """The value as a sentence shows it."""
        if self.value == "":
            return "empty"
        return printable(self.value[:SHOWN]) if self.is_text else short_text(self.value)


def check(parser: ArgumentParser, arguments: Sequence[str], configs: Sequence[Mapping[str, Any]]) -> None:
    """Checks all options, and makes the classes that they name the parser's defaults.

    Otherwise jsonargparse would keep the settings of a part's default class that the named one has, too: `--env
    RiskyArm` would have the length of a Chain.

    Args:
        parser: the parser of a command.
        arguments: its arguments.
        configs: the options in the configuration files that are among them.
    """
    actions = {
        name.removeprefix("--"): action for action in parser._actions for name in (action.dest, *action.option_strings)
    }
    defaults = parser.get_defaults()
    parts = [
        name
        for name, part in PARTS.items()
        if name in actions and (part.optional or isinstance(defaults.get(name), dict | Namespace))
    ]
    given = [each for config in configs for name, value in config.items() for each in _split(str(name), value, parts)]
    given += _from_arguments(arguments, parts, actions)
    kinds = {name: _class_of(name, given) for name in parts}
    for name, kind in kinds.items():
        if kind is not None:
            parser.set_defaults({name: {"class_path": f"{kind.__module__}.{kind.__qualname__}"}})
    for each in given:
        part, _, setting = each.name.partition(".")
        if part not in kinds:
            _check_option(each, actions, parser.prog)
        elif setting and kinds[part] is not None:
            _check_setting(each, kinds[part], parser.prog)
    names = {tuple(each.name.split(".")[:2]) for each in given}
    for part, kind in kinds.items():
        missing = [name for name in _required(kind) if (part, name) not in names] if kind else []
        if missing:
            raise InputError(f"{kind.__name__} needs {missing[0]}: give it with --{part}.{missing[0]}.")


def _from_arguments(
    arguments: Sequence[str], parts: Sequence[str], actions: Mapping[str, Any]
) -> Iterator[GivenOption]:
    """The options of the command line that have a value."""
    for argument, following in zip(arguments, [*arguments[1:], "--"], strict=False):
        name, equals, value = argument.removeprefix("--").partition("=")
        action = actions.get(name)
        flag = name in ("", "help", "print_config") or name.endswith(".help") or (action and action.nargs == 0)
        if not argument.startswith("--") or flag:
            continue
        if equals or not following.startswith("--"):
            yield from _split(name, value if equals else following, parts, is_text=True)
        elif name.partition(".")[0] not in parts:  # its value is missing
            yield GivenOption(name.removesuffix("+"), "", is_text=name.removesuffix("+") not in actions)


def _split(name: str, value: Any, parts: Sequence[str], is_text: bool = False) -> Iterator[GivenOption]:
    """An option; of a part with settings, its class and each of its settings."""
    part, _, setting = name.partition(".")
    setting = setting.removeprefix("init_args.")
    content = content_of(value) if is_text else value
    if part not in parts:
        yield GivenOption(name.removesuffix("+"), [] if name.endswith("+") else value, is_text)
    elif setting and setting != "class_path":
        yield GivenOption(f"{part}.{setting}", value, is_text)
    elif not isinstance(content, Mapping):
        yield GivenOption(part, content, is_text)
    else:
        if "class_path" in content:
            yield GivenOption(part, content["class_path"], is_text)
        settings = content.get("init_args") if {"class_path", "init_args"} & content.keys() else content
        for each, inner in settings.items() if isinstance(settings, Mapping) else ():
            yield GivenOption(f"{part}.{each}", inner, False)


def content_of(value: Any) -> Any:
    """A value; of a text that is YAML, its content."""
    if isinstance(value, str):
        with contextlib.suppress(yaml.YAMLError, RecursionError, ValueError):
            return yaml.safe_load(value)
    return value


def _class_of(option: str, given: Sequence[GivenOption]) -> Any:
    """The class of a part that is named last, by default the usual one; None where only the parser can tell.

    A part that a run may be without has the usual class only if one of its settings is given.
    """
    part = PARTS[option]
    use = f"use {part.choices}, or the import path of your own class."
    named = [each.value for each in given if each.name == option]
    name = named[-1] if named else part.default
    has_settings = any(each.name.startswith(f"{option}.") for each in given)
    if part.optional and not has_settings and (not named or name in (None, "null")):
        return None
    if not isinstance(name, str):
        raise InputError(f"{option} is {'null' if name is None else short_text(name)}: {use}")
    shown = printable(name[:SHOWN])
    if name not in part.kinds and "." not in name:
        if option == "env" and "-v" in name:
            raise InputError(
                f"{shown} is no class of ours: for an environment of Gymnasium, use --env Gym --env.id {shown}."
            )
        raise InputError(f"Unknown {option} {shown!r}: {use}{nearest(name, part.kinds, 1)}")
    try:
        kind = pydoc.locate(part.path_of(name))
    except (pydoc.ErrorDuringImport, ValueError) as error:
        why = message_of(getattr(error, "value", error))
        raise InputError(f"The class {shown} given for --{option} cannot be imported ({why}): {use}") from error
    contract = part.load()
    if kind is None:
        raise InputError(f"The class {shown} given for --{option} cannot be imported: {use}")
    if inspect.isclass(kind) and not issubclass(kind, contract):
        if option == "env":
            raise InputError(
                f"{shown} is no builder of environments: register what makes it (gymnasium.register('My-v0', "
                f"entry_point=...)), and use --env Gym --env.id MODULE:My-v0; or {use}"
            )
        raise InputError(f"The class {shown} given for --{option} is no subclass of {contract.__name__}: {use}")
    return kind if inspect.isclass(kind) else None


def _check_option(given: GivenOption, actions: Mapping[str, Any], program: str) -> None:
    """Checks an option that is no part."""
    if (action := actions.get(given.name)) is not None:
        _check_value(given, getattr(action, "_typehint", None) or action.type, action.default)
        return
    dashes, known = "--" * given.is_text, [name for name in actions if name not in ("help", "print_config")]
    hint = nearest(given.name.replace("-", "_"), known, 1, dashes) or f" `{program} --help` lists them."
    raise InputError(f"There is no option {dashes}{printable(given.name)}.{hint}")


def _check_setting(given: GivenOption, kind: Any, program: str) -> None:
    """Checks a setting of a part's class."""
    part, _, setting = given.name.partition(".")
    name, _, deeper = setting.removesuffix("+").partition(".")
    parameters = inspect.signature(kind).parameters
    if name not in parameters and not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        hint = nearest(name.replace("-", "_"), parameters, 1, f"--{part}.") or (
            f" `{program} --{part}.help {kind.__name__}` lists its settings; to set those of another class, name it, "
            f"too, with --{part}."
        )
        raise InputError(f"{kind.__name__} has no setting {printable(name)!r}.{hint}")
    if name in parameters and not deeper and not setting.endswith("+"):
        hints: dict[str, Any] = {}
        with contextlib.suppress(NameError, TypeError):  # a user's class may import a type for type checkers only
            hints = typing.get_type_hints(kind.__init__)
        _check_value(given, hints.get(name), parameters[name].default)


def _check_value(given: GivenOption, kind: Any, default: Any) -> None:
    """Checks a value's type, if the type is one of plain values."""
    if not _is_plain(kind):
        return
    values = [given.value]
    if given.is_text:
        values = [content_of(given.value), given.value]
        with contextlib.suppress(ValueError):
            values.append(float(given.value))
    if values[0] is None and (default is None or type(None) in get_args(kind)):
        return
    errors = list[MismatchError]()
    for value in values:
        try:
            convert(value, kind)
        except MismatchError as error:
            errors.append(error)
        else:
            return
    if values[0] is None and given.value != "":
        raise InputError(
            f"{given.name} is null, but it needs a value: give one, or leave {given.name} out for its default."
        )
    raise InputError(f"{given.name} is {given.shown}: {errors[0]}.")


def _is_plain(kind: Any) -> bool:
    """Whether a type consists of numbers, texts, choices, lists and mappings only."""
    origin = get_origin(kind)
    if origin in (typing.Literal, type):
        return True
    if origin in (typing.Union, types.UnionType, list, tuple, dict):
        return all(each is Ellipsis or each is Any or _is_plain(each) for each in get_args(kind))
    return kind in SCALARS or kind is types.NoneType


def _required(kind: Any) -> list[str]:
    """The settings of a class that have no default."""
    parameters = inspect.signature(kind).parameters.values()
    many = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [each.name for each in parameters if each.default is each.empty and each.kind not in many]
