"""From the arguments of a command to values: of presets, of files, of the command line; the last one counts."""

import contextlib
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import yaml

from uppertail.cli.options import REQUIRED, Choice, Option, class_named, options_of
from uppertail.errors import InputError, nearest, printable, short_text
from uppertail.parts import PARTS
from uppertail.presets import PRESETS, Preset
from uppertail.schema import SCALARS, MismatchError, convert
from uppertail.yaml_files import read_options


class Given(NamedTuple):
    """What is given for an option: text of the command line, or a value of a file."""

    name: str
    value: Any
    is_text: bool = False


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
    preset = _preset(typed) if "preset" in options else Preset({}, {})
    files = _from_files(typed) if "config" in options else ()
    given = [
        each
        for one in [*(Given(*item) for item in preset.options.items()), *files, *typed]
        for each in _split(one, parts)
    ]
    classes = {part: kind for part in parts if (kind := _class_of(part, given))}
    for (part, name), settings in preset.settings.items():
        if part in classes and classes[part].__name__ == name:
            given[:0] = [Given(f"{part}.{setting}", value) for setting, value in settings.items()]
    known = {f"{part}.{name}": each for part, kind in classes.items() for name, each in options_of(kind).items()}
    values = _values(program, {**options, **known}, classes, [each for each in given if each.name not in parts])
    chosen = {
        part: Choice(kind, {name.partition(".")[2]: values[name] for name in values if name.startswith(f"{part}.")})
        for part, kind in classes.items()
    }
    return Values(
        {part: chosen.get(part) for part in parts}
        | {name: values.get(name, option.default) for name, option in options.items()}
    )


def content_of(value: Any) -> Any:
    """A value; of a text that is YAML, its content."""
    if isinstance(value, str):
        with contextlib.suppress(yaml.YAMLError, RecursionError, ValueError):
            return yaml.safe_load(value)
    return value


def _typed(program: str, options: Mapping[str, Option], rest: list[str]) -> Iterator[Given]:
    """What stands on the command line."""
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
        if count != 1:
            yield Given(name, found if count else True)
        elif option and option.repeats:
            repeated[name] = [*repeated.get(name, []), *_items("".join(found))]
            yield Given(name, repeated[name])
        else:
            yield Given(name, "".join(found), is_text=True)
    for name, option in options.items():
        if unnamed and option.nargs == "*":
            yield Given(name, unnamed)
            unnamed = []
        elif unnamed and option.nargs == "?":
            yield Given(name, unnamed.pop(0), is_text=True)
    if unnamed:
        raise InputError(f"{printable(unnamed[0])!r} belongs to no option: `{program} --help` lists them.")


def _from_files(typed: Sequence[Given]) -> Iterator[Given]:
    """The options of the files of --config."""
    for each in typed:
        if each.name == "config" and each.value:
            yield from (Given(name, value) for name, value in read_options(Path(each.value)).items())


def _preset(typed: Sequence[Given]) -> Preset:
    """The preset that is asked for."""
    names = [each.value for each in typed if each.name == "preset"]
    if not names or names[-1] == "null":
        return Preset({}, {})
    if names[-1] not in PRESETS:
        hint = nearest(names[-1], PRESETS, 1)
        raise InputError(f"There is no preset {names[-1]!r}: use {', '.join(PRESETS)}, or leave it out.{hint}")
    if any(each.name == "config" for each in typed):
        raise InputError("--preset and --config each describe a whole run: give one of them, with options beside it.")
    return PRESETS[names[-1]]


