"""What a finished run left: the file of its networks, its record, and its return distributions at the end."""

import dataclasses
import math
from pathlib import Path
from typing import Self

import jax
import numpy as np

from uppertail import records
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.records.distributions import Distributions
from uppertail.training import checkpoint
from uppertail.training.checkpoint import Header, UnusableCheckpointError
from uppertail.training.drivers.recorder import Capture, fits_table, with_environment
from uppertail.training.results import TrainingResult
from uppertail.training.run import Run

AGAIN = "delete it and resume the run, or train it again"
"""The remedy if the file cannot be used."""


@dataclasses.dataclass(frozen=True)
class LearnedFile:
    """The contents of the file: its path, its header, and the networks of all seeds as named arrays."""

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

    def networks(self, run: Run) -> Network:
        """The networks of a run that was built again.

        Raises:
            InputError: they are of another run.
        """
        try:
            self.header.require_run(run.asked(), checkpoint.digest(checkpoint.to_named(run.driver.environments)))
            return checkpoint.from_named(run.template.at_limit, self.arrays)
        except UnusableCheckpointError as error:
            raise InputError(f"{self.path} {error}: {AGAIN}.") from error


def record_of(folder: records.RunFolder, header: Header) -> records.RunRecord:
    """The record of a run, from its folder and the header of its networks.

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
        **{f"{name}_seconds": seconds for name, seconds in header.seconds.items()},
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
        environments=checkpoint.digest(checkpoint.to_named(result.environments)),
        stopped=record.stopped,
        seconds={name: getattr(record, f"{name}_seconds") for name in ("wall", "compile", "training")},
        hardware=record.hardware,
    )
    checkpoint.write(folder / records.NETWORKS, header, checkpoint.to_named(result.networks))


def at_the_end(run: Run, networks: Network, episodes: list[int], steps: int) -> Distributions:
    """The distributions of a run that recorded none, as its networks give them: one moment.

    Args:
        run: the run, built again.
        networks: the networks of all seeds.
        episodes: finished episodes of each seed.
        steps: environment steps of each seed.
    """
    tables, first = run.driver.environments, run.driver.start_observations()
    fits = fits_table(tables)
    capture = Capture(run.loop, fits, all_states=fits, count=tables.num_states if fits else 1)
    found = jax.jit(jax.vmap(capture.of_network))((None, first), networks)
    when = {"step": np.full((1, len(episodes)), steps), "episode": np.array([episodes])}
    recorded = Distributions.of_arrays({name: np.asarray(array)[None] for name, array in found.items()} | when)
    return with_environment(recorded, tables, run.builder)
