"""A cell: the options of one run of `uppertail train`, under a name."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

ENVIRONMENT = "env"
SEEDS = ("seed", "seeds")
NEUTRAL = ("checkpoint_every", "logger", "record")
"""Options that leave a run's results as they are."""


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"env": {"class_path": "uppertail.Chain", "init_args": {"length": 5}}}` as `env: Chain, env.length: 5`."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and "class_path" in value:
            found[f"{prefix}{name}"] = str(value["class_path"]).removeprefix("uppertail.")
            found |= flat(value.get("init_args") or {}, f"{prefix}{name}.")
        elif isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return {name: value for name, value in found.items() if name not in NEUTRAL}


def environment(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The environment's part of flat settings."""
    return {name: value for name, value in settings.items() if is_environments(name)}


def method(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All flat settings except the environment's and the seeds."""
    return {name: value for name, value in settings.items() if not is_environments(name) and name not in SEEDS}


def differences(was: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """Each of the flat settings in which two runs differ, in words."""
    for name in [*was, *(asked.keys() - was.keys())]:
        if name not in was or name not in asked or was[name] != asked[name]:
            yield f"{name} is {was.get(name, 'left out')}, not {asked.get(name, 'left out')}"


def is_environments(option: str) -> bool:
    """Whether an option is the environment or one of its settings."""
    return option == ENVIRONMENT or option.startswith(f"{ENVIRONMENT}.")


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
