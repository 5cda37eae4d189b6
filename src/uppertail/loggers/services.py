"""Logs that other programs show: TensorBoard, and Weights & Biases. Only this file imports their packages."""

import importlib
import importlib.util
import math
import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, final

import yaml

from uppertail.errors import InputError, message_of
from uppertail.loggers.base import Logger
from uppertail.records import CONFIG, WANDB_ID, write_text


@final
class TensorBoard(Logger):
    """Scalars in event files: `tensorboard --logdir FOLDER`. Numbers that are not finite are left out.

    A run that goes on begins a file of its own, which says that later steps in the files before it do not count.
    InputError if tensorboardX is not installed.
    """

    def __init__(self, folder: Path | str) -> None:
        _import("tensorboardX", "tensorboard")
        self.folder = Path(folder)
        # SummaryWriter's own writer, without its queue, which a killed process would lose
        self._files: Any = importlib.import_module("tensorboardX.event_file_writer")
        self._events: Any = importlib.import_module("tensorboardX.proto.event_pb2")
        self._summaries: Any = importlib.import_module("tensorboardX.proto.summary_pb2")
        self._writer: Any = None

    def begin(self, step: int) -> None:
        self.close()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._writer = self._files.EventsWriter(str(self.folder / "events"), f".{step:012d}")
        start = self._events.SessionLog(status=self._events.SessionLog.START)
        self._add(step + 1, session_log=start)  # from this step on, earlier files do not count

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        value = self._summaries.Summary.Value
        known = [value(tag=name, simple_value=number) for name, number in _finite(numbers).items()]
        self._add(step, summary=self._summaries.Summary(value=known))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _add(self, step: int, **content: Any) -> None:
        self._writer.write_event(self._events.Event(wall_time=time.time(), step=step, **content))
        self._writer.flush()


@final
class WandB(Logger):
    """A run of Weights & Biases. Numbers that are not finite are left out; WANDB_MODE=offline keeps it on this machine.

    A run that goes on from a checkpoint goes on there as well. Later steps that are there already are kept, and the
    same numbers are ignored when they come again. The folder is the run's, where its id is kept; `wandb.init` gets the
    options, with the project uppertail by default. InputError if wandb is not installed, or nobody is logged in.
    """

    def __init__(self, folder: Path | str, **options: Any) -> None:
        self._wandb: Any = _import("wandb", "wandb")
        self.folder, self._run = Path(folder), None
        self.options = {"project": os.environ.get("WANDB_PROJECT", "uppertail"), **options}
        if options.get("mode", "online") == "online":
            self._explain_errors(self._wandb.login)  # log in now, not in the middle of a run

    def begin(self, step: int) -> None:
        self.close()
        known, config = self.folder / WANDB_ID, self.folder / CONFIG
        if step == 0 or not known.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(known, f"{uuid.uuid4().hex[:8]}\n")
        settings = {"config": yaml.safe_load(config.read_text(encoding="utf-8"))} if config.is_file() else {}
        name = known.read_text(encoding="utf-8").strip()
        self._run = self._explain_errors(self._wandb.init, id=name, resume="allow", **settings, **self.options)

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        assert self._run is not None
        self._run.log(_finite(numbers), step=step)

    def close(self) -> None:
        if self._run is not None:
            self._run.finish()
            self._run = None

    def _explain_errors(self, ask: Any, **arguments: Any) -> Any:
        try:
            return ask(**arguments)
        except self._wandb.errors.Error as error:
            raise InputError(
                f"Weights & Biases cannot be used ({message_of(error)}): call `wandb login`, or set WANDB_MODE=offline."
            ) from error


def _import(package: str, logger: str) -> ModuleType:
    """Imports the package of a logger, or says how to install it."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:  # a folder of that name beside the program is not the package
        raise InputError(f"The logger {logger} needs {package}: install it with `pip install {package}`.")
    return importlib.import_module(package)


def _finite(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: number for name, number in numbers.items() if math.isfinite(number)}
