"""Plays learned networks in an environment that shows itself."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from uppertail.environments import EVALUATION, Frame, WatchedEnvironment
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.acting import Actor, Choice
from uppertail.training.drivers.base import EVALUATION_STEPS
from uppertail.training.run import Run
from uppertail.types import PyTree


class WatchedEpisode(NamedTuple):
    """An episode that was watched.

    Args:
        ret: its undiscounted return.
        length: its environment steps.
    """

    ret: float
    length: int


def watch(
    run: Run,
    networks: Network,
    policy: ExplorationPolicy,
    row: int,
    environment: WatchedEnvironment,
    episodes: int,
    show: Callable[[Frame, bool], object],
) -> Iterator[WatchedEpisode]:
    """Plays episodes of one seed, without further learning.

    Where Python steps a run's environments, they begin as the first ones of an evaluation do.

    Args:
        run: the run that learned.
        networks: the networks of all its seeds.
        policy: chooses the actions.
        row: which of its seeds, counted from 0.
        environment: the environment to play in.
        episodes: how many.
        show: called before the first and after each step with the current frame, and whether the episode is over.
    """
    agent, network, keys = run.loop.agent, jax.tree.map(lambda leaf: leaf[row], networks), run.keys.evaluation[row]

    actor = Actor(agent, policy)
    nothing = actor.blank(network, run.driver.start_observations()[row])

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
            memory = choice.memory
            observation, reward, ended = environment.step(int(choice.action))
            ret, length = ret + reward, length + 1
            ended = ended or length == EVALUATION_STEPS
            show(environment.frame(), ended)
        yield WatchedEpisode(ret, length)
