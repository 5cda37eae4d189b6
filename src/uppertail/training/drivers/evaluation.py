"""Episodes with learned networks in environments that Python steps."""

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from uppertail.environments import EVALUATION, EnvironmentFailedError, GymnasiumBuilder, begin_all, step_host
from uppertail.training.drivers.base import EVALUATION_STEPS, Played
from uppertail.types import PyTree

PLAYED_TOGETHER = 20
"""The most environments of each seed in which evaluation episodes are played side by side in one process."""

REHEARSED = 2  # how many of these environments are tried before training

AT_FIRST = "at the first reset of its evaluation"


def rehearse(builder: GymnasiumBuilder, seed: int, first: np.ndarray) -> None:
    """Begins an evaluation episode, so that errors of its environments show before training.

    Its observations must be finite, and of the shape and type of the first ones of training.
    """
    together = _side_by_side(builder, REHEARSED, len(first))
    with contextlib.closing(builder.open(EVALUATION + seed, together, EVALUATION_STEPS)) as host:
        here = begin_all([host.reset], [seed], AT_FIRST)[0]
        if (here.shape[1:], here.dtype) != (first.shape[1:], first.dtype):
            raise EnvironmentFailedError(
                f"The environment of seed {seed}, {AT_FIRST}, gave an observation of "
                f"{here.dtype}{list(here.shape[1:])}, in training of {first.dtype}{list(first.shape[1:])}: give a "
                "function that makes the same environment at each call."
            )


def play(
    builder: GymnasiumBuilder,
    seeds: list[int],
    in_training: int,
    act: Callable[..., Any],
    memory_of: Callable[[np.ndarray], PyTree],
    episodes: int,
) -> Played:
    """Plays episodes of each seed, equally many in each of its environments: short episodes are not preferred.

    `in_training` is the number of environments of each seed while it trained. `act` gives actions [seeds, envs] and
    memory, from steps, observations, memory and where an episode begins; `memory_of` the memory before the first step.
    """
    count, asked = len(seeds), min(episodes, _side_by_side(builder, PLAYED_TOGETHER, in_training))
    with contextlib.ExitStack() as opened:
        open_host = (contextlib.closing(builder.open(EVALUATION + seed, asked, EVALUATION_STEPS)) for seed in seeds)
        hosts = [*map(opened.enter_context, open_host)]
        envs = hosts[0].num_envs  # a user's vector environment has its own number
        quota = math.ceil(episodes / envs)
        returns, lengths = np.zeros((count, quota, envs)), np.zeros((count, quota, envs), np.int64)
        played = np.zeros((count, envs), np.int64)
        step, begins = 0, np.ones((count, envs), bool)
        observations = begin_all([host.reset for host in hosts], seeds, AT_FIRST)
        memory = memory_of(observations)
        while (played < quota).any():
            actions, memory = act(np.full(count, step, np.int32), observations, memory, begins)
            actions, step = np.asarray(actions), step + 1
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
    return Played(*(each.reshape(count, -1)[:, :episodes] for each in (returns, lengths)))


def _side_by_side(builder: GymnasiumBuilder, most: int, in_training: int) -> int:
    """How many environments of a seed to open; with processes no more than in training, as each imports JAX anew."""
    return min(most, in_training) if builder.vectorization == "async" else most
