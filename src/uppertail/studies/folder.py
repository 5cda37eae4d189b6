"""The folder of a study: its file, the claims, and a run folder for each cell."""

import dataclasses
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from uppertail.errors import InputError
from uppertail.records import CONFIG, disk_errors, output_errors
from uppertail.studies import results
from uppertail.studies.cells import Cell
from uppertail.studies.claims import Claims, Standing
from uppertail.studies.definition import Definition

STUDY, SUMMARY, CLAIMS, CELLS = "study.yaml", "study.json", "claims", "cells"


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

    @property
    def cells(self) -> Path:
        """The folder of the run folders."""
        return self.path / CELLS

    def cell(self, cell: Cell) -> Path:
        """A cell's run folder."""
        return self.cells / cell.name

    def claims(self) -> Claims:
        """The claims of its cells."""
        return Claims(self.path / CLAIMS)

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
            for place in (self.cells, self.path / CLAIMS):
                place.mkdir(parents=True, exist_ok=True)
            self.write(STUDY, definition.text)

    def write(self, name: str, text: str) -> None:
        """Writes a file, whole or not at all; several machines may do so at the same time.

        Raises:
            InputError: it cannot be written.
        """
        partial = self.path / f".{name}.{platform.node()}.{os.getpid()}"
        with disk_errors(self.path):
            try:
                partial.write_text(text, encoding="utf-8")
                partial.replace(self.path / name)
            finally:
                partial.unlink(missing_ok=True)

    def standings(self, definition: Definition) -> Mapping[str, Standing]:
        """The state of each cell."""
        names = [cell.name for cell in definition.cells]
        if not (self.path / CLAIMS).is_dir():
            return {name: Standing("waiting", 0, {}, {}) for name in names}
        return self.claims().standings(names)

    def left(self, definition: Definition) -> int:
        """How many cells are neither done nor failed."""
        return sum(standing.state in ("waiting", "running") for standing in self.standings(definition).values())

    def release(self, definition: Definition) -> Iterator[str]:
        """Lets damaged and failed cells run again; a trial of a search stays as it is.

        Yields:
            A sentence about each damaged cell.
        """
        if definition.space is not None:
            return
        claims = self.claims()
        standings = claims.standings(cell.name for cell in definition.cells)
        for cell in definition.cells:
            standing = standings[cell.name]
            folder = self.cell(cell)
            wrong = None
            if standing.state == "done":
                wrong = results.damage(folder, standing.ended.get("sha256", {}))
            elif standing.state != "running" and (folder / CONFIG).exists() and results.settings(folder) is None:
                wrong = f"{CONFIG} cannot be read"
            if (wrong or standing.state == "failed") and (claim := claims.take(cell.name, standing)):
                with disk_errors(self.path):
                    if wrong:
                        results.begin_again(folder)
                    claim.end("released", after=wrong or standing.message)
            if wrong:
                yield f"The cell {cell.name} is damaged ({wrong}), so it is done again."
