"""The file of a run's learned networks: written at its end, read to play with them."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Self

import numpy as np

from uppertail import records
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.training.checkpoints import file, tensors
from uppertail.training.checkpoints.file import Header, UnusableCheckpointError
from uppertail.training.checkpoints.saver import differences
from uppertail.training.results import TrainingResult
from uppertail.training.run import Run

AGAIN = "delete it and resume the run, or train it again"
"""The remedy if the file cannot be used."""


@dataclasses.dataclass(frozen=True)
class LearnedFile:
    """The contents of the file.

    Args:
        path: the path of the file.
        header: its header.
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
            return cls(path, *file.read(path))
        except UnusableCheckpointError as error:
            raise InputError(f"{path} {error}: {AGAIN}.") from error

    @property
    def digest(self) -> str:
        """Checksum of the networks."""
        return file.digest(self.arrays)

    def networks(self, run: Run) -> Network:
        """The networks of a run that was built again.

        Raises:
            InputError: they are of another run.
        """
        asked = json.loads(json.dumps(run.asked()))
        if different := list(differences(self.header.asked, asked)):
            raise InputError(f"{self.path} was made with {different[0]}: {AGAIN}.")
        if self.header.environments != file.digest(tensors.to_named(run.world.environments)):
            raise InputError(f"{self.path} was made in environments that are built differently here: {AGAIN}.")
        try:
            return tensors.from_named(run.template.at_limit, self.arrays)
        except tensors.OtherShapesError as error:
            raise InputError(f"{self.path} has another shape ({error}): {AGAIN}.") from error


def record_of(folder: records.RunFolder, header: Header) -> records.RunRecord:
    """The record of a run, from the files that it left.

    Args:
        folder: its folder.
        header: the header of its networks.

    Raises:
        InputError: a file is missing or damaged.
    """
    summary, most = folder.summary, header.asked["settings"]["episodes"]
    return records.RunRecord(
        asked=header.asked,
        success_return=math.inf if folder.success_return is None else folder.success_return,
        floor_episodes=summary.get("floor_episodes"),
        episodes=folder.episodes,
        env_steps=[int(seed.end_steps[-1]) if seed.returns.size >= most else header.step for seed in folder.episodes],
        greedy_returns=[math.nan if ret is None else ret for ret in summary["final_greedy_return"]],
        wall_seconds=header.seconds["wall"],
        compile_seconds=header.seconds["compile"],
        training_seconds=header.seconds["training"],
        **{name: summary[name] for name in ("interrupted", "diverged", "stopped", "failed", "hardware")},
        outside_share=summary["targets_outside_support"],
        compilations=summary["compilations"],
    )


def save(folder: Path, result: TrainingResult) -> None:
    """Writes the networks of all seeds to a run's folder, whole or not at all.

    Raises:
        OSError: the disk is full or the folder cannot be written; nothing is left behind.
    """
    record = result.record
    header = Header(
        step=max(record.env_steps),
        asked=record.asked,
        environments=file.digest(tensors.to_named(result.environments)),
        stopped=record.stopped,
        seconds={
            "wall": record.wall_seconds,
            "compile": record.compile_seconds,
            "training": record.training_seconds,
        },
        hardware=record.hardware,
    )
    file.write(folder / records.NETWORKS, header, tensors.to_named(result.networks))
