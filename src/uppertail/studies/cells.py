"""A cell: the options of one run of `uppertail train`, under a name."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from uppertail.studies.settings import SEEDS, is_environments

NAME = "name"
"""The entry of one of a study's `cells` that names it, in place of its options."""
BARE = (NAME, "env", "distribution", "policy")
"""Options that a label shows by their value alone."""
LONGEST = 120
"""The most characters of a name, since it names a folder."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of a study.

    Args:
        name: its name in tables, and that of its folder.
        options: its options of `uppertail train`, option to value.
        varying: the options in which the cells of its study may differ. In a cell with a name of its own, the name
            stands for them, except for those of its environment.
    """

    name: str
    options: Mapping[str, Any]
    varying: Mapping[str, Any]

    @property
    def environment(self) -> str:
        """The name of its environment: the options that vary; empty if none does."""
        return _label({option: value for option, value in self.varying.items() if is_environments(option)})

    @property
    def method(self) -> str:
        """The name of its method, likewise."""
        hidden = {option for option in self.varying if is_environments(option) or option in SEEDS}
        return _label({option: value for option, value in self.varying.items() if option not in hidden})

    @property
    def arguments(self) -> list[str]:
        """The options as arguments of `uppertail train`: a part before its settings."""
        names = sorted(self.options, key=lambda name: name.count("."))
        return [f"--{name}={text(self.options[name])}" for name in names]


def text(value: Any) -> str:
    """A value in the form of the command line."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, default=str)


def _label(varying: Mapping[str, Any]) -> str:
    return ", ".join(text(v) if name in BARE else f"{name}={text(v)}" for name, v in varying.items())


def name_of(varying: Mapping[str, Any]) -> str:
    """`env.length=10,policy=UCB`: a name for a cell, which can be that of a folder, and differs where options do."""
    plain = ",".join(f"{option}={text(value)}" for option, value in varying.items())
    name = re.sub(r"[^\w.,=+-]+", "-", plain).lstrip(".")[:LONGEST]
    return name if name == plain else f"{name}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
