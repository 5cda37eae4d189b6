"""The checkpoints of a run: when they are made, which are kept, and which one a run continues from."""

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from uppertail.errors import InputError
from uppertail.records import CHECKPOINT_PATTERN, CHECKPOINTS
from uppertail.schema import settle
from uppertail.training import checkpoint
from uppertail.training.checkpoint import Header, UnusableCheckpointError

KEPT = 2
"""How many are kept: one is left if the other is damaged."""

Restored = TypeVar("Restored")


def warn(line: str) -> None:
    """Gives a line as a Python warning."""
    warnings.warn(line, stacklevel=2)


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """Where and how often a run saves its whole state. A run whose folder has checkpoints continues from the last.

    Args:
        folder: the run's folder; the files are in `checkpoints` in it.
        every: environment steps of each seed between checkpoints, rounded up to whole compiled chunks; None: only when
            the run ends, is stopped or is interrupted.
        say: called with a line if a checkpoint could not be used.

    Examples:
        >>> import uppertail as ut
        >>> ut.Checkpoints("runs/mine", every=100_000).place.as_posix()
        'runs/mine/checkpoints'
    """

    folder: Path | str
    every: int | None = None
    say: Callable[[str], object] = warn

    def __post_init__(self) -> None:
        settle(self)
        if "\0" in str(self.folder):
            raise InputError(f"The folder {str(self.folder)!r} holds a NUL character: give another one.")
        if self.every is not None and self.every < 1:
            raise InputError(f"checkpoint_every is {self.every}: use 1 or more, or leave it out for no checkpoints.")

    def make_folder(self) -> None:
        """Makes the run's folder, if it does not exist.

        Raises:
            InputError: it cannot be made.
        """
        try:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"The folder {self.folder} cannot be made ({error.strerror}): give the checkpoints another one."
            ) from error

    @property
    def place(self) -> Path:
        """The folder of the files."""
        return Path(self.folder) / CHECKPOINTS

    def files(self) -> list[Path]:
        """The files of all checkpoints, the last one first."""
        files = [path for path in self.place.glob(CHECKPOINT_PATTERN) if _number(path).isdecimal()]
        return sorted(files, key=_step, reverse=True)

    def asked(self) -> dict[str, Any] | None:
        """The parts and settings of the run that made the last good checkpoint; None if there is none."""
        for path in self.files():
            with contextlib.suppress(UnusableCheckpointError):
                return checkpoint.read(path)[0].asked
        return None

    def due(self, before: int, now: int) -> bool:
        """Whether a checkpoint is due, given the number of steps before a chunk and after it."""
        return self.every is not None and now // self.every > before // self.every

    def save(self, header: Header, arrays: Mapping[str, np.ndarray]) -> None:
        """Makes a checkpoint, and keeps the one before it.

        Raises:
            InputError: it cannot be written; earlier checkpoints stay as they are.
        """
        path = self.place / CHECKPOINT_PATTERN.replace("*", f"{header.step:09d}")
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            for partial in self.place.glob(f".{CHECKPOINT_PATTERN}"):  # left by a process that was killed while writing
                partial.unlink()
            checkpoint.write(path, header, arrays)
            for old in [one for one in self.files() if _step(one) <= header.step][KEPT:]:
                old.unlink()
        except OSError as error:
            good = self.files()
            last = f"the last good one is {good[0]}" if good else "there is none before it"
            raise InputError(
                f"The checkpoint {path} cannot be written ({error.strerror}), and {last}: "
                "make room there or make it writable, and resume the run."
            ) from error

    def newest(self, use: Callable[[Path], Restored]) -> Restored | None:
        """The result of `use` for the last usable checkpoint; None if there is no checkpoint.

        Args:
            use: reads a checkpoint; raises UnusableCheckpointError for one that is not usable.

        Raises:
            InputError: there are checkpoints, but none is usable.
        """
        refused: list[str] = []
        for path in self.files():
            try:
                restored = use(path)
            except UnusableCheckpointError as error:
                refused.append(f"{path.name} {error}")
                continue
            if refused:
                self.say(f"In {self.place}, {'; '.join(refused)}: the run continues from {path.name} instead.")
            return restored
        if refused:
            raise InputError(
                f"No checkpoint in {self.place} can be used ({'; '.join(refused)}): "
                "restore it or the run's settings from a copy, or start the run again in another folder."
            )
        return None


def _number(path: Path) -> str:
    return path.stem.removeprefix("step-")


def _step(path: Path) -> int:
    return int(_number(path))
