"""Saves the whole state of a run between two chunks, and goes back to it."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from uppertail.records import older
from uppertail.schema import MismatchError
from uppertail.training.checkpoints import file, tensors
from uppertail.training.checkpoints.file import Header, UnusableCheckpointError
from uppertail.training.checkpoints.folder import Checkpoints
from uppertail.training.drivers.base import Driver, State, World
from uppertail.training.ledger import COUNT, Ledger
from uppertail.training.loop import RunState
from uppertail.training.process.hardware import hardware

RUN, EPISODES, HOST, RECORDED = "run/", "episodes/", "host/", "recorded/"
"""What the names begin with of the device's arrays, of the ledger's, of those of environments that Python steps, and of
what was recorded until then."""

SAME_RESULTS = ("device", "machine", "cpu_cores", "uppertail", "jax")
"""Entries of `hardware` that must agree for the same run to give the same bits."""


@dataclasses.dataclass(frozen=True, eq=False)
class Saver:
    """Between a run and its checkpoints.

    Args:
        checkpoints: where they are, and how often one is due.
        asked: says what was asked of the run, as JSON knows it; a checkpoint of another run is not used.
        parts: the parts and settings that were asked for, by the names that `asked` has.
        world: the environments, which are built again, and compared.
        driver: what makes the steps.
        ledger: what the host keeps.
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

        A run that diverged has nothing to go on from; one whose environment failed goes on from the last that it has.
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
            RUN: tensors.named(self.driver.gather(state)),
            EPISODES: self.ledger.arrays(),
            HOST: self.driver.saved(),
            RECORDED: self.driver.recorder.saved() if self.driver.recorder else {},
        }
        self.checkpoints.save(
            header, {prefix + name: array for prefix, under in arrays.items() for name, array in under.items()}
        )

    def restore(self) -> State | None:
        """The state of the last usable checkpoint, the ledger's put back; None if there is no checkpoint.

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
            iteration = header.step // self.ledger.settings.rollout_steps
            self.driver.recorder.restore(_below(RECORDED, arrays), iteration)
        here = hardware()
        if other := [name for name in SAME_RESULTS if header.hardware.get(name) != here[name]]:
            was = ", ".join(f"{name} {header.hardware.get(name)}, here {here[name]}" for name in other)
            self.checkpoints.say(f"The run was on other ground ({was}): it goes on, but not bit for bit as it would.")
        return state

    def _use(self, path: Path) -> tuple[Header, RunState, dict[str, np.ndarray]]:
        header, arrays = file.read(path)
        asked = json.loads(json.dumps(self.asked()))
        before = older.completed(header.asked, self.parts)
        if different := list(differences(self._taken_further(before, arrays), asked)):
            raise UnusableCheckpointError(f"was made with {different[0]}")
        if header.environments != self._environments():
            raise UnusableCheckpointError("was made in environments that are built otherwise here")
        try:
            self.ledger.require_sound(_below(EPISODES, arrays))
            self._require_host_arrays(_below(HOST, arrays))
        except MismatchError as error:
            raise UnusableCheckpointError(f"is damaged: {error}") from error
        try:
            run = {older.renamed(name): array for name, array in _below(RUN, arrays).items()}
            state = tensors.like(self.template, run)
        except tensors.OtherShapesError as error:
            raise UnusableCheckpointError(f"has another shape: {error}") from error
        return header, state, arrays

    def require_usable(self) -> None:
        """Does nothing if there is a checkpoint to go on from.

        Raises:
            InputError: there are some, but none is usable.
        """
        self.checkpoints.newest(self._use)

    def _taken_further(self, before: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """What was asked of a run, with today's limit of steps if that is merely later: until then, it is the same run.

        Not so where the step size falls towards that limit, and where seeds ended by their episodes and stood still.
        """
        was, now = before["settings"].get("steps"), self.ledger.settings
        complete = (arrays.get(f"{EPISODES}{COUNT}", np.array(now.episodes)) >= now.episodes).any()
        longer = now.steps is not None and isinstance(was, int) and was < now.steps
        if not longer or now.learning_rate_end is not None or complete:
            return before
        return {**before, "settings": {**before["settings"], "steps": now.steps}}

    def _require_host_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Refuses arrays that are not of the environments that Python steps.

        Raises:
            MismatchError: one is missing, too many, or of another kind.
        """
        kinds, expected = (
            {name: (array.dtype, array.ndim) for name, array in each.items()} for each in (arrays, self.driver.saved())
        )
        if odd := [name for name in sorted(kinds.keys() | expected.keys()) if kinds.get(name) != expected.get(name)]:
            raise MismatchError(f"its array {HOST}{odd[0]} is not that of an environment")

    def _environments(self) -> str:
        return file.digest(tensors.named(self.world.identity()))


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def differences(was: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Each part and setting in which two runs differ, in words; of parts of another class, the class alone."""
    for name in sorted(was.keys() | now.keys()):
        before, after = was.get(name), now.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            kinds = before.get("name"), after.get("name")
            if kinds[0] == kinds[1]:
                yield from differences(before, after)
            else:
                yield f"{name} {kinds[0]}, not {kinds[1]}"
        elif before != after:
            yield f"{name} {before}, not {after}"
