"""Calls of environments; an environment that fails becomes a sentence that says which one, and when."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from jaxtyping import Int

from uppertail.environments.host import HostEnvironment, HostStep
from uppertail.errors import InputError, message_of

Answer = TypeVar("Answer")

NOT_FINITE = "{} gave the reward {}: rewards must be finite numbers of 32 bits."
"""The sentence on a reward that is not finite."""


class EnvironmentFailedError(InputError):
    """An environment raised an exception, or gave a number that is not finite; its text says which, and when."""


def call(ask: Callable[[], Answer], where: Callable[[], str]) -> Answer:
    """Calls an environment.

    Args:
        ask: makes the call.
        where: names the environment and the moment, if something goes wrong.

    Raises:
        EnvironmentFailedError: it raised an exception, or asked the process to end.
    """
    try:
        return ask()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        words = f": {message_of(error)}" if message_of(error) else ""
        raise EnvironmentFailedError(f"{where()} raised {type(error).__name__}{words}.") from error


def step_host(host: HostEnvironment, actions: Int[np.ndarray, " envs"], where: Callable[[], str]) -> HostStep:
    """Makes one step of environments.

    Args:
        host: the environments.
        actions: an action for each.
        where: names the environment and the moment, if something goes wrong.

    Raises:
        EnvironmentFailedError: one raised an exception, or a reward or an observation is not a finite number.
    """
    now = call(lambda: host.step(actions), where)
    if not np.isfinite(now.reward).all():
        reward = now.reward[~np.isfinite(now.reward)][0]
        raise EnvironmentFailedError(NOT_FINITE.format(where(), reward))
    _require_finite(now.next_observation, where)
    if now.observation is not now.next_observation:
        _require_finite(now.observation, where)
    return now


def begin_host(ask: Callable[[], np.ndarray], where: Callable[[], str]) -> np.ndarray:
    """Begins episodes of environments; their first observations.

    Args:
        ask: begins them, and returns the observations.
        where: names the environment and the moment, if something goes wrong.

    Raises:
        EnvironmentFailedError: one raised an exception, or an observation is not finite.
    """
    observations = call(ask, where)
    _require_finite(observations, where)
    return observations


def begin_all(asked: list[Callable[[], np.ndarray]], seeds: list[int], when: str) -> np.ndarray:
    """Begins episodes of each seed's environments; their first observations, with a leading axis of seeds.

    Args:
        asked: for each seed, the call that begins its episodes.
        seeds: the seeds.
        when: the moment, if something goes wrong.

    Raises:
        EnvironmentFailedError: one raised an exception, or an observation is not finite.
    """
    wheres = [f"The environment of seed {seed}, {when}," for seed in seeds]
    return np.stack([begin_host(ask, lambda w=where: w) for ask, where in zip(asked, wheres, strict=True)])


def _require_finite(observations: np.ndarray, where: Callable[[], str]) -> None:
    if observations.dtype.kind == "f" and not np.isfinite(observations).all():
        raise EnvironmentFailedError(f"{where()} gave an observation that is not finite: all its numbers must be.")
