"""The folder of a study: its file, a run folder for each cell, and how each cell ended."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from uppertail.errors import InputError
from uppertail.records import CONFIG, disk_errors, output_errors, write_text
from uppertail.studies import runs
from uppertail.studies.cells import Cell
from uppertail.studies.definition import Definition

STUDY, SUMMARY, CELLS, OUTCOMES = "study.yaml", "study.json", "cells", "outcomes"

State = Literal["done", "failed", "pruned", "begun", "waiting"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a cell ended.

    Args:
        state: pruned is a trial of a search that was ended early.
        message: why it failed.
        seconds: how long it took.
        sha256: the checksums of its files.
        value: how good a trial was; higher is better.
    """

    state: State
    message: str = ""
    seconds: float = 0.0
    sha256: Mapping[str, str] = dataclasses.field(default_factory=dict)
    value: float | None = None


@dataclasses.dataclass(frozen=True)
class StudyFolder:
    """The folder of a study.

    Args:
        path: the folder.
    """

    path: Path

    @property
    def definition(self) -> Path:
        """The copy of the study's file from its last call."""
        return self.path / STUDY

    def cell(self, cell: Cell) -> Path:
        """A cell's run folder."""
        return self.path / CELLS / cell.name

    def exists(self) -> bool:
        """Whether there is a study in this folder.

        Raises:
            InputError: the folder holds something else.
        """
        with output_errors(self.path):
            if not self.path.exists():
                return False
            if not self.path.is_dir() or (not self.definition.is_file() and any(self.path.iterdir())):
                raise InputError(
                    f"The output {self.path} exists and is not a study's folder (it has no {STUDY}): "
                    "choose another --out."
                )
            return self.definition.is_file()

    def make(self, definition: Definition) -> None:
        """Makes the folder, or updates the file in it.

        Raises:
            InputError: it cannot be written.
        """
        with output_errors(self.path):
            for name in (CELLS, OUTCOMES):
                (self.path / name).mkdir(parents=True, exist_ok=True)
            write_text(self.definition, definition.text)

    def write(self, document: Mapping[str, Any]) -> None:
        """Writes study.json.

        Raises:
            InputError: it cannot be written.
        """
        with disk_errors(self.path):
            write_text(self.path / SUMMARY, json.dumps(document, indent=1, allow_nan=False) + "\n")

    def outcome(self, name: str) -> Outcome | None:
        """How the cell of this name ended; None if it has not, or if that cannot be read."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            return Outcome(**json.loads(self._outcome(name).read_bytes()))
        return None

    def end(self, name: str, outcome: Outcome) -> None:
        """Keeps how a cell ended.

        Raises:
            InputError: it cannot be written.
        """
        with disk_errors(self.path):
            write_text(self._outcome(name), json.dumps(dataclasses.asdict(outcome)) + "\n")

    @contextlib.contextmanager
    def working_on(self, name: str) -> Iterator[None]:
        """Waits until no other process works on a cell, then locks it for this one.

        Raises:
            InputError: the folder cannot be written.
        """
        from filelock import FileLock

        lock = FileLock(self.path / OUTCOMES / f"{name}.lock", poll_interval=0.5)
        with disk_errors(self.path):
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def standings(self, definition: Definition) -> dict[str, Outcome]:
        """How each cell ended; one that has not is begun (it runs, or was cut off) or waits."""
        found: dict[str, Outcome] = {}
        for cell in definition.cells:
            begun = (self.cell(cell) / CONFIG).is_file()
            found[cell.name] = self.outcome(cell.name) or Outcome("begun" if begun else "waiting")
        return found

    def release(self, definition: Definition) -> Iterator[str]:
        """Lets damaged and failed cells run again; a trial of a search stays as it is.

        Yields:
            A sentence about each damaged cell.
        """
        for cell in definition.cells if definition.space is None else ():
            outcome, place = self.outcome(cell.name), self.cell(cell)
            if outcome and outcome.state == "done":
                wrong = runs.damage(place, outcome.sha256)
            else:
                unreadable = (place / CONFIG).exists() and runs.settings(place) is None
                wrong = f"{CONFIG} cannot be read" if unreadable else None
            if wrong:
                yield f"The cell {cell.name} is damaged ({wrong}), so it is done again."
            if wrong or (outcome and outcome.state == "failed"):
                with disk_errors(self.path):
                    if wrong:
                        runs.begin_again(place)
                    self._outcome(cell.name).unlink(missing_ok=True)

    def _outcome(self, name: str) -> Path:
        return self.path / OUTCOMES / f"{name}.json"
