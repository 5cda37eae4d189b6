"""The work on one cell, in this process or in a worker's."""

import dataclasses
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from uppertail.errors import InputError
from uppertail.studies.cells import LOSSES, LOST, Cell, Outcome
from uppertail.studies.folder import StudyFolder, checksums, finished_run
from uppertail.studies.search import Pruner, Space, TrialPrunedError

Train = Callable[[Cell, Path, Sequence[Callable[[Any], object]]], object]
"""Trains a cell to its end in a folder, from its last checkpoint if there is one; calls the functions with progress."""


@dataclasses.dataclass(frozen=True)
class Work:
    """Runs cells of a study; what a worker is sent."""

    folder: Path  # the study's, under a name that every worker sees
    train: Train
    space: Space | None = None  # of a search, if the cells are its trials

    def __call__(self, cell: Cell) -> Outcome:
        """Runs a cell, unless it has ended: each ends once, whoever works on it."""
        study = StudyFolder(self.folder)
        if not study.definition.is_file():
            raise InputError(
                f"there is no study in {self.folder} on this machine: use a folder that all workers share."
            )
        with study.working_on(cell.name):
            outcome = study.outcome(cell.name)
            if outcome is None:
                outcome = self._run(cell, study.cell(cell)) if study.begin(cell) <= LOSSES else LOST
                study.end(cell.name, outcome)
        return outcome

    def _run(self, cell: Cell, place: Path) -> Outcome:
        began, message = time.monotonic(), "it ended without results"
        try:
            if finished_run(place) is None:
                self.train(cell, place, [] if self.space is None else [Pruner(self.folder, cell)])
        except TrialPrunedError:
            return Outcome("pruned", seconds=time.monotonic() - began)
        except InputError as error:
            message = str(error)
        except Exception as error:  # the user's own code may raise anything
            traceback.print_exc()
            message = f"{type(error).__name__}: {error}"
        run = finished_run(place)
        if run is None:
            return Outcome("failed", message)
        if at := run.summary["diverged"]:
            step = at["step"]
            return Outcome("failed", f"the loss of seed {at['seed']} became NaN or infinite by environment step {step}")
        seconds = round(max(time.monotonic() - began, run.summary["wall_seconds"]), 3)
        value = None if self.space is None else self.space.value(run)
        if self.space is not None and value is None:
            return Outcome("failed", "it finished no episode")
        return Outcome("done", "", seconds, checksums(place), value)
