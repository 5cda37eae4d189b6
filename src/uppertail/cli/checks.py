"""Checks options before they are parsed: which there are, of which type; each wrong one is a sentence."""

import contextlib
import difflib
import inspect
import pydoc
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

from jsonargparse import ArgumentParser, Namespace

from uppertail.cli.asked import Asked, content_of, of_arguments, of_mapping
from uppertail.errors import InputError, message_of, printable, short_text
from uppertail.parts import PARTS
from uppertail.schema import SCALARS, MismatchError, convert

SHOWN = 200
"""The most characters of a value that a sentence shows."""


def check(parser: ArgumentParser, arguments: Sequence[str], configs: Sequence[Mapping[str, Any]]) -> None:
    """Checks all options, and makes the classes that they name the parser's defaults.

    Otherwise jsonargparse would keep the settings of a part's default class that the named one has, too: `--env
    RiskyArm` would have the length of a Chain.

    Args:
        parser: the parser of a command.
        arguments: its arguments.
        configs: the options in the configuration files that are among them.

    Raises:
        InputError: one sentence about the first thing that is wrong.
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
    asked = [each for config in configs for each in of_mapping(config, parts)]
    asked += of_arguments(arguments, parts, actions)
    kinds: dict[str, Any] = {name: _class_of(name, asked) for name in parts}
    for name, kind in kinds.items():
        if kind is not None:
            parser.set_defaults({name: {"class_path": f"{kind.__module__}.{kind.__qualname__}"}})
    for each in asked:
        part, _, setting = each.option.partition(".")
        if part in kinds:
            if setting and (kind := kinds[part]) is not None:
                _check_setting(part, kind, setting, each, parser.prog)
        elif each.option not in actions:
            near = _near(each.option, [name for name in actions if name not in ("help", "print_config")])
            hint = f" Did you mean {'--' * each.is_text}{near}?" if near else f" `{parser.prog} --help` lists them."
            raise InputError(f"There is no option {'--' * each.is_text}{printable(each.option)}.{hint}")
        else:
            action = actions[each.option]
            _check_value(each, getattr(action, "_typehint", None) or action.type, action.default)
    given = {tuple(each.option.split(".")[:2]) for each in asked}
    for part, kind in kinds.items():
        missing = [name for name in _required(kind) if (part, name) not in given] if kind else []
        if missing:
            raise InputError(f"{kind.__name__} needs {missing[0]}: give it with --{part}.{missing[0]}.")


def _class_of(option: str, asked: Sequence[Asked]) -> Any:
    """The class of a part that is asked for last, by default the usual one; None where only the parser can tell.

    A part that a run may be without has the usual class only if one of its settings is asked for.

    Raises:
        InputError: there is none of this name.
    """
    part = PARTS[option]
    use = f"use {part.choices}, or the import path of your own class."
    named = [each.value for each in asked if each.option == option]
    name = named[-1] if named else part.default
    has_settings = any(each.option.startswith(f"{option}.") for each in asked)
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
        near = _near(name, list(part.kinds))
        raise InputError(f"Unknown {option} {shown!r}: {use}{f' Did you mean {near}?' if near else ''}")
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


def _check_setting(part: str, kind: Any, setting: str, asked: Asked, program: str) -> None:
    """Checks a setting of a part's class.

    Raises:
        InputError: the class has no such setting, or the value is of another type.
    """
    name, _, deeper = setting.removesuffix("+").partition(".")
    parameters = inspect.signature(kind).parameters
    if name not in parameters and not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        near = _near(name, list(parameters))
        listed = f"`{program} --{part}.help {kind.__name__}` lists its settings"
        other = f"{listed}; to set those of another class, name it, too, with --{part}."
        hint = f"Did you mean --{part}.{near}?" if near else other
        raise InputError(f"{kind.__name__} has no setting {printable(name)!r}. {hint}")
    if name in parameters and not deeper and not setting.endswith("+"):
        hints: dict[str, Any] = {}
        with contextlib.suppress(NameError, TypeError):  # a user's class may import a type for type checkers only
            hints = typing.get_type_hints(kind.__init__)
        _check_value(asked, hints.get(name), parameters[name].default)


def _check_value(asked: Asked, kind: Any, default: Any) -> None:
    """Checks a value's type, if the type is one of plain values.

    Raises:
        InputError: it is another one.
    """
    if not _is_plain(kind):
        return
    values = [asked.value]
    if asked.is_text:
        values = [content_of(asked.value), asked.value]
        with contextlib.suppress(ValueError):
            values.append(float(asked.value))
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
    if values[0] is None and asked.value != "":
        raise InputError(
            f"{asked.option} is null, but it needs a value: give one, or leave {asked.option} out for its default."
        )
    shown = printable(asked.value[:SHOWN]) if asked.is_text else short_text(asked.value)
    raise InputError(f"{asked.option} is {shown if asked.value != '' else 'empty'}: {errors[0]}.")


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


def _near(name: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant."""
    same = name.replace("-", "_")
    return same if same in names else next(iter(difflib.get_close_matches(name, names, n=1)), None)
