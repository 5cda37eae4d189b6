"""A run that is asked for, on the command line or by the config.yaml of a folder."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from uppertail import records
from uppertail.cli.commands import COMMANDS
from uppertail.cli.options import Choice
from uppertail.cli.output import complain
from uppertail.cli.parsing import Values
from uppertail.errors import InputError
from uppertail.loggers import Logger, named
from uppertail.parts import PARTS
from uppertail.training.checkpoints import Checkpoints
from uppertail.training.method import Method
from uppertail.training.run import Run
from uppertail.training.settings import Settings

RUNS = Path("runs")
"""The folder of runs without --out."""

SAVED = (*PARTS, *Settings.__dataclass_fields__, "checkpoint_every", "record", "record_over", "logger")
"""The options in config.yaml."""


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """What was asked for, with its classes built."""

    built: Values  # all options
    config: str  # config.yaml of the run

    @property
    def settings(self) -> Settings:
        """The settings of the run."""
        return Settings(**{name: self.built[name] for name in Settings.__dataclass_fields__})

    def check(self, folder: Path) -> None:
        """Refuses what can be refused before the run is built and its folder is made."""
        _ = self.settings, self.checkpoints(folder), self.loggers(folder)

    def run(self, before: Mapping[str, Any] | None = None) -> Run:
        """The run before its first step; `before` has the settings of the earlier run that it continues or plays."""
        method = Method(**{name: self.built[name] for name in Method.__dataclass_fields__})
        return Run(self.built.env, method, self.settings, before, self.built.record, self.built.record_over)

    def checkpoints(self, folder: Path) -> Checkpoints:
        """Where the states of a run in this folder are saved, and how often."""
        return Checkpoints(folder, self.built.checkpoint_every, complain)

    def loggers(self, folder: Path) -> list[Logger]:
        """The loggers beside log.jsonl; each is ready, but has written nothing."""
        names = [self.built.logger] if isinstance(self.built.logger, str) else self.built.logger
        return [named(name, folder) for name in dict.fromkeys(names)]

    @property
    def _name(self) -> str:
        """The name of its folder without --out."""
        environment = re.sub(r"[^\w.-]+", "-", self.built.env.label)
        return "-".join((environment, *(type(self.built[part]).__name__ for part in ("distribution", "policy"))))

    def folder(self) -> Path:
        """The folder that its results will go to."""
        return Path(self.built.out) if self.built.out else records.unused_folder(RUNS, self._name)

    def claim(self) -> Path:
        """Makes the folder of its results; without --out, another process may have taken `folder()` by now."""
        if not self.built.out:
            return records.claim_unused(RUNS, self._name)
        records.claim_folder(folder := Path(self.built.out), self.built.overwrite)
        return folder


def request_of(values: Values) -> Request:
    """What the options of `uppertail train` ask for; InputError if a part refuses its settings."""
    choices = {name: value for name, value in values.items() if isinstance(value, Choice)}
    saved = {name: choices[name].document() if name in choices else values[name] for name in SAVED}
    built = Values({**values, **{name: choice.build() for name, choice in choices.items()}})
    return Request(built, yaml.safe_dump(saved, allow_unicode=True, sort_keys=False))


def parse_request(arguments: Sequence[str]) -> Request:
    """What these arguments of `uppertail train` ask for."""
    return request_of(COMMANDS["train"].parse(arguments))


def read_request(config: Path, beside: Sequence[str] = ()) -> Request:
    """What the config.yaml of a run asks for, but for options that replace its own."""
    try:
        return parse_request([f"--config={config}", *beside])
    except InputError as error:
        raise InputError(f"In {config}: {error}") from error
