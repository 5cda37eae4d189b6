"""Checks settings by their declared types, and that numbers fit into 32 bits."""

import collections.abc
import dataclasses
import functools
import math
import numbers
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from uppertail.errors import InputError, join_names, short_text

MOST_INT = 2**31 - 1  # the largest whole number of 32 bits
MOST_FLOAT = 3.4e38  # the largest number of 32 bits, rounded down

TRACED = {"traced": True}
"""Metadata of a field whose number is an argument of compiled programs, not a constant in them.

Runs that differ only in such numbers share their programs. `if self.number` is not possible there.
"""


def traced(default: Any) -> Any:
    """A field with this default and the metadata `TRACED`."""
    return dataclasses.field(default=default, metadata=TRACED)


class MismatchError(Exception):
    """A value has another type; the error's text says what to use instead, and begins with a verb."""


def settle(part: Any) -> None:
    """Brings every setting of a part to its declared type: numbers of NumPy and JAX become Python's, lists tuples.

    Raises:
        InputError: a setting is of another type.
    """
    for name, kind in _kinds(type(part)).items():
        before = getattr(part, name)
        after = require_type(name, before, kind)
        if after is not before:
            object.__setattr__(part, name, after)


def require_type(name: str, value: Any, kind: Any) -> Any:
    """Converts a value to its declared type; one of another type is refused by the setting's name."""
    try:
        return convert(whole(value, kind), kind)
    except MismatchError as error:
        raise InputError(f"{name} is {short_text(value)}: {error}.") from None


def whole(value: Any, kind: Any) -> Any:
    """A value; of a number like 1e5 the whole one, where the declared type takes no others."""
    kinds = get_args(kind) or (kind,)
    is_whole = isinstance(value, float) and value.is_integer() and int in kinds and float not in kinds
    return int(value) if is_whole else value


def convert(value: Any, kind: Any) -> Any:
    """Converts a value to its declared type, by a MismatchError if it is of another; itself if it has that type."""
    if get_origin(kind) in (typing.Union, types.UnionType):
        return _of_union(value, get_args(kind))
    if get_origin(kind) is Literal:
        plain = _scalar(value)
        if not any(type(plain) is type(choice) and plain == choice for choice in get_args(kind)):
            choices = get_args(kind)
            raise MismatchError(f"use {'one of ' if len(choices) > 1 else ''}{join_names(choices)}")
        return plain
    if get_origin(kind) in (tuple, list):
        return _of_sequence(value, kind)
    if get_origin(kind) is collections.abc.Callable:
        if not callable(value):
            raise MismatchError("use a function")
        return value
    plain_kind = get_origin(kind) or kind
    if plain_kind is Any:
        return value
    if plain_kind in SCALARS:
        return _of_scalar(_scalar(value), plain_kind)
    if plain_kind is dict:
        return _of_mapping(value, get_args(kind))
    if isinstance(plain_kind, type) and not isinstance(value, plain_kind):
        raise MismatchError(f"use {'null (in Python, None)' if kind is types.NoneType else plain_kind.__name__}")
    return value


SCALARS: dict[type, tuple[type, str]] = {
    bool: (bool, "use true or false (in Python, True or False)"),
    int: (numbers.Integral, "use a whole number"),
    float: (numbers.Real, "use a number"),
    str: (str, "use text"),
}
"""For each type, which values are taken for it, and what is said of others."""
LIMITS: dict[type, tuple[float, str]] = {
    int: (MOST_INT, "use a whole number below 2^31"),
    float: (MOST_FLOAT, f"use a finite number, at most {MOST_FLOAT:g}"),
}


def _of_scalar(value: Any, kind: type) -> Any:
    accepted, remedy = SCALARS[kind]
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise MismatchError(remedy)
    try:
        result = kind(value)
    except OverflowError:  # a whole number of hundreds of digits
        result = math.inf
    if kind in LIMITS and not abs(result) <= LIMITS[kind][0]:  # NaN fails, too
        raise MismatchError(LIMITS[kind][1])
    return result


def _scalar(value: Any) -> Any:
    """A number of NumPy or JAX, or an array of one such number without axes, as Python's own."""
    if type(value).__module__.partition(".")[0] in ("numpy", "jax", "jaxlib") and getattr(value, "ndim", None) == 0:
        try:
            return value.item()
        except Exception as error:  # within a compiled program its number is not known
            raise MismatchError("use a number that is known before anything is compiled") from error
    return value


def _of_union(value: Any, kinds: tuple[Any, ...]) -> Any:
    if value is None and types.NoneType in kinds:
        return None
    remedies: list[str] = []
    for kind in kinds:
        if kind is not types.NoneType:
            try:
                return convert(value, kind)
            except MismatchError as error:
                remedies.append(str(error))
    left_out = ", or leave it out" if types.NoneType in kinds else ""
    first, *others = dict.fromkeys(remedies)
    raise MismatchError(f"{' or '.join([first, *(each.removeprefix('use ') for each in others)])}{left_out}")


def _of_sequence(value: Any, kind: Any) -> Any:
    items = value.tolist() if type(value).__module__ == "numpy" and getattr(value, "ndim", 0) == 1 else value
    origin, kinds = get_origin(kind), get_args(kind)
    if not isinstance(items, list | tuple):
        raise MismatchError("use a list")
    if origin is tuple and Ellipsis not in kinds and len(items) != len(kinds):
        raise MismatchError(f"use a list of {len(kinds)}")
    each = [kinds[0]] * len(items) if origin is list or Ellipsis in kinds else kinds
    try:
        result = origin(convert(item, wanted) for item, wanted in zip(items, each, strict=True))
    except MismatchError as error:
        raise MismatchError(f"in its list, {error}") from None
    same = type(value) is origin and all(new is old for new, old in zip(result, value, strict=True))
    return value if same else result


def _of_mapping(value: Any, kinds: tuple[Any, ...]) -> Any:
    if not isinstance(value, Mapping):
        raise MismatchError("use a mapping from names")
    if other := [key for key in value if not isinstance(key, str)]:
        truth = " (YAML reads on, off, yes and no as truth values)" * isinstance(other[0], bool)
        raise MismatchError(f"use names as keys, where {other[0]!r} is none: put it into quotes{truth}")
    if not kinds or kinds[1] is Any:
        return value
    return {key: convert(each, kinds[1]) for key, each in value.items()}


@functools.cache
def _kinds(part: type[Any]) -> dict[str, Any]:
    """The declared type of each setting."""
    try:
        hints = typing.get_type_hints(part)
    except NameError:  # a user's class may import a type for type checkers only
        hints = {}
    return {field.name: hints.get(field.name, Any) for field in dataclasses.fields(part) if field.init}
