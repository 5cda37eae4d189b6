"""A run that is over, built again from its folder with what it learned."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from uppertail.cli import train
from uppertail.errors import InputError

if TYPE_CHECKING:
    from uppertail.networks import PerActionNetwork
    from uppertail.policies import ExplorationPolicy
    from uppertail.training.learned import LearnedFile, Trained
    from uppertail.training.run import Run

POLICY = "greedy: the highest mean; ucb, thompson: as the run had them, or their defaults; trained: the run's own"


@dataclasses.dataclass(frozen=True, eq=False)
class TrainedRun:
    """A run and its learned networks.

    Args:
        run: built again, before its first step.
        file: where the networks are from.
        networks: those of all seeds.
    """

    run: "Run"
    file: "LearnedFile"
    networks: "PerActionNetwork"

    def policy(self, name: str) -> "ExplorationPolicy":
        """The policy of this name; the run's own, with its settings, if it is of that class."""
        from uppertail.policies import UCB, Greedy, Thompson

        own = self.run.loop.agent.policy
        kind = {"greedy": Greedy, "ucb": UCB, "thompson": Thompson, "trained": type(own)}[name]
        return own if isinstance(own, kind) else kind()

    def require_finite(self, rows: slice) -> None:
        """Refuses networks that hold NaN or infinite numbers.

        Raises:
            InputError: those of one of these seeds do.
        """
        import numpy as np

        for row in range(*rows.indices(self.run.settings.seeds)):
            if not all(np.isfinite(weight[row]).all() for weight in map(np.asarray, self.networks.weights)):
                raise InputError(
                    f"The network of seed {self.run.settings.seed + row} holds NaN or infinite numbers, so there is "
                    "nothing to play with: train again with a lower learning_rate or gradient_clip."
                )


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[TrainedRun]:
    """The run in a folder, with its environments open.

    Raises:
        InputError: it is not the folder of a run, or its networks are missing or of no use.
    """
    from uppertail import records
    from uppertail.training.learned import LearnedFile

    request = train.requested_in(records.config_of(folder))
    file = LearnedFile.read(folder)
    run = request.run(file.header.asked)
    try:
        yield TrainedRun(run, file, file.networks(run))
    finally:
        run.driver.close()


def load(folder: Path | str) -> "Trained":
    """What a run of `uppertail train` learned: its agent, its networks and its compiled environments.

    Args:
        folder: where the run's files are.

    Raises:
        InputError: it is not the folder of a run, or its networks are missing or of no use.
    """
    from uppertail.training.learned import Trained

    with opened(Path(folder)) as trained:
        return Trained(trained.run.loop.agent, trained.networks, trained.run.driver.environments)
