"""How summary.json and checkpoints name a part of a run."""

import dataclasses
import math
from typing import Any

import numpy as np


def describe(part: Any) -> dict[str, Any]:
    """Class name and settings of a part, as summary.json shows them."""
    shown = [field.name for field in dataclasses.fields(part) if field.repr]
    return {"name": type(part).__name__, **{name: plain(getattr(part, name)) for name in shown}}


def plain(value: Any) -> Any:
    """A setting for JSON: tuples and arrays as lists, and values that JSON does not have as Python prints them."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, int | float | str | None) else repr(value)
