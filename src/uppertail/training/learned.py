"""The file of a run's learned networks: written at its end, read by whoever plays with them."""

import dataclasses
from pathlib import Path
from typing import Self

import numpy as np

from uppertail import records
from uppertail.agent import Agent
from uppertail.environments import Environment
from uppertail.errors import InputError
from uppertail.networks import PerActionNetwork
from uppertail.training import checkpoint, tensors
from uppertail.training.checkpoint import Header, UnusableCheckpointError
from uppertail.training.results import TrainingResult, network_of
from uppertail.training.run import Run
from uppertail.training.saving import differences, known

AGAIN = "delete it and resume the run, or train it again"
"""What helps where the file is of no use."""


@dataclasses.dataclass(frozen=True)
class Trained:
    """A run's agent and what it learned, from its folder.

    Args:
        agent: the algorithm; `agent.returns(network, observation)` is a state's return distributions.
        networks: the learned networks; every array has a leading axis of seeds.
        environments: the compiled environments, likewise; None where Python makes the steps.
    """

    agent: Agent
    networks: PerActionNetwork
    environments: Environment | None

    def network(self, index: int) -> PerActionNetwork:
        """The learned network of one seed, counted from 0."""
        return network_of(self.networks, index)


@dataclasses.dataclass(frozen=True)
class LearnedFile:
    """What is in the file.

    Args:
        path: where it is.
        header: what it says of itself.
        arrays: the networks of all seeds, by their paths.
    """

    path: Path
    header: Header
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The file in a run's folder.

        Raises:
            InputError: there is none, or it is damaged or has another format.
        """
        path = folder / records.NETWORKS
        if not path.is_file():
            raise InputError(
                f"The run in {folder} left no {records.NETWORKS}: train it again, or resume it if it has checkpoints."
            )
        try:
            return cls(path, *checkpoint.read(path))
        except UnusableCheckpointError as error:
            raise InputError(f"{path} {error}: {AGAIN}.") from error

    @property
    def digest(self) -> str:
        """Checksum of the networks."""
        return checkpoint.digest(self.arrays)

    def networks(self, run: Run) -> PerActionNetwork:
        """The networks of a run that was built again.

        Raises:
            InputError: they are of another run.
        """
        if different := list(differences(self.header.asked, known(run.asked(), self.header.asked))):
            raise InputError(f"{self.path} was made with {different[0]}: {AGAIN}.")
        if self.header.environments != checkpoint.digest(tensors.named(run.driver.environments)):
            raise InputError(f"{self.path} was made in environments that are built otherwise here: {AGAIN}.")
        try:
            return tensors.like(run.template.learned, self.arrays)
        except tensors.OtherShapesError as error:
            raise InputError(f"{self.path} has another shape ({error}): {AGAIN}.") from error


def save(folder: Path, result: TrainingResult) -> None:
    """Writes the networks of all seeds to a run's folder, at once or not at all.

    Raises:
        OSError: the disk is full or the folder cannot be written; nothing is left behind.
    """
    record = result.record
    header = Header(
        step=max(record.env_steps),
        asked={
            "environment": record.environment,
            "distribution": record.distribution,
            "policy": record.policy,
            "settings": record.settings,
            "measured_returns": record.measured_returns,
        },
        environments=checkpoint.digest(tensors.named(result.environments)),
        stopped=record.stopped,
        seconds={
            "wall": record.wall_seconds,
            "compile": record.compile_seconds,
            "training": record.training_seconds,
        },
        hardware=record.hardware,
    )
    checkpoint.write(folder / records.NETWORKS, header, tensors.named(result.networks))
