"""How summary.json and checkpoints name a part of a run."""

import dataclasses
from typing import Any


def described(part: Any) -> dict[str, Any]:
    """Class name and settings of a part, as summary.json shows them."""
    shown = [field.name for field in dataclasses.fields(part) if field.repr]
    return {"name": type(part).__name__, **{name: _plain(getattr(part, name)) for name in shown}}


def _plain(value: Any) -> Any:
    """A setting, with tuples as the lists that JSON makes of them."""
    return list(value) if isinstance(value, tuple) else value
