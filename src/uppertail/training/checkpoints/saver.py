"""Saves the whole state of a run between two chunks, and goes back to it."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from uppertail.schema import MismatchError
from uppertail.training.checkpoints import file, tensors
from uppertail.training.checkpoints.file import Header, UnusableCheckpointError
from uppertail.training.checkpoints.folder import Checkpoints
from uppertail.training.drivers.base import Driver, State, World
from uppertail.training.ledger import COUNT, Ledger
from uppertail.training.loop import RunState
from uppertail.training.process import hardware

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
        asked: returns the parts and settings of the run, for JSON; a checkpoint of another run is not used.
        parts: the parts and settings themselves, by the same names.
        world: the environments; their arrays are compared with those of the checkpoint.
        driver: makes the steps.
        ledger: the host's account of the run.
        template: shapes and types of the device's state.
    """

    checkpoints: Checkpoints
    asked: Callable[[], dict[str, Any]]
    parts: dict[str, Any]
    world: World
    driver: Driver
    ledger: Ledger
    template: RunState

    def after_chunk(self, state: State, steps_before: int, over: bool) -> None:
        """Makes a checkpoint if one is due or the run is over.

        No checkpoint is made of a run that diverged, or whose environment failed: the last one before stays.
        """
        due = over or self.checkpoints.due(steps_before, self.ledger.step)
        if due and self.ledger.diverged is None and self.ledger.failed is None:
            self.save(state)

    def save(self, state: State) -> None:
        """Makes a checkpoint.

        Raises:
            InputError: it cannot be written.
        """
        header = Header(
            step=self.ledger.step,
            asked=self.asked(),
            environments=self._environments(),
            stopped=self.ledger.stopped,
            seconds=self.ledger.seconds.state(),
            hardware=hardware(),
        )
        arrays = {
            RUN: tensors.to_named(self.driver.gather(state)),
            EPISODES: self.ledger.arrays(),
            HOST: self.driver.saved(),
            RECORDED: self.driver.recorder.saved() if self.driver.recorder else {},
        }
        self.checkpoints.save(
            header, {prefix + name: array for prefix, under in arrays.items() for name, array in under.items()}
        )

    def restore(self) -> State | None:
        """Restores the ledger and returns the state of the last usable checkpoint; None if there is no checkpoint.

        Raises:
            InputError: there are checkpoints, but none is usable.
        """
        restored = self.checkpoints.newest(self._use)
        if restored is None:
            return None
        header, state, arrays = restored
        state, line = self.driver.restore(_below(HOST, arrays), state)
        if line:
            self.checkpoints.say(line)
        self.ledger.restore(_below(EPISODES, arrays), header.step, header.stopped, header.seconds)
        if self.driver.recorder:
            iteration = header.step // self.ledger.settings.steps_per_rollout
            self.driver.recorder.restore(_below(RECORDED, arrays), iteration)
        here = hardware()
        if other := [name for name in SAME_RESULTS if header.hardware.get(name) != here[name]]:
            was = ", ".join(f"{name} {header.hardware.get(name)}, here {here[name]}" for name in other)
            self.checkpoints.say(f"The run began elsewhere ({was}): it goes on, but not with the same bits as there.")
        return state

    def _use(self, path: Path) -> tuple[Header, RunState, dict[str, np.ndarray]]:
        header, arrays = file.read(path)
        asked = json.loads(json.dumps(self.asked()))
        if different := list(differences(self._taken_further(header.asked, arrays), asked)):
            raise UnusableCheckpointError(f"was made with {different[0]}")
        if header.environments != self._environments():
            raise UnusableCheckpointError("was made in environments that are built differently here")
        try:
            self.ledger.require_sound(_below(EPISODES, arrays))
            self._require_host_arrays(_below(HOST, arrays))
        except MismatchError as error:
            raise UnusableCheckpointError(f"is damaged: {error}") from error
        try:
            state = tensors.from_named(self.template, _below(RUN, arrays))
        except tensors.OtherShapesError as error:
            raise UnusableCheckpointError(f"has another shape: {error}") from error
        return header, state, arrays

    def require_usable(self) -> None:
        """Checks that there is no checkpoint, or a usable one.

        Raises:
            InputError: there are checkpoints, but none is usable.
        """
        self.checkpoints.newest(self._use)

    def _taken_further(self, before: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """The settings of a run, with the new limit of steps if only that is later: until the old limit, it is one run.

        That does not hold if the step size falls towards the limit, or if seeds had stopped at their limit of episodes.
        """
        was, now = before["settings"].get("steps"), self.ledger.settings
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
            {name: (array.dtype, array.ndim) for name, array in each.items()} for each in (arrays, self.driver.saved())
        )
        if odd := [name for name in sorted(kinds.keys() | expected.keys()) if kinds.get(name) != expected.get(name)]:
            raise MismatchError(f"its array {HOST}{odd[0]} is not that of an environment")

    def _environments(self) -> str:
        return file.digest(tensors.to_named(self.world.identity()))


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def differences(was: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Each part and setting in which two runs differ, in words; for parts of different classes, only the classes."""
    for name in sorted(was.keys() | now.keys()):
        before, after = was.get(name), now.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            kinds = before.get("name"), after.get("name")
            if kinds[0] == kinds[1]:
                yield from differences(before, after)
            else:
                yield f"{name} {kinds[0]}, not {kinds[1]}"
        elif name not in was or name not in now:
            yield f"no {name}" if name not in was else f"{name}, which is unknown here"
        elif before != after:
            yield f"{name} {before}, not {after}"
