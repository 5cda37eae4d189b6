"""The claims of all cells of a study: the state of each cell, and whether it may be claimed."""

import collections
import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from uppertail.errors import InputError
from uppertail.locks import held
from uppertail.studies.claim import BEAT, Claim, end_process, lines, machine

PATIENCE = 120.0
"""Seconds without a sign of life after which a process on another machine is taken for dead; above the minute for which
a network filesystem may show old contents."""
LOSSES = 3
"""A cell whose process died this many times in a row without a message counts as failed."""
LOST = f"its process ended {LOSSES} times without a message, killed or out of memory"

State = Literal["waiting", "running", "done", "failed"]


@dataclasses.dataclass(frozen=True)
class Standing:
    """The state of a cell.

    Args:
        state: waiting, if it may be claimed.
        number: number of its newest claim; 0 if it has none.
        began: first line of that claim.
        ended: its second line; empty if it has not ended.
    """

    state: State
    number: int
    began: Mapping[str, Any]
    ended: Mapping[str, Any]

    @property
    def message(self) -> str:
        """Why it failed."""
        return str(self.ended.get("message", LOST))


class Claims:
    """The folder of claims, as one process uses it.

    Args:
        folder: the folder.
        beat: seconds between two signs of life of this process's claims.
        patience: seconds without one after which a process on another machine is taken for dead.
        lost: what to do if this process was taken for dead.
    """

    def __init__(
        self,
        folder: Path,
        beat: float = BEAT,
        patience: float = PATIENCE,
        lost: Callable[[Path], object] = end_process,
    ) -> None:
        self.folder, self._beat, self._patience, self._lost = folder, beat, patience, lost
        self._ended: dict[Path, list[dict[str, Any]]] = {}
        self._signs: dict[Path, tuple[int, float]] = {}

    def standings(self, cells: Iterable[str]) -> dict[str, Standing]:
        """The state of each of these cells."""
        newest: dict[str, int] = collections.defaultdict(int)
        with os.scandir(self.folder) as entries:
            for entry in entries:
                cell, _, number = entry.name.removesuffix(".jsonl").rpartition(".")
                if entry.name.endswith(".jsonl") and number.isdecimal():
                    newest[cell] = max(newest[cell], int(number))
        return {cell: self._standing(cell, newest[cell]) for cell in cells}

    def begins(self, cell: str) -> list[list[dict[str, Any]]]:
        """The lines of every claim of a cell, in order."""
        standing = self.standings([cell])[cell]
        return [self._lines(self._path(cell, number)) for number in range(1, standing.number + 1)]

    def claimed_by(self, process: int) -> bool:
        """Whether a process of this machine has claimed a cell."""
        found = (self._lines(Path(entry.path)) for entry in os.scandir(self.folder))
        return any(line[0]["pid"] == process and line[0]["machine"] == machine() for line in found if line)

    def take(self, cell: str, standing: Standing) -> Claim | None:
        """Claims a cell that had this standing; None if another process did so first.

        Raises:
            InputError: the claim cannot be written.
        """
        path, after = (self._path(cell, standing.number + step) for step in (1, 2))
        try:
            return Claim.make(path, after, self._beat, self._lost)
        except FileExistsError:
            return None
        except OSError as error:
            raise InputError(
                f"The study's {self.folder} cannot be written ({error.strerror}): what is done is kept; "
                "fix that, then call the same command again."
            ) from error

    def _standing(self, cell: str, number: int) -> Standing:
        if not number:
            return Standing("waiting", 0, {}, {})
        path = self._path(cell, number)
        began, ended = self._halves(path)
        if not ended:
            if self._alive(path, began):
                return Standing("running", number, began, {})
            began, ended = self._halves(path)  # it may have ended before it released its lock
        if ended:
            state = ended["outcome"]
            return Standing("waiting" if state == "released" else state, number, began, ended)
        last = range(number, number - LOSSES, -1)
        given_up = number >= LOSSES and not any(self._halves(self._path(cell, each))[1] for each in last)
        return Standing("failed" if given_up else "waiting", number, began, {})

    def _alive(self, path: Path, began: Mapping[str, Any]) -> bool:
        """Whether the owner of a claim lives: by its lock on its own machine, elsewhere by its signs of life."""
        if began.get("machine") == machine() and (locked := held(path)) is not None:
            return locked
        with path.open("rb") as file:  # opening the file makes a network filesystem ask again
            sign = os.fstat(file.fileno()).st_mtime_ns
        last, since = self._signs.get(path, (-1, 0.0))
        if sign != last:
            self._signs[path] = (sign, time.monotonic())
            return True
        return time.monotonic() - since < self._patience

    def _halves(self, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        began, ended, *_ = (*self._lines(path), {}, {})
        return began, ended

    def _lines(self, path: Path) -> list[dict[str, Any]]:
        if path not in self._ended:
            found = lines(path.read_bytes())
            if len(found) < 2:
                return found
            self._ended[path] = found
        return self._ended[path]

    def _path(self, cell: str, number: int) -> Path:
        return self.folder / f"{cell}.{number:04d}.jsonl"
