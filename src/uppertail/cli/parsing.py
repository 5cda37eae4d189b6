"""From the arguments of a command to values: of presets, of files, of the command line; the last one counts."""

import contextlib
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml

from uppertail.cli.options import REQUIRED, Choice, Option, class_named, options_of
from uppertail.errors import InputError, nearest, printable, short_text
from uppertail.parts import PARTS
from uppertail.presets import PRESETS
from uppertail.schema import SCALARS, MismatchError, convert
from uppertail.yaml_files import read_options


class Values(dict[str, Any]):
    """The values of options, by name or as attributes; of a part, its `Choice`."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def parse(program: str, options: Mapping[str, Option], parts: Sequence[str], arguments: Sequence[str]) -> Values:
    """Reads the arguments of a command; InputError if an option is unknown or missing, or its value of another type.

    Among its options are parts of a run, and each setting of their classes, such as env.length.
    """
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # as `python -m uppertail` does, so that classes in the current folder are found
    typed = [*_typed(program, options, [*arguments])]
    preset = _preset(typed) if "preset" in options else {}
    given: dict[str, Any] = {name: value for name, value in preset.items() if "." not in name}
    files = [read_options(Path(value)) for name, value in typed if name == "config" and name in options and value]
    for name, value in [*(item for file in files for item in file.items()), *typed]:
        given |= _flat(name, value, parts)
    classes = {part: kind for part in parts if (kind := _class_of(part, given))}
    settings = {f"{part}.{name}": each for part, kind in classes.items() for name, each in options_of(kind).items()}
    of_classes = {f"{kind.__name__}.": f"{part}." for part, kind in classes.items()}
    for name, value in preset.items():
        kind, dot, setting = name.partition(".")
        if kind + dot in of_classes:
            given.setdefault(of_classes[kind + dot] + setting, value)
    known, values = {**options, **settings}, dict[str, Any]()
    for name, value in given.items():
        if name in known:
            values[name] = _converted(name, value, known[name])
        elif name not in parts:
            dashes = "--" * any(name == each for each, _ in typed)
            raise InputError(_unknown(program, known, classes, name, dashes))
    for name, option in settings.items():
        if option.default is REQUIRED and name not in values:
            part, _, setting = name.partition(".")
            raise InputError(f"{classes[part].__name__} needs {setting}: give it with --{name}.")
    return Values(
        {part: classes.get(part) and _choice(part, classes[part], values) for part in parts}
        | {name: values.get(name, option.default) for name, option in options.items()}
    )


def content_of(value: Any) -> Any:
    """A value; of a text that is YAML, its content."""
    if isinstance(value, str):
        with contextlib.suppress(yaml.YAMLError, RecursionError, ValueError):
            return yaml.safe_load(value)
    return value


def _typed(program: str, options: Mapping[str, Option], rest: list[str]) -> Iterator[tuple[str, Any]]:
    """What stands on the command line: each option's name, and its value."""
    if odd := next((each for each in rest if re.match(r"-(?!-|\.?\d)", each)), None):  # -1 and -.5 are values
        raise InputError(
            f"{printable(odd)} begins with one dash: write --NAME for an option, and --NAME=VALUE for a value that "
            "begins with a dash."
        )
    unnamed, repeated = list[str](), dict[str, list[Any]]()
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("--"):
            unnamed.append(argument)
            continue
        name, equals, value = argument.removeprefix("--").partition("=")
        option = options.get(name)
        count = option.nargs if option and isinstance(option.nargs, int) else 1
        found = [value] if equals else [rest.pop(0) for _ in range(count) if rest and not rest[0].startswith("--")]
        if count != 1 and (equals or len(found) != count):
            amount = f"{count} values" if count else "no value"
            raise InputError(f"--{name} takes {amount}: write --{name}{' VALUE' * count}.")
        if option and option.repeats:
            repeated[name] = [*repeated.get(name, []), *_items("".join(found))]
            yield name, repeated[name]
        else:
            yield name, "".join(found) if count == 1 else found or True
    for name, option in options.items():
        if unnamed and option.nargs in ("?", "*"):
            yield name, unnamed.pop(0) if option.nargs == "?" else [unnamed.pop(0) for _ in [*unnamed]]
    if unnamed:
        raise InputError(f"{printable(unnamed[0])!r} belongs to no option: `{program} --help` lists them.")


