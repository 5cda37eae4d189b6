"""What an earlier run learned, from which another one starts: the learner's whole state, from its last checkpoint."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from uppertail.defaults import Plan
from uppertail.defaults.plan import counted
from uppertail.errors import InputError, message_of
from uppertail.learners import LearnerState
from uppertail.records import arrays_below
from uppertail.training import checkpoint
from uppertail.training.checkpoint import Header, UnusableCheckpointError
from uppertail.training.checkpoints import RUN, Checkpoints
from uppertail.training.run import Run

SAME = ("learner", "distribution", "network", "replay", "target", "evidence")
"""The parts that what was learned belongs to."""

BESIDE = tuple(f"{name} " for name in ("action_names", "success", "returns", "time_limit", "max_episode_steps"))
"""What names settings of environments that change neither observations nor actions."""


@dataclasses.dataclass(frozen=True, eq=False)
class Earlier:
    """The last checkpoint of an earlier run."""

    folder: Path
    header: Header
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """The checkpoint in a run's folder; InputError if there is none that can be read."""
        if not Path(folder).is_dir():
            raise InputError(f"init is {folder}, which is no folder: give that of a run.")
        for path in Checkpoints(folder).files():
            try:
                return cls(Path(folder), *checkpoint.read(path))
            except UnusableCheckpointError:
                continue
        raise InputError(
            f"init is {folder}, which has no checkpoint to start from: train that run with --checkpoint_every N, which "
            "makes one at its end, however large."
        )

    def begun(self, make: Callable[[Plan | None], Run]) -> tuple[Run, LearnerState]:
        """A run that chooses what this one chose, and what it starts from; InputError if the two do not go together.

        `make` makes a run with an earlier plan, or, without one, a run that chooses anew.
        """
        try:
            run = make(self.header.plan)
        except InputError as error:
            make(None).close()  # else the fault is another one
            what = message_of(error).partition(": ")[0]  # without a remedy, which is for what is given
            raise InputError(
                f"init is {self.folder}, but what its run chose does not go with what is asked for here ({what}): "
                "start from a run with the same observations and settings."
            ) from error
        try:
            return run, self.learned(run)
        except InputError:
            run.close()
            raise

    def learned(self, run: Run) -> LearnerState:
        """What its first seeds learned, for those of a run that has not begun; InputError if that does not fit.

        The run gets a note if it has fewer seeds.
        """
        asked: dict[str, Any] = json.loads(json.dumps(run.asked()))
        parts = [tuple({name: of.get(name)} for of in (self.header.asked, asked)) for name in SAME]
        seeds, wanted = self.header.asked["settings"]["seeds"], run.settings.seeds
        different = [text for was, now in parts for text, _ in checkpoint.differences(was, now)]
        if any(each.startswith(SAME) for each in different):
            raise InputError(f"init is {self.folder}, whose run was made with {different[0]}: use the same here.")
        ranges = [of["environment"].get("returns") for of in (self.header.asked, asked)]
        if different and ranges[0] != ranges[1]:  # settings of the distribution follow it
            different = ["--env.returns {}, not {}".format(*(each or "left out" for each in ranges))]
        had, left_out = counted(seeds, "seed"), seeds - wanted
        if seeds < wanted:
            fewer = ", or fewer" * (seeds > 1)
            raise InputError(f"init is {self.folder}, whose run had {had}: use --seeds {seeds}{fewer}.")
        if seeds > wanted:
            left = f"the last {left_out} of them are" if left_out > 1 else "the last of them is"
            run.notes.append(f"init is {self.folder}, whose run had {had}: {left} left out here.")
        arrays = {name: each[:wanted] for name, each in arrays_below(f"{RUN}learned/", self.arrays).items()}
        made = f"was made with {different[0]}" if different else ""
        try:
            learned = checkpoint.from_named(run.driver.template.learned, arrays)
        except UnusableCheckpointError as error:
            environments = ({"environment": of["environment"]} for of in (self.header.asked, asked))
            elsewhere = [text for text, _ in checkpoint.differences(*environments) if not text.startswith(BESIDE)]
            there = " and ".join(elsewhere)
            why = f"was made with {there}, and has other observations or actions" if there else made
            why = why or "had other observations or actions, stored other numbers, or was made by another version"
            raise InputError(f"init is {self.folder}, whose run {why}: what it learned does not fit here.") from error
        if made:
            raise InputError(f"init is {self.folder}, whose run {made}: use the same here.")
        return learned
