"""Packages that some environments need: their import, and what they make of an id."""

import importlib
from collections.abc import Callable
from typing import Any

from uppertail.errors import InputError, message_of, nearest


def import_extra(package: str, extra: str) -> Any:
    """A package that an environment needs; InputError if it is not installed, or does not work here."""
    remedy = f"run `pip install 'uppertail[{extra}]'`"
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        why = f"needs the module {error.name!r}, which is not installed"
        raise InputError(f"This environment {why}: {remedy}.") from error
    except Exception as error:  # a version that does not go with the others here may raise anything
        why = f"({type(error).__name__}: {message_of(error)})"
        raise InputError(f"{package} cannot be imported {why}: {remedy}.") from error


def make_registered(package: str, asked: str, known: list[str], make: Callable[[], Any]) -> Any:
    """What a package makes of an id; InputError if it is not registered, or cannot be made."""
    if asked not in known:
        raise InputError(f"There is no environment {asked!r} in {package} here.{nearest(asked, known)}")
    try:
        return make()
    except Exception as error:  # the package's own code may raise anything
        raise InputError(f"{asked} cannot be made ({type(error).__name__}: {message_of(error)}).") from error
