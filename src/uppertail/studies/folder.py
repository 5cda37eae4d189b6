"""The folder of a study: its file, a run folder for each cell, and how each cell ended."""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from uppertail import records
from uppertail.errors import InputError
from uppertail.records import CONFIG, RunFolder, output_errors, write_json, write_text
from uppertail.records.run_folder import title_of
from uppertail.studies.cells import WITHOUT_EFFECT, Cell, Outcome
from uppertail.studies.definition import Definition

STUDY, SUMMARY, CELLS, OUTCOMES = "study.yaml", "study.json", "cells", "outcomes"
CHECKSUMMED = (CONFIG, records.EPISODES, records.SUMMARY, records.NETWORKS)  # the files of a cell that is done


def finished_run(place: Path) -> RunFolder | None:
    """The run in a folder, if it came to its end and its files are whole."""
    run = RunFolder(place)
    return run if run.finished else None


def effective(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that change a run's results."""
    return {name: value for name, value in options.items() if name not in WITHOUT_EFFECT}


def settings_of(place: Path) -> dict[str, Any] | None:
    """The settings of a run that change its results; None without a config.yaml, or if it cannot be read."""
    with contextlib.suppress(InputError):
        return effective(RunFolder(place).config or {}) or None
    return None


def checkpoints(place: Path) -> list[Path]:
    """The checkpoints of a run."""
    return list((place / records.CHECKPOINTS).glob(records.CHECKPOINT_PATTERN))


def checksums(place: Path) -> dict[str, str]:
    """SHA-256 of each of a finished run's files, by name."""
    return {name: hashlib.sha256((place / name).read_bytes()).hexdigest() for name in CHECKSUMMED}


@dataclasses.dataclass(frozen=True)
class StudyFolder:
    """The folder of a study."""

    path: Path

    @property
    def definition(self) -> Path:
        """The copy of the study's file from its last call."""
        return self.path / STUDY

    def cell(self, cell: Cell) -> Path:
        """A cell's run folder."""
        return self.path / CELLS / cell.name

    def exists(self) -> bool:
        """Whether there is a study in this folder; a folder that holds something else is refused."""
        with output_errors(self.path):
            if not self.path.exists():
                return False
            if not self.path.is_dir() or (not self.definition.is_file() and any(self.path.iterdir())):
                raise InputError(f"The output {self.path} exists and is not a study's folder: choose another --out.")
            return self.definition.is_file()

    def make(self, definition: Definition) -> None:
        """Makes the folder, or updates the file in it; no cell has been begun in this call of the command."""
        with output_errors(self.path):
            for name in (CELLS, OUTCOMES):
                (self.path / name).mkdir(parents=True, exist_ok=True)
            for tries in (self.path / OUTCOMES).glob("*.tries"):
                tries.unlink(missing_ok=True)
            write_text(self.definition, definition.text)

    def outcome(self, name: str) -> Outcome | None:
        """How the cell of this name ended; None if it has not ended, or its file cannot be read."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            return Outcome(**json.loads(self._file(name, "json").read_bytes()))
        return None

    @contextlib.contextmanager
    def working_on(self, name: str) -> Iterator[None]:
        """Waits until no other process works on a cell, then locks it for this one."""
        with contextlib.ExitStack() as stack:
            with output_errors(self.path):
                stack.enter_context(FileLock(self._file(name, "lock"), poll_interval=0.5))
            yield

    def begin(self, cell: Cell) -> int:
        """How many processes have begun a locked cell since its last checkpoint: all but this one died at it."""
        path = self._file(cell.name, "tries")
        last = max((file.name for file in checkpoints(self.cell(cell))), default="")
        with output_errors(self.path):
            before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            tries = [*(each for each in before if each == last), last]  # at the same checkpoint
            write_text(path, "".join(f"{each}\n" for each in tries))
            return len(tries)

    def end(self, name: str, outcome: Outcome) -> None:
        """Writes down how a cell ended."""
        with output_errors(self.path):
            write_json(self._file(name, "json"), dataclasses.asdict(outcome))
            self._file(name, "tries").unlink(missing_ok=True)

    def outcomes(self, definition: Definition) -> dict[str, Outcome]:
        """The outcome of each cell; one that has not ended is begun (it runs, or was interrupted) or waiting."""
        return {
            cell.name: self.outcome(cell.name)
            or Outcome("begun" if (self.cell(cell) / CONFIG).is_file() else "waiting")
            for cell in definition.cells
        }

    def release(self, definition: Definition) -> Iterator[str]:
        """Lets damaged and failed cells run again, except trials; yields a sentence about each damaged cell."""
        for cell in definition.cells if definition.space is None else ():
            outcome, place = self.outcome(cell.name), self.cell(cell)
            wrong = _damage(place, outcome)
            if wrong:
                yield f"The cell {title_of(cell.name)} is damaged ({wrong}), so it is done again."
            if wrong or (outcome and outcome.state == "failed"):
                with output_errors(self.path):
                    if wrong:  # its checkpoints go, and the file that makes it look finished
                        for path in (place / records.SUMMARY, *checkpoints(place)):
                            path.unlink(missing_ok=True)
                    self._file(cell.name, "json").unlink(missing_ok=True)

    def _file(self, name: str, kind: str) -> Path:
        return self.path / OUTCOMES / f"{name}.{kind}"


def _damage(place: Path, outcome: Outcome | None) -> str | None:
    """What is wrong with the files of a cell, in words; None if nothing is."""
    if not outcome or outcome.state != "done":
        unreadable = (place / CONFIG).exists() and settings_of(place) is None
        return f"{CONFIG} cannot be read" if unreadable else None
    if missing := [name for name in CHECKSUMMED if not (place / name).is_file()]:
        return f"{missing[0]} is missing"
    if changed := [name for name, found in checksums(place).items() if outcome.sha256.get(name, found) != found]:
        return f"{changed[0]} is not as it was written"
    return None if finished_run(place) else "its results cannot be read"