def _preset(typed: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    """The options of the preset that is asked for."""
    asked = dict(typed)
    name = asked.get("preset", "null")
    if name == "null":
        return {}
    if name not in PRESETS:
        raise InputError(
            f"There is no preset {name!r}: use {', '.join(PRESETS)}, or leave it out.{nearest(name, PRESETS, 1)}"
        )
    if "config" in asked:
        raise InputError("--preset and --config each describe a whole run: give one of them, with options beside it.")
    return PRESETS[name]


def _flat(name: str, value: Any, parts: Sequence[str]) -> dict[str, Any]:
    """An option; of a part, its class and each of its settings."""
    part, _, setting = name.partition(".")
    if part not in parts or setting not in ("", "class_path"):
        return {name: value}
    content = content_of(value)
    if not isinstance(content, Mapping):
        return {part: content}
    whole = content if {"class_path", "init_args"} & content.keys() else {"init_args": content}
    settings = whole.get("init_args", {})
    if whole.keys() - {"class_path", "init_args"} or not isinstance(settings, Mapping):
        raise InputError(f"{part} is {short_text(content)}: use a class_path and, for its settings, init_args.")
    named = {part: whole["class_path"]} if "class_path" in whole else {}
    return named | {f"{part}.{setting}": each for setting, each in settings.items()}


def _class_of(part: str, given: Mapping[str, Any]) -> type | None:
    """The class of a part, by default the usual one; an optional part has it only with settings."""
    name = given.get(part, PARTS[part].default)
    is_open = part not in given or name in (None, "null")
    if PARTS[part].optional and is_open and not any(each.startswith(f"{part}.") for each in given):
        return None
    return class_named(part, name)


def _choice(part: str, kind: type, values: Mapping[str, Any]) -> Choice:
    """A part's class and settings."""
    prefix = f"{part}."
    return Choice(kind, {name.removeprefix(prefix): values[name] for name in values if name.startswith(prefix)})


def _unknown(program: str, options: Mapping[str, Option], classes: Mapping[str, type], name: str, dashes: str) -> str:
    """Why an option is refused that there is not."""
    part, _, setting = name.partition(".")
    if part not in classes:
        hint = nearest(name.replace("-", "_"), options, 1, dashes) or f" `{program} --help` lists them."
        return f"There is no option {dashes}{printable(name)}.{hint}"
    kind = classes[part].__name__
    hint = nearest(setting.replace("-", "_"), options_of(classes[part]), 1, f"--{part}.") or (
        f" `{program} --{part}.help {kind}` lists its settings; to set those of another class, name it, too, with "
        f"--{part}."
    )
    return f"{kind} has no setting {printable(setting)!r}.{hint}"


def _items(text: str) -> list[Any]:
    """What is added to a list: the items of one, or an item."""
    content = content_of(text)
    return content if isinstance(content, list) else [content if isinstance(content, Mapping) else text]


def _converted(name: str, value: Any, option: Option) -> Any:
    """A value as its option's type, if the type is one of plain values; a text may be YAML."""
    readings = [value]
    if isinstance(value, str) and value and option.kind is not str:
        readings = [content_of(value), value]
        with contextlib.suppress(ValueError):
            readings.append(float(value))
    if not _is_plain(option.kind):
        return readings[0]
    if readings[0] is None and (option.default is None or types.NoneType in get_args(option.kind)):
        return None
    remedies = list[str]()
    for reading in readings if value != "" or option.kind is not str else ():
        try:
            return convert(reading, option.kind)
        except MismatchError as error:
            remedies.append(str(error))
    if readings[0] is None:
        raise InputError(f"{name} is null, but it needs a value: give one, or leave {name} out for its default.")
    shown = printable(value[:200]) if isinstance(value, str) else short_text(value)
    raise InputError(f"{name} is {shown or 'empty'}: {[*remedies, 'give it a value'][0]}.")


def _is_plain(kind: Any) -> bool:
    """Whether a type consists of numbers, texts, choices, lists and mappings only."""
    origin = get_origin(kind)
    if origin in (typing.Literal, type):
        return True
    if origin in (typing.Union, types.UnionType, list, tuple, dict):
        return all(each is Ellipsis or _is_plain(each) for each in get_args(kind))
    return kind in SCALARS or kind in (types.NoneType, Any)
