"""`uppertail train`: one method, one environment, several seeds."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jsonargparse import Namespace

from uppertail import records
from uppertail.cli.output import complain
from uppertail.cli.parsing import QUIET, Command, flag, instantiate, option, parse
from uppertail.errors import InputError
from uppertail.parts import PARTS
from uppertail.presets import with_preset
from uppertail.training.settings import Settings

if TYPE_CHECKING:
    from uppertail.loggers import Logger
    from uppertail.training.checkpoints import Checkpoints
    from uppertail.training.drive import OnChunk
    from uppertail.training.run import Run

PRESET = "a set of options: paper (the paper's own form) or minigrid (needs --env.id); options given beside it win"
CHECKPOINT_EVERY = "environment steps of each seed between checkpoints, for `uppertail resume`; null: none"
RECORD = "distributions: return distributions at moments of the run, for `uppertail report`; null: nothing"
RECORD_OVER = "two numbers of a vector over which the width is recorded, like '[2, 3]'; null: the first two"
LOGGER = "beside log.jsonl: tensorboard, wandb, or the import path of your own class; may be given several times"

COMMAND = Command(
    "train",
    """Trains one method on one environment, all seeds at once, and writes config.yaml, log.jsonl,
episodes.npz, summary.json, networks.safetensors and curve.png to a folder.""",
    {
        "--config": {"action": "config", "help": "YAML file with any of these options"},
        "--preset": option(str | None, None, PRESET),
        "--checkpoint_every": option(int | None, None, CHECKPOINT_EVERY),
        "--record": option(Literal["distributions"] | None, None, RECORD),
        "--record_over": option(tuple[int, int] | None, None, RECORD_OVER),
        "--logger": option(list[str] | str, [], LOGGER),
        "--out": option(str, None, "folder for the results (default: runs/NAME)"),
        "--overwrite": flag("replace the results in that folder"),
        **QUIET,
    },
    parts=tuple(PARTS),
    settings=Settings,
)

RUNS = Path("runs")
"""The folder of runs without --out."""

NOT_PART_OF_A_RUN = ("config", "preset", "out", "overwrite", "quiet")


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """What was asked for, with its classes built.

    Args:
        built: all options.
        config: config.yaml of the run.
    """

    built: Namespace
    config: str

    @property
    def settings(self) -> Settings:
        """The settings of the run."""
        return Settings(**{name: self.built[name] for name in Settings.__dataclass_fields__})

    def check(self, folder: Path) -> None:
        """Refuses what can be refused before the run is built and its folder is made."""
        _ = self.settings, self.checkpoints(folder), self.loggers(folder)

    def run(self, before: Mapping[str, Any] | None = None) -> "Run":
        """The run before its first step.

        Args:
            before: the settings of the earlier run that it continues or plays.
        """
        from uppertail.training.method import Method
        from uppertail.training.run import Run

        method = Method(**{name: self.built[name] for name in Method.__dataclass_fields__})
        return Run(self.built.env, method, self.settings, before, self.built.record, self.built.record_over)

    def checkpoints(self, folder: Path) -> "Checkpoints":
        """Where the states of a run in this folder are saved, and how often."""
        from uppertail.training.checkpoints import Checkpoints

        return Checkpoints(folder, self.built.checkpoint_every, complain)

    def loggers(self, folder: Path) -> "list[Logger]":
        """The loggers beside log.jsonl; each is ready, but has written nothing."""
        from uppertail.loggers import named

        names = [self.built.logger] if isinstance(self.built.logger, str) else self.built.logger
        return [named(name, folder) for name in dict.fromkeys(names)]

    @property
    def name(self) -> str:
        """The name of its folder without --out."""
        from uppertail.cli.running import name_of

        environment = re.sub(r"[^\w.-]+", "-", name_of(self.built.env))
        return "-".join((environment, type(self.built.distribution).__name__, type(self.built.policy).__name__))

    def folder(self) -> Path:
        """The folder that its results will go to."""
        return Path(self.built.out) if self.built.out else records.unused_folder(RUNS, self.name)

    def claim(self) -> Path:
        """Makes the folder of its results; without --out, another process may have taken `folder()` by now."""
        if not self.built.out:
            return records.claim_unused(RUNS, self.name)
        records.claim_folder(folder := Path(self.built.out), self.built.overwrite)
        return folder


def parse_request(arguments: Sequence[str]) -> Request:
    """What these arguments ask for."""
    options = COMMAND.parser()
    config = parse(options, with_preset(_one_logger_option(arguments)))
    saved = Namespace({name: value for name, value in config.items() if name not in NOT_PART_OF_A_RUN})
    return Request(instantiate(options, config), options.dump(saved, skip_unset=False))


def read_request(config: Path, beside: Sequence[str] = ()) -> Request:
    """What the config.yaml of a run asks for, but for options that replace its own."""
    try:
        return parse_request(["--config", str(config), *beside])
    except InputError as error:
        raise InputError(f"In {config}: {error}") from error


def _one_logger_option(arguments: Sequence[str]) -> list[str]:
    """`--logger A --logger+ B` as `--logger=[A, B]`, since the parser keeps only the last of two options."""
    names: list[str] = []
    others: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        option, equals, value = argument.partition("=")
        if option in ("--logger", "--logger+"):
            names += (value if equals else next(rest, "")).strip("[]").split(",")
        else:
            others.append(argument)
    if "--logger" not in {argument.partition("=")[0] for argument in arguments}:
        return [*arguments]
    listed = json.dumps([name.strip(" '\"") for name in names if name.strip()])
    return [*others, f"--logger={listed}"]


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    return begin(parse_request(arguments))


def begin(request: Request, beside: "Sequence[OnChunk]" = ()) -> int:
    """Trains what was asked for, and returns the exit code.

    Args:
        request: what was asked for.
        beside: called with the progress after each chunk.
    """
    from uppertail.cli import running
    from uppertail.training import process

    process.limit_threads(request.built.seeds)
    planned = request.folder()
    request.checkpoints(planned)
    loggers = request.loggers(planned)  # an error up to here, or in the next line, comes before any file
    run = request.run()
    folder = request.claim()
    if folder != planned:  # another process was faster
        loggers = request.loggers(folder)
    checkpoints = None if request.built.checkpoint_every is None else request.checkpoints(folder)
    with records.locked(folder):
        records.write_config(folder / records.CONFIG, request.config)
        return running.drive(run, folder, checkpoints, loggers, request.built.quiet, beside)
