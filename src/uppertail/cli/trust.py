"""Asks the user before a command runs code that a run folder names."""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from uppertail.cli.parsing import content_of
from uppertail.errors import InputError, printable
from uppertail.parts import PARTS
from uppertail.records import RunFolder, made_here

KNOWN = ("uppertail", "gymnasium")
"""Packages whose code runs without a question."""

PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z_][\w.]*:\S+")
"""Import paths of classes, and ids of environments with the module that makes them."""


def require_trust(folder: Path, trust: bool | None) -> None:
    """Refuses to run code that a folder names, unless it is ours, the user's own, or wanted.

    Args:
        folder: the run's folder.
        trust: whether the user wants it; None: the command never runs such code.
    """
    named = sorted(set(foreign_names(RunFolder(folder).config or {})))
    if not named or trust or (trust is not None and made_here(folder)):
        return
    what = f"The run in {folder} names code that is not UpperTail's or Gymnasium's ({printable(', '.join(named[:5]))})"
    if trust is None:
        raise InputError(f"{what}, and this command runs none: train with --record distributions, which it then reads.")
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        print(f"{what}, and it was not made by you on this machine. Run that code? [y/N] ", end="", file=sys.stderr)
        if input().strip().lower() in ("y", "yes"):
            return
    raise InputError(
        f"{what}, and it was not made by you on this machine: read that code, then add --trust (in Python, trust=True)."
    )


def foreign_names(options: Mapping[str, Any]) -> Iterator[str]:
    """The classes and modules that a run's options name and that are neither UpperTail's nor Gymnasium's.

    Everything that looks like such a name counts: an unneeded question is better than unwanted code.
    """
    for option, value in options.items():
        part, content = PARTS.get(option), content_of(value)
        kind = content.get("class_path") if isinstance(content, Mapping) else content
        if part is not None and isinstance(kind, str) and "." not in kind and kind not in part.kinds:
            yield kind  # a module of this name would be imported
        if "." in option or option == "config":  # no run writes such an option; it would replace other options
            yield option
    for text in _texts(options):
        yield from (found for found in PATH.findall(text) if re.split(r"[.:]", found)[0] not in KNOWN)


def _texts(value: Any) -> Iterator[str]:
    """All texts somewhere in a value."""
    if isinstance(value, str):
        yield value
        if (content := content_of(value)) != value:
            yield from _texts(content)
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)
