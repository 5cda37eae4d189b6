"""The checkpoints of a run: when they are made, which are kept, and which one it continues from."""

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uppertail.defaults import Plan
from uppertail.errors import InputError
from uppertail.records import CHECKPOINT_PATTERN, CHECKPOINTS, arrays_below, digest
from uppertail.schema import settle
from uppertail.training import checkpoint
from uppertail.training.checkpoint import Header, UnusableCheckpointError
from uppertail.training.driver import State
from uppertail.training.loop import RunState
from uppertail.training.process import hardware
from uppertail.training.run import Run

KEPT = 2  # how many are kept: one is left if the other is damaged
MOST_BYTES = 10**8  # of a checkpoint that nobody asked for

RUN, EPISODES, HOST, RECORDED = "run/", "episodes/", "host/", "recorded/"
"""Beginnings of the names of arrays: of the state, the ledger, environments that Python steps, and the recorder."""

SAME_RESULTS = ("device", "machine", "cpu_cores", "uppertail", "jax")
"""Entries of `hardware` that must agree for bitwise equal results."""


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """Where and how often a run saves its whole state. A run whose folder has checkpoints continues from the last.

    Args:
        folder: the run's folder; the files are in `checkpoints` in it.
        every: environment steps of each seed between checkpoints, rounded up to whole compiled chunks; None: only when
            the run ends, is stopped or is interrupted.
        say: called with a line if a checkpoint could not be used.
        most_bytes: larger ones are not made, and one that cannot be written costs a line; None: they have any size, and
            the run ends where one cannot be written.

    Examples:
        >>> import uppertail as ut
        >>> ut.Checkpoints("runs/mine", every=100_000).place.as_posix()
        'runs/mine/checkpoints'
    """

    folder: Path | str
    every: int | None = None
    say: Callable[[str], object] = warnings.warn
    most_bytes: int | None = None

    def __post_init__(self) -> None:
        settle(self)
        if "\0" in str(self.folder):
            raise InputError(f"The folder {str(self.folder)!r} holds a NUL character: give another one.")
        if self.every is not None and self.every < 1:
            raise InputError(f"checkpoint_every is {self.every}: use 1 or more, or leave it out for one at the end.")

    @property
    def place(self) -> Path:
        return Path(self.folder) / CHECKPOINTS

    def files(self) -> list[Path]:
        """The files of all checkpoints, the last one first."""
        files = [path for path in self.place.glob(CHECKPOINT_PATTERN) if path.stem.partition("-")[2].isdecimal()]
        return sorted(files, key=_step, reverse=True)

    def plan(self) -> Plan | None:
        """The plan of the run that made the last good checkpoint; None if there is none."""
        for path in self.files():
            with contextlib.suppress(UnusableCheckpointError):
                return checkpoint.read(path)[0].plan
        return None

    def save(self, header: Header, arrays: Mapping[str, np.ndarray]) -> None:
        """Makes a checkpoint, and keeps the one before it; if it cannot be written, earlier ones stay as they are."""
        if self.most_bytes is not None and sum(each.nbytes for each in arrays.values()) > self.most_bytes:
            return
        path = self.place / CHECKPOINT_PATTERN.replace("*", f"{header.step:09d}")
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            for partial in self.place.glob(f".{CHECKPOINT_PATTERN}"):  # left by a process that was killed while writing
                partial.unlink()
            checkpoint.write(path, header, arrays)
            for old in [one for one in self.files() if _step(one) <= header.step][KEPT:]:
                old.unlink()
        except OSError as error:
            wrong = f"The checkpoint {path} cannot be written ({error.strerror})"
            if self.most_bytes is not None:
                self.say(f"{wrong}: results are kept, but no run can go on from this end.")
                return
            good = self.files()
            last = f"the last good one is {good[0]}" if good else "there is none before it"
            raise InputError(
                f"{wrong}, and {last}: make room there or make it writable, and resume the run."
            ) from error


