"""What goes wrong through what was asked, not through a defect."""

from collections.abc import Sequence


class InputError(ValueError):
    """A request that cannot be met: its message is one sentence that names the argument, the value and the remedy."""


def require_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raises InputError unless a setting is one of the names that it may have."""
    if value not in choices:
        raise InputError(f"{name} is {value!r}: use one of {', '.join(choices[:-1])} or {choices[-1]}.")


def said(error: BaseException) -> str:
    """What an exception says, in one line and without a full stop: for a sentence that quotes it."""
    return " ".join(str(error).split()).rstrip(".")
