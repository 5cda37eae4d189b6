"""The options of a command: as help shows them, and their values from presets, a file and the command line.

Among the options of a run are its parts, such as env, and each setting of their classes, such as env.length.
"""

import argparse
import contextlib
import dataclasses
import functools
import inspect
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import docstring_parser

from uppertail.cli.imports import find_here
from uppertail.errors import InputError, join_names, nearest, printable, short_text
from uppertail.parts import (
    ABSENT,
    ELSEWHERE,
    PARTS,
    PARTS_OF_GRADIENTS,
    PRESETS,
    SETTLED,
    class_named,
    is_id,
    name_of,
    newest,
)
from uppertail.schema import MismatchError, convert, whole
from uppertail.yaml_files import content_of, read_options

PROGRAM = re.compile(r"[^:]*\.py(:|$)")  # begins with the path of a file with Python code
REQUIRED = inspect.Parameter.empty  # the default of an option that must be given


@dataclasses.dataclass(frozen=True)
class Option:
    """An option: `--NAME VALUE`."""

    kind: Any  # the type of its value
    default: Any  # or `REQUIRED`
    text: str
    nargs: int | Literal["?", "*"] = 1  # as in argparse; ? or *: it is given without its name

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


def _type_text(kind: Any) -> str:
    """A type as help shows it: `int | null`."""
    if get_origin(kind) in (typing.Union, types.UnionType, Literal):
        return " | ".join(each if isinstance(each, str) else _type_text(each) for each in get_args(kind))
    if kind is types.NoneType:
        return "null"
    return kind.__name__ if isinstance(kind, type) and not get_origin(kind) else str(kind).replace("typing.", "")


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


@dataclasses.dataclass(frozen=True)
class PartChoice:
    """The class of a part and its settings, before it is built."""

    kind: type
    settings: dict[str, Any]

    def build(self) -> Any:
        """The part; InputError if the class refuses its settings."""
        try:
            return self.kind(**self.settings)
        except (ValueError, TypeError) as error:
            raise InputError(printable(" ".join(str(error).split()))) from error

    def options(self, part: str) -> dict[str, Any]:
        """The class and all of its settings that a file can hold, as options."""
        defaults = {name: option.default for name, option in options_of(self.kind).items() if _is_data(option.default)}
        settings = {f"{part}.{name}": value for name, value in {**defaults, **self.settings}.items()}
        return {part: name_of(part, self.kind), **settings}


@dataclasses.dataclass(frozen=True)
class OpenChoice(PartChoice):
    """Settings of a part whose class is not named; `kind` is one that has them all."""

    def options(self, part: str) -> dict[str, Any]:
        return {part: None} | {f"{part}.{name}": value for name, value in self.settings.items()}


