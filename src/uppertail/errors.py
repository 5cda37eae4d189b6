"""Errors in requests, as opposed to defects of the program."""

import difflib
import importlib
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

LONGEST = 200  # the most characters of a value that a sentence shows


class InputError(ValueError):
    """A request that cannot be met: its message is one sentence that names the argument, the value and the remedy.

    Examples:
        >>> try:
        ...     ut.Chain(length=0)
        ... except ut.InputError as error:
        ...     print(error)
        length is 0, but a Chain needs at least 1 state; the paper uses 10 to 100.
    """


def require_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raises InputError unless a setting is one of the names that it may have."""
    if value not in choices:
        raise InputError(f"{name} is {short_text(value)}: use one of {join_names(choices)}.")


def import_package(package: str, user: str, otherwise: str = "") -> Any:
    """Imports an optional package for its user; InputError, with another remedy beside it, if it is not installed."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:  # a folder of that name beside the program is not the package
        pip = package.replace("_", "-")
        raise InputError(f"{user} needs the package {pip}: install it with `pip install {pip}`{otherwise}.")
    return importlib.import_module(package)


def join_names(choices: Sequence[str]) -> str:
    """Names joined for a sentence: A, B or C."""
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def nearest(
    name: str, names: Iterable[str], count: int = 3, prefix: str = "", shown: Mapping[str, str] | None = None
) -> str:
    """A hint at names like this one, each after a prefix, as a sentence after another; empty if there are none.

    `shown` has what is shown of some names.
    """
    by_lower = {each.lower(): (shown or {}).get(each, each) for each in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=count, cutoff=0.6)
    return f" Did you mean {' or '.join(prefix + by_lower[each] for each in close)}?" if close else ""


def message_of(error: BaseException) -> str:
    """The message of an exception in one line without a full stop, for a sentence that quotes it."""
    try:
        text = str(error)
    except Exception:  # the exception's own code may fail
        return ""
    return printable(" ".join(text.split()).rstrip("."))


def short_text(value: object) -> str:
    """A value as a sentence shows it: short, and on one line."""
    try:
        text = printable(" ".join(repr(value).split()))
    except Exception:  # the value's own code may fail; so does a number of too many digits
        return f"of type {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def printable(text: str) -> str:
    """A text whose characters can all be printed: others, such as half a surrogate pair, are escaped."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
