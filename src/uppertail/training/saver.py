"""Saves the whole state of a run between two chunks, and goes back to it."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from uppertail.schema import MismatchError
from uppertail.training import checkpoint
from uppertail.training.checkpoint import Header, UnusableCheckpointError
from uppertail.training.checkpoints import Checkpoints
from uppertail.training.drivers.base import State
from uppertail.training.ledger import COUNT
from uppertail.training.loop import RunState
from uppertail.training.process import hardware
from uppertail.training.run import Run

RUN, EPISODES, HOST, RECORDED = "run/", "episodes/", "host/", "recorded/"
"""Beginnings of the names of arrays: the device's, the ledger's, those of environments that Python steps, and those of
the recorder."""

SAME_RESULTS = ("device", "machine", "cpu_cores", "uppertail", "jax")
"""Entries of `hardware` that must agree for bitwise equal results."""


@dataclasses.dataclass(frozen=True, eq=False)
class Saver:
    """Saves the state of a run, and restores it.

    Args:
        checkpoints: where checkpoints are, and how often one is due.
        run: the run; a checkpoint of another one is not used.
    """

    checkpoints: Checkpoints
    run: Run

    def after_chunk(self, state: State, steps_before: int, over: bool) -> None:
        """Makes a checkpoint if one is due or the run is over.

        No checkpoint is made of a run that diverged, or whose environment failed: the last one before stays.
        """
        ledger = self.run.ledger
        due = over or self.checkpoints.due(steps_before, ledger.step)
        if due and ledger.diverged is None and ledger.failed is None:
            self.save(state)

    def save(self, state: State) -> None:
        """Makes a checkpoint.

        Raises:
            InputError: it cannot be written.
        """
        ledger, driver = self.run.ledger, self.run.driver
        header = Header(
            step=ledger.step,
            asked=self.run.asked(),
            environments=self._environments(),
            stopped=ledger.stopped,
            seconds=ledger.seconds.state(),
            hardware=hardware(),
        )
        arrays = {
            RUN: checkpoint.to_named(driver.gather(state)),
            EPISODES: ledger.arrays(),
            HOST: driver.saved(),
            RECORDED: self.run.recorder.saved() if self.run.recorder else {},
        }
        named = {prefix + name: array for prefix, under in arrays.items() for name, array in under.items()}
        self.checkpoints.save(header, named)

    def restore(self) -> State | None:
        """Restores the ledger and returns the state of the last usable checkpoint; None if there is no checkpoint.

        Raises:
            InputError: there are checkpoints, but none is usable.
        """
        restored = self.checkpoints.newest(self._use)
        if restored is None:
            return None
        (header, state, arrays), ledger, driver = restored, self.run.ledger, self.run.driver
        state, line = driver.restore(_below(HOST, arrays), state)
        if line:
            self.checkpoints.say(line)
        ledger.restore(_below(EPISODES, arrays), header.step, header.stopped, header.seconds)
        if self.run.recorder:
            self.run.recorder.restore(_below(RECORDED, arrays), ledger.iteration)
        here = hardware()
        if other := [name for name in SAME_RESULTS if header.hardware.get(name) != here[name]]:
            was = ", ".join(f"{name} {header.hardware.get(name)}, here {here[name]}" for name in other)
            self.checkpoints.say(f"The run began elsewhere ({was}): it continues here, but its bits may differ.")
        return state

    def require_usable(self) -> None:
        """Checks that there is no checkpoint, or a usable one.

        Raises:
            InputError: there are checkpoints, but none is usable.
        """
        self.checkpoints.newest(self._use)

    def _use(self, path: Path) -> tuple[Header, RunState, dict[str, np.ndarray]]:
        """Header, state and arrays of a checkpoint.

        Raises:
            UnusableCheckpointError: it is damaged, or of another run.
        """
        header, arrays = checkpoint.read(path)
        continued = dataclasses.replace(header, asked=self._with_later_limit(header.asked, arrays))
        continued.require_run(self.run.asked(), self._environments())
        try:
            self.run.ledger.require_sound(_below(EPISODES, arrays))
            self._require_host_arrays(_below(HOST, arrays))
        except MismatchError as error:
            raise UnusableCheckpointError(f"is damaged: {error}") from error
        return header, checkpoint.from_named(self.run.template, _below(RUN, arrays)), arrays

    def _with_later_limit(self, before: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """Parts and settings, with the new limit of steps if only that is later: up to the old one, both runs are one.

        That does not hold if the step size falls towards the limit, or if seeds had stopped at their limit of episodes.
        """
        was, now = before["settings"].get("steps"), self.run.settings
        complete = (arrays.get(f"{EPISODES}{COUNT}", np.array(now.episodes)) >= now.episodes).any()
        longer = now.steps is not None and isinstance(was, int) and was < now.steps
        if not longer or now.learning_rate_end is not None or complete:
            return before
        return {**before, "settings": {**before["settings"], "steps": now.steps}}

    def _require_host_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Refuses arrays that do not fit the environments that Python steps.

        Raises:
            MismatchError: one is missing, too many, or of another kind.
        """
        kinds, expected = (
            {name: (array.dtype, array.ndim) for name, array in each.items()}
            for each in (arrays, self.run.driver.saved())
        )
        if odd := [name for name in sorted(kinds.keys() | expected.keys()) if kinds.get(name) != expected.get(name)]:
            raise MismatchError(f"its array {HOST}{odd[0]} is not that of an environment")

    def _environments(self) -> str:
        return checkpoint.digest(checkpoint.to_named(self.run.driver.identity()))


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