def _step(path: Path) -> int:
    return int(path.stem.partition("-")[2])


@dataclasses.dataclass(frozen=True, eq=False)
class Saver:
    """Saves the state of a run, and restores it; a checkpoint of another run is not used."""

    checkpoints: Checkpoints
    run: Run

    def after_chunk(self, state: State, steps_before: int, over: bool) -> None:
        """Makes a checkpoint if one is due or the run is over, but none of a run that diverged or failed."""
        ledger, every = self.run.ledger, self.checkpoints.every
        due = over or (every is not None and ledger.step // every > steps_before // every)
        if due and ledger.diverged is None and ledger.failed is None:
            self.save(state)

    def save(self, state: State) -> None:
        run, ledger = self.run, self.run.ledger
        header = Header(
            ledger.step, run.asked(), self._environments(), ledger.stopped, ledger.programs.state(), hardware()
        )
        arrays = {
            RUN: checkpoint.to_named(run.driver.gather(state)),
            EPISODES: ledger.arrays(),
            HOST: run.driver.saved(),
            RECORDED: run.recorder.saved() if run.recorder else {},
        }
        named = {prefix + name: array for prefix, under in arrays.items() for name, array in under.items()}
        self.checkpoints.save(header, named)

    def restore(self) -> State | None:
        """Restores the ledger and returns the state of the last usable checkpoint; None if there is no checkpoint."""
        restored = self.newest()
        if restored is None:
            return None
        (header, state, arrays), run = restored, self.run
        state, line = run.driver.restore(arrays_below(HOST, arrays), state)
        if line:
            self.checkpoints.say(line)
        run.ledger.restore(arrays_below(EPISODES, arrays), header.step, header.stopped, header.seconds)
        if run.recorder:
            run.recorder.restore(arrays_below(RECORDED, arrays))
        here = hardware()
        if other := [name for name in SAME_RESULTS if header.hardware.get(name) != here[name]]:
            was = ", ".join(f"{name} {header.hardware.get(name)}, here {here[name]}" for name in other)
            self.checkpoints.say(f"The run began elsewhere ({was}): it continues here, but its bits may differ.")
        return state

    def newest(self) -> tuple[Header, RunState, dict[str, np.ndarray]] | None:
        """Header, state and arrays of the last usable checkpoint; None if there is none at all."""
        place, refused, remedy = self.checkpoints.place, list[str](), None
        for path in self.checkpoints.files():
            try:
                header, arrays = checkpoint.read(path)
                dataclasses.replace(header, asked=self._with_later_limit(header.asked, arrays)).require_run(
                    self.run.asked(), self._environments()
                )
                state = checkpoint.from_named(self.run.driver.template, arrays_below(RUN, arrays))
            except UnusableCheckpointError as error:
                refused.append(f"{path.name} {error}")
                remedy = error.remedy
                continue
            if refused:
                because = "; ".join(refused)
                self.checkpoints.say(f"In {place}, {because}: the run continues from {path.name} instead.")
            return header, state, arrays
        if refused:
            raise InputError(
                f"No checkpoint in {place} can be used ({'; '.join(refused)}): "
                f"{remedy or 'restore one from a copy, or train again in another folder'}."
            )
        return None

    def _with_later_limit(self, before: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Settings with the new limit of steps, if nothing else changed: up to the old one, the runs are identical.

        They are not if the step size falls towards the limit, or if a seed had stopped at its limit of episodes.
        """
        was, now = before["settings"]["steps"], self.run.settings
        longer = now.steps is not None and was is not None and was < now.steps
        most = arrays[f"{EPISODES}return"].shape[1]  # of the seed that has most
        if not longer or now.learning_rate_end is not None or most >= now.most_episodes:
            return before
        return {**before, "settings": {**before["settings"], "steps": now.steps}}

    def _environments(self) -> str:
        return digest(checkpoint.to_named(self.run.driver.identity))