def _split(given: Given, parts: Sequence[str]) -> Iterator[Given]:
    """An option; of a part, its class and each of its settings."""
    part, _, setting = given.name.partition(".")
    content = content_of(given.value) if given.is_text else given.value
    if part not in parts:
        yield given
    elif setting not in ("", "class_path"):
        yield given._replace(name=f"{part}.{setting}")
    elif not isinstance(content, Mapping):
        yield Given(part, content)
    else:
        whole = content if {"class_path", "init_args"} & content.keys() else {"init_args": content}
        settings = whole.get("init_args", {})
        if whole.keys() - {"class_path", "init_args"} or not isinstance(settings, Mapping):
            raise InputError(f"{part} is {short_text(content)}: use a class_path and, for its settings, init_args.")
        if "class_path" in whole:
            yield Given(part, whole["class_path"])
        for name, value in settings.items():
            yield Given(f"{part}.{name}", value)


def _class_of(part: str, given: Sequence[Given]) -> type | None:
    """The class of a part that is named last, by default the usual one; an optional part has it only with settings."""
    named = [each.value for each in given if each.name == part]
    name = named[-1] if named else PARTS[part].default
    has_settings = any(each.name.startswith(f"{part}.") for each in given)
    if PARTS[part].optional and not has_settings and (not named or name in (None, "null")):
        return None
    return class_named(part, name)


def _values(
    program: str, options: Mapping[str, Option], classes: Mapping[str, type], given: Sequence[Given]
) -> dict[str, Any]:
    """The values that are given."""
    values: dict[str, Any] = {}
    for each in given:
        if (option := options.get(each.name)) is None:
            raise InputError(_unknown(program, options, classes, each))
        values[each.name] = _converted(each, option)
    for name, option in options.items():
        if option.default is REQUIRED and name not in values:
            part, _, setting = name.partition(".")
            raise InputError(f"{classes[part].__name__} needs {setting}: give it with --{name}.")
    return values


def _unknown(program: str, options: Mapping[str, Option], classes: Mapping[str, type], given: Given) -> str:
    """Why an option is refused that there is not."""
    part, _, setting = given.name.partition(".")
    if part not in classes:
        dashes = "--" * given.is_text
        hint = nearest(given.name.replace("-", "_"), options, 1, dashes) or f" `{program} --help` lists them."
        return f"There is no option {dashes}{printable(given.name)}.{hint}"
    kind = classes[part].__name__
    hint = nearest(setting.replace("-", "_"), options_of(classes[part]), 1, f"--{part}.") or (
        f" `{program} --{part}.help {kind}` lists its settings; to set those of another class, name it, too, with "
        f"--{part}."
    )
    return f"{kind} has no setting {printable(setting)!r}.{hint}"


def _items(value: Any) -> list[Any]:
    """What is added to a list: the items of one, or an item."""
    content = content_of(value)
    return content if isinstance(content, list) else [content if isinstance(content, Mapping) else value]


def _converted(given: Given, option: Option) -> Any:
    """A value as its option's type, if the type is one of plain values."""
    readings = [given.value]
    if given.is_text and given.value and option.kind is not str:
        readings = [content_of(given.value), given.value]
        with contextlib.suppress(ValueError):
            readings.append(float(given.value))
    if not _is_plain(option.kind):
        return readings[0]
    if readings[0] is None and (option.default is None or types.NoneType in get_args(option.kind)):
        return None
    remedies = list[str]()
    for value in readings if given.value != "" or option.kind is not str else ():
        try:
            return convert(value, option.kind)
        except MismatchError as error:
            remedies.append(str(error))
    if readings[0] is None:
        raise InputError(
            f"{given.name} is null, but it needs a value: give one, or leave {given.name} out for its default."
        )
    shown = printable(given.value[:200]) if given.is_text else short_text(given.value)
    raise InputError(f"{given.name} is {shown or 'empty'}: {[*remedies, 'give it a value'][0]}.")


def _is_plain(kind: Any) -> bool:
    """Whether a type consists of numbers, texts, choices, lists and mappings only."""
    origin = get_origin(kind)
    if origin in (typing.Literal, type):
        return True
    if origin in (typing.Union, types.UnionType, list, tuple, dict):
        return all(each is Ellipsis or _is_plain(each) for each in get_args(kind))
    return kind in SCALARS or kind in (types.NoneType, Any)
