"""Episodes with learned networks in environments that Python steps."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Array, Key

from uppertail.environments import (
    EVALUATION,
    EnvironmentFailedError,
    HostBuilder,
    HostEnvironment,
    begin_all,
    step_host,
)
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.drivers.base import EVALUATION_STEPS, Played
from uppertail.training.drivers.host_programs import HostPrograms

PLAYED_TOGETHER = 20
"""The most environments of each seed in which evaluation episodes are played side by side in one process."""

REHEARSED = 2
"""How many of these environments are tried before training."""

Choose = Callable[[int, np.ndarray, np.ndarray], np.ndarray]
"""The actions [seeds, envs] at a step of the evaluation, from the observations and where an episode begins."""


def rehearse(builder: HostBuilder, seed: int, first: np.ndarray) -> None:
    """Begins an evaluation episode, so that errors of its environments show before training.

    Args:
        builder: opens the environments.
        seed: the seed.
        first: the first observations of its training.

    Raises:
        EnvironmentFailedError: an environment raised an exception, or its observation is not finite or has another
            shape or type than in training.
        InputError: the environments cannot be made.
    """
    together, when = _side_by_side(builder, REHEARSED, len(first)), "at the first reset of its evaluation"
    host = builder.open(EVALUATION + seed, together, EVALUATION_STEPS)
    try:
        here = begin_all([host.reset], [seed], when)[0]
        if (here.shape[1:], here.dtype) != (first.shape[1:], first.dtype):
            raise EnvironmentFailedError(
                f"The environment of seed {seed}, {when}, gave an observation of {here.dtype}{list(here.shape[1:])}, "
                f"in training of {first.dtype}{list(first.shape[1:])}: give a function that makes the same environment "
                "at each call."
            )
    finally:
        host.close()


def play(
    builder: HostBuilder,
    seeds: list[int],
    in_training: int,
    programs: HostPrograms,
    networks: Network,
    policy: ExplorationPolicy,
    keys: Key[Array, " seeds"],
    episodes: int,
) -> Played:
    """Plays episodes of each seed without further learning, in environments that are opened for them.

    Args:
        builder: opens the environments.
        seeds: the seeds.
        in_training: environments of each seed while it trained.
        programs: the run's compiled parts.
        networks: the networks, every array with a leading axis of seeds.
        policy: chooses the actions.
        keys: the keys of each seed's evaluation.
        episodes: how many of each seed.

    Raises:
        EnvironmentFailedError: an environment raised an exception, or gave a number that is not finite.
        InputError: the environments cannot be made.
    """
    together = min(episodes, _side_by_side(builder, PLAYED_TOGETHER, in_training))
    hosts: list[HostEnvironment] = []
    try:
        hosts += (builder.open(EVALUATION + seed, together, EVALUATION_STEPS) for seed in seeds)
        first = begin_all([host.reset for host in hosts], seeds, "at the first reset of its evaluation")
        act, memory = programs.acting(networks, policy, first)

        def choose(step: int, where: np.ndarray, begins: np.ndarray) -> np.ndarray:
            nonlocal memory
            actions, memory = act(networks, keys, np.full(len(seeds), step, np.int32), where, memory, begins)
            return np.asarray(actions)

        return _play(hosts, seeds, first, choose, episodes)
    finally:
        for host in hosts:
            host.close()


def _side_by_side(builder: HostBuilder, most: int, in_training: int) -> int:
    """How many environments of a seed to open; with processes no more than in training, as each imports JAX anew."""
    return min(most, in_training) if builder.has_processes else most


def _play(
    hosts: list[HostEnvironment], seeds: list[int], observations: np.ndarray, choose: Choose, episodes: int
) -> Played:
    """Plays equally many episodes in each of a seed's environments, so that short episodes are not preferred."""
    count, envs = observations.shape[:2]
    quota = math.ceil(episodes / envs)
    returns, lengths = np.zeros((count, quota, envs)), np.zeros((count, quota, envs), np.int64)
    played = np.zeros((count, envs), np.int64)
    step, begins = 0, np.ones((count, envs), bool)
    while (played < quota).any():
        actions = choose(step, observations, begins)
        for row, host in enumerate(hosts):
            where = f"The environment of seed {seeds[row]}, in an episode with its learned network,"
            now = step_host(host, actions[row], lambda w=where: w)
            on = np.flatnonzero(now.real & (played[row] < quota))
            returns[row, played[row, on], on] += now.reward[on]
            lengths[row, played[row, on], on] += 1
            ended = now.terminated | now.truncated
            played[row, on] += ended[on]
            begins[row] = ended | ~now.real
            observations[row] = now.observation
        step += 1
    return Played(*(each.reshape(count, -1)[:, :episodes] for each in (returns, lengths)))
