"""What goes wrong through what was asked, not through a defect."""

import dataclasses
from collections.abc import Sequence
from typing import Any


class InputError(ValueError):
    """A request that cannot be met: its message is one sentence that names the argument, the value and the remedy."""


def require_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raises InputError unless a setting is one of the names that it may have."""
    if value not in choices:
        raise InputError(f"{name} is {value!r}: use one of {', '.join(choices[:-1])} or {choices[-1]}.")


def require_truth_values(part: Any) -> None:
    """Raises InputError unless every setting of a part that is declared to be a bool is one: 'no' would count as true.

    Args:
        part: a dataclass of settings.
    """
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.type in (bool, "bool") and not isinstance(value, bool):
            if type(value).__module__ == "numpy" and type(value).__name__.startswith("bool"):
                object.__setattr__(part, field.name, bool(value))
            else:
                raise InputError(f"{field.name} is {value!r}: use true or false (in Python, True or False).")


def said(error: BaseException) -> str:
    """What an exception says, in one line and without a full stop: for a sentence that quotes it."""
    return " ".join(str(error).split()).rstrip(".")
