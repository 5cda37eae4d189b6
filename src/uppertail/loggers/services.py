"""Loggers by their names: TensorBoard, Weights & Biases, or a class of one's own. Only it imports their packages."""

import importlib
import math
import os
import pydoc
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

import yaml

from uppertail.errors import InputError, import_package, message_of, nearest
from uppertail.loggers.base import Logger
from uppertail.records import CONFIG, TENSORBOARD, WANDB_ID, write_text


@final
class TensorBoard(Logger):
    """Scalars in event files: `tensorboard --logdir FOLDER`. Numbers that are not finite are left out.

    A run that goes on begins another file, which says that later steps in the files before it do not count.
    """

    def __init__(self, folder: Path | str) -> None:
        import_package("tensorboardX", "The logger tensorboard")
        self.folder = Path(folder)
        # SummaryWriter's own writer, without its queue, which a killed process would lose
        self._files: Any = importlib.import_module("tensorboardX.event_file_writer")
        self._proto: Any = importlib.import_module("tensorboardX.proto.event_pb2")
        self._writer: Any = None

    def begin(self, step: int) -> None:
        self.close()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._writer = self._files.EventsWriter(str(self.folder / "events"), f".{step:012d}")
        # from this step on, earlier files do not count
        self._add(step + 1, session_log=self._proto.SessionLog(status=self._proto.SessionLog.START))

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        values = [{"tag": name, "simple_value": number} for name, number in _finite(numbers).items()]
        self._add(step, summary={"value": values})

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None

    def _add(self, step: int, **content: Any) -> None:
        self._writer.write_event(self._proto.Event(wall_time=time.time(), step=step, **content))
        self._writer.flush()


@final
class WandB(Logger):
    """A run of Weights & Biases. Numbers that are not finite are left out; WANDB_MODE=offline keeps it on this machine.

    A run that goes on from a checkpoint goes on there, too; steps that are there already are kept. The folder is the
    run's, where its id is kept; `wandb.init` gets the options. InputError if nobody is logged in.
    """

    def __init__(self, folder: Path | str, **options: Any) -> None:
        self._wandb: Any = import_package("wandb", "The logger wandb")
        self.folder = Path(folder)
        self._run: Any = None
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


def _finite(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


LOGGERS: dict[str, Callable[[Path], Logger]] = {
    "tensorboard": lambda folder: TensorBoard(folder / TENSORBOARD),
    "wandb": WandB,
}


def named(name: str, folder: Path) -> Logger:
    """The logger of this name, or of the class at this import path, for the run in a folder; nothing is written yet.

    Raises:
        InputError: there is none, or its package is not installed.

    Examples:
        >>> from pathlib import Path
        >>> import uppertail as ut
        >>> isinstance(ut.loggers.named("tensorboard", Path("runs/mine")), ut.loggers.Logger)
        True
    """
    try:
        if name in LOGGERS:
            return LOGGERS[name](folder)
        kind = pydoc.locate(name) if "." in name else None
        if isinstance(kind, type) and issubclass(kind, Logger):
            return kind(folder)  # pyright: ignore[reportCallIssue]
    except pydoc.ErrorDuringImport as error:
        raise InputError(f"The logger {name} cannot be imported ({error.value}): correct it there.") from error
    except TypeError as error:  # an abstract class, or other arguments
        raise InputError(f"The logger {name} cannot be made with the run's folder ({message_of(error)}).") from error
    raise InputError(
        f"Unknown logger {name!r}: use {', '.join(LOGGERS)}, or the import path of a class that is an "
        f"uppertail.loggers.Logger and takes the run's folder.{nearest(name, LOGGERS, 1)}"
    )
