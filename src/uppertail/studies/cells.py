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
"""What is called by its value alone."""
LONGEST = 120
"""Characters of a name, which is that of a folder."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of a study.

    Args:
        name: its name in tables, and that of its folder.
        options: all that is asked of `uppertail train`, option to value.
        varying: those of them in which the cells of its study may differ; its name stands for those that it was given
            with one, but for its environment's.
    """

    name: str
    options: Mapping[str, Any]
    varying: Mapping[str, Any]

    @property
    def environment(self) -> str:
        """What its environment is called: the options that vary; empty if none does."""
        return _label({option: value for option, value in self.varying.items() if is_environments(option)})

    @property
    def method(self) -> str:
        """What its method is called, likewise."""
        hidden = {option for option in self.varying if is_environments(option) or option in SEEDS}
        return _label({option: value for option, value in self.varying.items() if option not in hidden})

    @property
    def arguments(self) -> list[str]:
        """The options as arguments of `uppertail train`: a part before its settings."""
        names = sorted(self.options, key=lambda name: name.count("."))
        return [f"--{name}={text(self.options[name])}" for name in names]


def text(value: Any) -> str:
    """A value as it is written on the command line."""
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
