"""A cell: the options of one run of `uppertail train`, under a name, and how it ended."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote

ENVIRONMENT, SEEDS = "env", ("seed", "seeds")
WITHOUT_EFFECT = ("checkpoint_every", "logger", "record", "record_over")  # options that do not change a run's results
NAME = "name"  # the entry of one of a study's `cells` that names it, in place of its options
LABELED_BY_VALUE = (NAME, "env", "distribution", "policy")  # options that a label shows by their value alone
FIRST_SUCCESS, SOLVED, FINAL_RETURN = "first_success", "solved", "final_return"
TIMES = {FIRST_SUCCESS: "first_success_episode", SOLVED: "solved_episode"}  # counted in episodes; in summary.json
LONGEST = 120  # the most characters of a name, since it names a folder


def environment_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The environment's part of settings."""
    return {name: value for name, value in settings.items() if name.partition(".")[0] == ENVIRONMENT}


def method_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings except the environment's and the seeds."""
    left_out = {*environment_of(settings), *SEEDS}
    return {name: value for name, value in settings.items() if name not in left_out}


def differences(was: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """Each of the settings in which two runs differ, in words."""
    for name in [*was, *(asked.keys() - was.keys())]:
        if name not in was or name not in asked or was[name] != asked[name]:
            yield f"{name} is {was.get(name, 'left out')}, not {asked.get(name, 'left out')}"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of a study."""

    name: str  # its name in tables, and that of its folder
    options: Mapping[str, Any]  # its options of `uppertail train`, option to value
    # the options in which the cells of its study may differ. In a cell with a name of its own, the name stands for
    # them, except for those of its environment
    varying: Mapping[str, Any]

    @property
    def arguments(self) -> list[str]:
        """The options as arguments of `uppertail train`."""
        return [f"--{name}={text(value)}" for name, value in self.options.items()]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The state of a cell, and how it ended if it has."""

    state: Literal["done", "failed", "pruned", "begun", "waiting"]  # pruned is a trial of a search that was ended early
    message: str = ""  # why it failed
    seconds: float = 0.0  # how long it took
    sha256: Mapping[str, str] = dataclasses.field(default_factory=dict)  # the checksums of its files
    value: float | None = None  # how good a trial was; higher is better

    @property
    def is_open(self) -> bool:
        """Whether the cell has not ended."""
        return self.state in ("begun", "waiting")


LOSSES = 3  # a cell whose worker died this many times, without a new checkpoint, has failed
LOST = Outcome("failed", f"its worker died {LOSSES} times without a message, killed or out of memory")


def text(value: Any) -> str:
    """A value in the form of the command line."""
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, float) else json.dumps(value, default=str)


def key(settings: Any) -> str:
    """Settings as one text: the same for the same settings."""
    return json.dumps(settings, sort_keys=True, default=str)


def label(options: Mapping[str, Any]) -> str:
    """Options as a table shows them."""
    return ", ".join(text(v) if name in LABELED_BY_VALUE else f"{name}={text(v)}" for name, v in options.items())


def name_of(varying: Mapping[str, Any]) -> str:
    """`env.length=10,policy=UCB`: a name for a cell, which can be that of a folder, and differs where options do."""
    plain = quote(",".join(f"{option}={text(value)}" for option, value in varying.items()), safe=",=+")
    name = plain.lstrip(".")[:LONGEST]
    return name if name == plain else f"{name}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
