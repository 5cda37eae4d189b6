"""What a finished run left: its networks, its record, its return distributions at the end, and how it plays."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import jax
import numpy as np
from jaxtyping import Array

from uppertail import records
from uppertail.environments import EVALUATION, Frame, WatchedEnvironment
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.records.distributions import Distributions
from uppertail.training import checkpoint
from uppertail.training.acting import Actor, Choice
from uppertail.training.checkpoint import Header, UnusableCheckpointError
from uppertail.training.driver import EVALUATION_STEPS
from uppertail.training.recording import Capture, fits_table, with_environment
from uppertail.training.run import Run
from uppertail.types import PyTree

AGAIN = "delete it and resume the run, or train it again"  # the remedy if the file cannot be used


@dataclasses.dataclass(frozen=True)
class LearnedFile:
    """The contents of the file: its path, its header, and the networks of all seeds as named arrays."""

    path: Path
    header: Header
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The file in a run's folder; an InputError says why it cannot be used."""
        path = folder / records.NETWORKS
        if not path.is_file():
            raise InputError(
                f"The run in {folder} has no {records.NETWORKS}: train it again, or resume it if it has checkpoints."
            )
        try:
            return cls(path, *checkpoint.read(path))
        except UnusableCheckpointError as error:
            raise InputError(f"{path} {error}: {AGAIN}.") from error

    def networks(self, run: Run) -> Network:
        """The networks of a run that was built again; those of another run are refused."""
        try:
            self.header.require_run(run.asked(), records.digest(checkpoint.to_named(run.driver.environments)))
            return checkpoint.from_named(run.driver.template.network_at_limit, self.arrays)
        except UnusableCheckpointError as error:
            raise InputError(f"{self.path} {error}: {AGAIN}.") from error


def record_of(folder: records.RunFolder, header: Header) -> records.RunRecord:
    """The record of a run, from its folder and the header of its networks."""
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


def at_the_end(run: Run, networks: Network, episodes: list[int], steps: int) -> Distributions:
    """The distributions of a run that recorded none: one moment, after each seed's episodes and so many steps."""
    tables, first = run.driver.environments, run.driver.first
    fits = fits_table(tables)
    capture = Capture(run.loop, fits, all_states=fits, count=tables.num_states if fits else 1)
    found = jax.jit(jax.vmap(capture.of_network))((None, first), networks)
    when = {"step": np.full((1, len(episodes)), steps), "episode": np.array([episodes])}
    recorded = Distributions.of_arrays({name: np.asarray(array)[None] for name, array in found.items()} | when)
    return with_environment(recorded, tables, run.builder)


def watch(
    run: Run,
    networks: Network,
    policy: ExplorationPolicy,
    row: int,
    environment: WatchedEnvironment,
    episodes: int,
    show: Callable[[Frame, bool], object],
) -> Iterator[tuple[float, int]]:
    """Plays episodes of the seed in one row of a run's networks; yields undiscounted return and length of each.

    Where Python steps a run's environments, they begin as the first ones of an evaluation do. `show` is called before
    the first and after each step with the current frame, and whether the episode is over.
    """
    actor, keys = Actor(run.loop.agent, policy), run.keys.evaluation[row]
    network = jax.tree.map(lambda leaf: leaf[row], networks)
    nothing = actor.blank(network, run.driver.first[row])

    @jax.jit
    def choose(episode: Array, step: Array, observation: Array, memory: PyTree) -> Choice:
        key = jax.random.fold_in(jax.random.fold_in(keys, episode), step)
        return actor.play(key, network, observation, memory, step == 0)

    for episode in range(episodes):
        observation = environment.reset(EVALUATION + run.settings.seed + row, episode)
        ended, ret, length, memory = False, 0.0, 0, nothing
        show(environment.frame(), ended)
        while not ended:
            choice = choose(np.int32(episode), np.int32(length), observation, memory)
            observation, reward, ended = environment.step(int(choice.action))
            memory = choice.memory
            ret, length = ret + reward, length + 1
            ended = ended or length == EVALUATION_STEPS
            show(environment.frame(), ended)
        yield ret, length
