"""A log at Weights & Biases; the only file that imports it."""

import math
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import yaml

from uppertail.errors import InputError, message_of
from uppertail.loggers.base import Logger, import_extra
from uppertail.records import CONFIG, WANDB_ID, write_text


@final
class WandB(Logger):
    """A run of Weights & Biases. Numbers that are not finite are left out; WANDB_MODE=offline keeps it on this machine.

    A run that goes on from a checkpoint goes on there as well. Later steps that are there already are kept, and the
    same numbers are ignored when they come again.

    Args:
        folder: where the run's id is kept, and its config.yaml is looked for.
        options: for `wandb.init`, such as `project` and `name`; the project is uppertail by default.

    Raises:
        InputError: wandb is not installed, or nobody is logged in.
    """

    def __init__(self, folder: Path | str, **options: Any) -> None:
        self._wandb: Any = import_extra("wandb", "wandb")
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
        self._run.log({name: number for name, number in numbers.items() if math.isfinite(number)}, step=step)

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
