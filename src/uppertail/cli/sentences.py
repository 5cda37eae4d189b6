"""Sentences for what jsonargparse says about wrong options."""

import difflib
import inspect
import pydoc
import re
from collections.abc import Sequence

from jsonargparse import ArgumentParser

from uppertail.parts import PARTS

REGISTERED = re.compile(r"[\w:./-]+-v\d+")
"""How the ids of Gymnasium's environments look."""

LONGEST_SENTENCE = 1000
"""The most characters of a sentence."""

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
"""Plain words for the types of settings."""


def shorten(text: str) -> str:
    """Cuts the middle out of a sentence that quotes something very long."""
    return text if len(text) <= LONGEST_SENTENCE else f"{text[: LONGEST_SENTENCE // 2]} ... {text[-250:]}"


def sentence(message: str, parser: ArgumentParser) -> str:
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
            f"name it, too, with --{option}."
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
    if option == "env" and (found := re.search(r"([\w.]+) does not correspond to a subclass", text)):
        return (
            f"{found[1]} is no builder of environments: register what makes it (gymnasium.register('My-v0', "
            f"entry_point=...)), and use --env Gym --env.id MODULE:My-v0; or use {_choices(option)}."
        )
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
    """Plain words for a type as jsonargparse shows it."""
    name = shown.replace("<class '", "").replace("'>", "")
    if literal := re.fullmatch(r"(?:typing\.)?Literal\[(.*)\]", name):
        return f"one of {literal[1]}" if "," in literal[1] else literal[1]
    if name.startswith("list["):
        return "a list"
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
