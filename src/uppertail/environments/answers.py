"""What environments answer when they are asked, or a sentence that says which of them failed, and when."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from jaxtyping import Int

from uppertail.environments.host import HostEnvironment, HostStep
from uppertail.errors import InputError, said

Answer = TypeVar("Answer")


class EnvironmentFailedError(InputError):
    """An environment raised an exception, or gave what is no reward; its text says which, and when."""


def answered(ask: Callable[[], Answer], where: Callable[[], str]) -> Answer:
    """What an environment answers.

    Args:
        ask: asks it.
        where: names the environment and the moment, if something goes wrong.

    Raises:
        EnvironmentFailedError: it raised an exception.
    """
    try:
        return ask()
    except Exception as error:
        raise EnvironmentFailedError(f"{where()} raised {type(error).__name__}: {said(error)}.") from error


def stepped(host: HostEnvironment, actions: Int[np.ndarray, " envs"], where: Callable[[], str]) -> HostStep:
    """One step of environments.

    Args:
        host: the environments.
        actions: theirs.
        where: names the environment and the moment, if something goes wrong.

    Raises:
        EnvironmentFailedError: one raised an exception, or a reward or an observation is not a finite number.
    """
    now = answered(lambda: host.step(actions), where)
    if not np.isfinite(now.reward).all():
        reward = now.reward[~np.isfinite(now.reward)][0]
        raise EnvironmentFailedError(f"{where()} gave the reward {reward}: rewards must be finite numbers.")
    if now.next_observation.dtype.kind == "f" and not np.isfinite(now.next_observation).all():
        raise EnvironmentFailedError(f"{where()} gave an observation that is not finite: all its numbers must be.")
    return now


def answers(asked: list[Callable[[], np.ndarray]], seeds: list[int], when: str) -> np.ndarray:
    """What the environments of each seed answer, with a leading axis of seeds.

    Args:
        asked: asks those of each seed.
        seeds: the seeds.
        when: the moment, if something goes wrong.

    Raises:
        EnvironmentFailedError: one raised an exception.
    """
    wheres = [f"The environment of seed {seed}, {when}," for seed in seeds]
    return np.stack([answered(ask, lambda w=where: w) for ask, where in zip(asked, wheres, strict=True)])
