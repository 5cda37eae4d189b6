"""Errors in requests, as opposed to defects of the program."""

import abc
import difflib
import importlib
import importlib.util
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

CLOSE, SHORT = 0.72, 3  # how alike a name has to be that is hinted at, from 0 to 1; of so few letters, none may differ
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


class ContractError(ValueError):
    """What an environment returned is not what Gymnasium's contract asks for."""


class Explained(abc.ABCMeta):
    """The kind of classes that are made from settings: a setting that they do not have is refused in a sentence."""

    if not TYPE_CHECKING:  # type checkers look at __init__

        def __call__(cls, *args: Any, **settings: Any) -> Any:
            try:
                return super().__call__(*args, **settings)
            except TypeError:
                known = cls.__signature__.parameters
                for name in [each for each in settings if each not in known]:
                    raise InputError(f"{cls.__name__} has no setting {name}.{cls.hint(name, [*known])}") from None
                raise

        @property
        def __signature__(cls) -> inspect.Signature:
            signature = inspect.signature(cls.__init__)
            return signature.replace(parameters=[*signature.parameters.values()][1:])

    def hint(cls, name: str, known: Sequence[str]) -> str:
        """A sentence after another that leads from an unknown setting to those that are known."""
        return nearest(name, known, 1) or (f" Its settings are {', '.join(known)}." if known else " It has none.")


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

    One of the same letters, in any order, comes before all that are alike.
    `shown` has what is shown of some names.
    """
    by_lower = {each.lower(): (shown or {}).get(each, each) for each in names}
    swapped = [each for each in by_lower if sorted(each) == sorted(name.lower())][:count]
    alike = [each for each in by_lower if len(each) > SHORT]
    close = swapped or difflib.get_close_matches(name.lower(), alike, n=count, cutoff=CLOSE)
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