def _is_data(value: Any) -> bool:
    if isinstance(value, list | tuple | dict):
        return all(map(_is_data, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, bool | int | float | str)


class Values(dict[str, Any]):
    """The values of options, by name or as attributes; of a part, its `PartChoice`."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def parse(
    program: str,
    options: Mapping[str, Option],
    parts: Sequence[str],
    arguments: Sequence[str],
    changed: Sequence[str] = (),
) -> Values:
    """Reads the arguments of a command; InputError if an option is unknown or missing, or its value of another type.

    `changed`: parts of an earlier run, of whose settings those that are typed are kept as arguments in `changes`.
    """
    typed = dict(_typed(program, options, [*arguments]))
    settings_of = tuple(f"{part}." for part in changed)
    changes = [f"--{name}={typed.pop(name)}" for name in [*typed] if name.startswith(settings_of)]
    preset = _preset(typed) if "preset" in options else {}
    file = read_options(Path(typed["config"])) if "config" in options and typed.get("config") else {}
    given = {**{name: value for name, value in preset.items() if "." not in name}, **file, **typed}
    given |= {part: content_of(given[part]) for part in parts if part in given}
    if "env" in parts:
        _name_environment(given)
    if parts:
        find_here(given)
    classes = {part: kind for part in parts if (kind := _class_of(part, given))}
    open_parts = {part: _usual_of(part, given) for part in parts if _has_open_settings(part, given)}
    kinds = [*classes.items(), *open_parts.items()]
    settings = {f"{part}.{name}": each for part, kind in kinds for name, each in options_of(kind).items()}
    for part, kind in classes.items():
        for name in preset:
            owner, _, setting = name.partition(".")
            if owner == kind.__name__ or (owner == part and name in settings):
                given.setdefault(f"{part}.{setting}", preset[name])
    known, values = {**options, **settings}, dict[str, Any]()
    for name, value in given.items():
        part, _, setting = name.partition(".")
        if part in classes and (setting, value) in SETTLED.get(classes[part].__name__, {}).items():
            continue
        if name in known:
            values[name] = _converted(name, value, known[name])
        elif name not in parts:
            own = classes | open_parts
            raise InputError(_unknown(program, known, parts, own, name, "--" * (name in typed), changed))
    for name, option in settings.items():
        if option.default is REQUIRED and name not in values:
            part, _, setting = name.partition(".")
            raise InputError(f"{(classes | open_parts)[part].__name__} needs {setting}: give it with --{name}.")
    return Values(
        {part: classes.get(part) and _choice(part, classes[part], values) for part in parts}
        | {part: OpenChoice(**vars(_choice(part, kind, values))) for part, kind in open_parts.items()}
        | {name: values.get(name, option.default) for name, option in options.items()}
        | ({"changes": changes} if changed else {})
    )


def _name_environment(given: dict[str, Any]) -> None:
    """Gym, where the environment is an id of Gymnasium; InputError if it is a file, or has two ids."""
    if "env" not in given and "env.id" in given:
        given["env"] = "Gym"
    if isinstance(path := given.get("env"), str) and PROGRAM.match(path):
        raise InputError(_registered(path))
    if is_id(name := newest(given.get("env"))):
        if given.setdefault("env.id", name) != name:
            raise InputError(f"--env {printable(str(name))} and --env.id name two environments: leave one out.")
        given["env"] = "Gym"


def _registered(path: str) -> str:
    """How to name an environment that the program at a path registers."""
    file, _, name = path.partition(":")
    module = ".".join(each for each in Path(file).with_suffix("").parts if each not in ("..", "/"))
    kind = name if name.isidentifier() else "Mine"
    registered = name if is_id(name) else f"{kind}-v0"
    example = f"gymnasium.register({registered!r}, entry_point={f'{module}:{kind}'!r})"
    added = "" if is_id(name) else f", with {printable(example)} in it if it registers none"
    return (
        f"--env {printable(path)} names a file: name its module, as seen from the current folder, and the "
        f"environment that it registers, such as {printable(module)}:{printable(registered)}{added}."
    )


def _choice(part: str, kind: type, values: Mapping[str, Any]) -> PartChoice:
    split = {name: name.partition(".") for name in values}
    return PartChoice(kind, {setting: values[name] for name, (owner, _, setting) in split.items() if owner == part})


def _typed(program: str, options: Mapping[str, Option], rest: list[str]) -> Iterator[tuple[str, Any]]:
    """What stands on the command line: each option's name, and its value."""
    unnamed = list[str]()
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
        if count == 1 and option and not found:
            raise InputError(f"--{name} needs a value: write --{name} VALUE, or leave it out.")
        yield name, "".join(found) if count == 1 else found or True
    for name, option in options.items():
        if unnamed and option.nargs in ("?", "*"):
            yield name, unnamed.pop(0) if option.nargs == "?" else [unnamed.pop(0) for _ in [*unnamed]]
    if unnamed:
        name = printable(unnamed[0])
        known = f" For this environment, use --env {name}." if is_id(newest(name)) or name in PARTS["env"].kinds else ""
        dash = nearest(name.lstrip("-"), (*options, *PARTS), 1, "--") if name.startswith("-") else ""
        raise InputError(f"{name!r} belongs to no option: `{program} --help` lists them.{known or dash}")


def _preset(typed: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of the preset that is asked for."""
    name = typed.get("preset", "null")
    if name not in (*PRESETS, "null"):
        raise InputError(
            f"There is no preset {name!r}: use {', '.join(PRESETS)}, or leave it out.{nearest(name, PRESETS, 1)}"
        )
    if name != "null" and "config" in typed:
        raise InputError("--preset and --config each describe a whole run: give one of them, with options beside it.")
    return PRESETS.get(name, {})


def _class_of(part: str, given: Mapping[str, Any]) -> type | None:
    """The class of a part, by default the usual one; an optional part has it only with settings."""
    name, known = given.get(part), PARTS[part]
    if known.optional and name is None and (part in PARTS_OF_GRADIENTS or not _settings_of(part, given)):
        return None
    is_open = name is None and (known.optional or part not in given)
    return class_named(part, known.default if is_open else name)


def _settings_of(part: str, given: Mapping[str, Any]) -> list[str]:
    """The settings of a part that are given."""
    return [name.removeprefix(f"{part}.") for name in given if name.startswith(f"{part}.")]


def _has_open_settings(part: str, given: Mapping[str, Any]) -> bool:
    """Whether settings are given of a part of gradient descent whose class is not named."""
    return part in PARTS_OF_GRADIENTS and given.get(part) is None and bool(_settings_of(part, given))


def _usual_of(part: str, given: Mapping[str, Any]) -> type:
    """A class that has all settings that are given of a part: the usual one, if it does or if none has them."""
    known, settings = PARTS[part], _settings_of(part, given)
    usual = class_named(part, known.default)
    owners = [kind for kind in (usual, *known.classes.values()) if options_of(kind).keys() >= {*settings}]
    return owners[0] if owners else usual


def _unknown(
    program: str,
    options: Mapping[str, Option],
    parts: Sequence[str],
    classes: Mapping[str, type],
    name: str,
    dashes: str,
    changed: Sequence[str] = (),
) -> str:
    """Why an option is refused that there is not."""
    part, _, setting = name.partition(".")
    if name in changed:
        return (
            f"There is no option {dashes}{name}: `{program}` takes settings of the run's own environment, as "
            f"--{name}.NAME VALUE, but no other environment."
        )
    if part not in classes:
        if (elsewhere := name.replace("-", "_")) in ABSENT:
            return f"There is no option {dashes}{name}.{ABSENT[elsewhere]}"
        kinds = {each: classes.get(each) or class_named(each, PARTS[each].default) for each in parts}
        own = {setting: f"{each}.{setting}" for each, kind in kinds.items() for setting in options_of(kind)}
        here = {**own, **{each: each for each in (*parts, *options)}}
        shown = {each: there for each, there in ELSEWHERE.items() if re.split(r"[. ]", there)[0] in here} | here
        hint = nearest(name.replace("-", "_"), shown, 1, dashes, shown)
        return f"There is no option {dashes}{printable(name)}.{hint or f' `{program} --help` lists them.'}"
    kind = classes[part].__name__
    if setting in SETTLED.get(kind, {}):
        needs = "a run with it needs the version of uppertail that made it"
        return f"{kind} has no setting {setting} any more: leave it out; {needs}."
    argument = setting.removeprefix("kwargs.")
    near = nearest(setting.replace("-", "_"), options_of(classes[part]), 1, f"--{part}.")
    if kind == "Gym" and (argument != setting or not near):
        return (
            f"Gym has no setting {printable(setting)!r}. Arguments of the environment itself go into --env.kwargs "
            f"'{{{printable(argument)}: VALUE}}'."
        )
    others = {} if changed else PARTS[part].classes  # the command takes no other class
    owners = [name for name, each in others.items() if setting in options_of(each)]
    of_another = f" It belongs to {join_names(owners)}: name that class, too, with --{part}." if owners else ""
    is_usual = kind == PARTS[part].default  # as where none was named
    hint = (of_another or near if is_usual else near or of_another) or (
        f" `{program} --{part}.help {kind}` lists its settings; to set those of another class, name it, too, with "
        f"--{part}."
    )
    return f"{kind} has no setting {printable(setting)!r}.{hint}"


def _converted(name: str, value: Any, option: Option) -> Any:
    """A value as its option's type; a text may be YAML."""
    readings = [value]
    if isinstance(value, str) and value and option.kind is not str:
        readings = [content_of(value), value]
        with contextlib.suppress(ValueError):
            readings.append(float(value))  # YAML reads 1e-3, without a point, as text
    if readings[0] is None and (option.default is None or types.NoneType in get_args(option.kind)):
        return None
    remedies = list[str]()
    for reading in readings if value != "" or option.kind is not str else ():
        try:
            return convert(whole(reading, option.kind), option.kind)
        except MismatchError as error:
            remedies.append(str(error))
    if readings[0] is None:
        raise InputError(f"{name} is null, but it needs a value: give one, or leave {name} out for its default.")
    shown = printable(value[:200]) if isinstance(value, str) else short_text(value)
    remedy = [*remedies, "give it a value"][0]
    if isinstance(value, str) and "," in value and remedy in ("use a list", "use a list, or leave it out"):
        remedy = remedy.replace("a list", f"a list, as in '[{shown}]'")
    raise InputError(f"{name} is {shown or 'empty'}: {remedy}.")
