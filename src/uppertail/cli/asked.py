"""Which options are given, on the command line and in configuration files: each setting of a part by its own name."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml


class Asked(NamedTuple):
    """An option with its value: text of the command line, or a value of a configuration file."""

    option: str
    value: Any
    is_text: bool


def of_mapping(options: Mapping[str, Any], parts: Sequence[str]) -> Iterator[Asked]:
    """The options of a configuration file; those of a part one by one."""
    for name, value in options.items():
        yield from _of_value(str(name), value, False, parts)


def of_arguments(arguments: Sequence[str], parts: Sequence[str], actions: Mapping[str, Any]) -> Iterator[Asked]:
    """The options of the command line that have a value."""
    for argument, following in zip(arguments, [*arguments[1:], "--"], strict=False):
        name, equals, value = argument.removeprefix("--").partition("=")
        action = actions.get(name)
        flag = name in ("", "help", "print_config") or name.endswith(".help") or (action and action.nargs == 0)
        if not argument.startswith("--") or flag:
            continue
        if equals or not following.startswith("--"):
            yield from _of_value(name, value if equals else following, True, parts)
        elif name.partition(".")[0] not in parts:  # its value is missing
            yield Asked(name.removesuffix("+"), "", is_text=name.removesuffix("+") not in actions)


def _of_value(name: str, value: Any, is_text: bool, parts: Sequence[str]) -> Iterator[Asked]:
    part, _, setting = name.partition(".")
    if part not in parts:
        yield Asked(name.removesuffix("+"), [] if name.endswith("+") else value, is_text)
        return
    setting = setting.removeprefix("init_args.")
    if setting and setting != "class_path":
        yield Asked(f"{part}.{setting}", value, is_text)
        return
    content = content_of(value) if is_text else value
    if not isinstance(content, Mapping):
        yield Asked(part, content, is_text)
        return
    if "class_path" in content:
        yield Asked(part, content["class_path"], is_text)
    settings = content.get("init_args") if {"class_path", "init_args"} & content.keys() else content
    for each, inner in settings.items() if isinstance(settings, Mapping) else ():
        yield Asked(f"{part}.{each}", inner, False)


def content_of(value: Any) -> Any:
    """A value; of a text that is YAML, its content."""
    if isinstance(value, str):
        with contextlib.suppress(yaml.YAMLError, RecursionError, ValueError):
            return yaml.safe_load(value)
    return value
