"""Environments that Python steps: the contract, and calls of them, whose errors become sentences."""

import abc
from collections.abc import Callable
from typing import NamedTuple, TypeGuard, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from uppertail.encodings import ObservationSpace
from uppertail.environments.base import Environment, EnvironmentBuilder
from uppertail.environments.spaces import Interface
from uppertail.errors import InputError, message_of

Answer = TypeVar("Answer")

NOT_FINITE = "{} gave the reward {}: rewards must be finite numbers of 32 bits."
"""The sentence on a reward that is not finite."""


class EnvironmentFailedError(InputError):
    """An environment raised an exception, or gave a number that is not finite; its text says which, and when."""


class HostStep(NamedTuple):
    """One step of environments side by side."""

    next_observation: np.ndarray  # after the step, also at an episode's end
    reward: Float[np.ndarray, " envs"]
    terminated: Bool[np.ndarray, " envs"]
    truncated: Bool[np.ndarray, " envs"]
    observation: np.ndarray  # for the next action: the first of a new episode, if one has ended
    real: Bool[np.ndarray, " envs"]  # False for a step that only reset the environment


class HostEnvironment(abc.ABC):
    """Environments side by side that Python steps, for one seed. An episode that ends is followed by another."""

    @property
    @abc.abstractmethod
    def num_envs(self) -> int:
        """How many there are."""

    @abc.abstractmethod
    def reset(self) -> np.ndarray:
        """The first observation of each environment's first episode."""

    @abc.abstractmethod
    def begin_another(self, episodes: int) -> np.ndarray:
        """The first observation of a new episode in place of the one in progress, after so many have ended."""

    @abc.abstractmethod
    def step(self, actions: Int[np.ndarray, " envs"]) -> HostStep:
        """One step of all of them."""

    def saved(self) -> dict[str, np.ndarray]:
        """Arrays from which `restore` can go back to the episodes in progress; empty, the default, if it cannot."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Goes back to the saved episodes, or begins others, as by default; their current observations."""
        del arrays
        return self.reset()

    def close(self) -> None:  # noqa: B027 (optional)
        """Frees the resources of the environments; by default there are none."""


class HostBuilder(EnvironmentBuilder):
    """Opens environments that Python steps; some of them can also be compiled, by `build`.

    Examples:
        >>> import uppertail as ut
        >>> cart: ut.HostBuilder = ut.Gym("CartPole-v1")
        >>> cart.num_actions, cart.time_limit, cart.compiles
        (2, 500, False)
    """

    @property
    @abc.abstractmethod
    def interface(self) -> Interface:
        """How observations are read, and actions numbered."""

    @abc.abstractmethod
    def open(self, seed: int, num_envs: int, time_limit: int | None = None) -> HostEnvironment:
        """The environments of one seed, from which the seeds of their episodes come; InputError if it cannot be done.

        `time_limit`: steps after which episodes are truncated where they have no limit of their own.
        """

    def build(self, key: PRNGKeyArray) -> Environment:
        """The compiled environment; InputError if it cannot be compiled, which is the default."""
        del key
        raise InputError(f"{self.label} cannot be compiled: Python steps it.")

    @property
    def compiles(self) -> bool:
        """Whether the environment is to be compiled; False by default."""
        return False

    @property
    def observations(self) -> ObservationSpace:
        """The space of its observations."""
        return self.interface.reading.space

    @property
    def num_actions(self) -> int:
        """Number of discrete actions."""
        return self.interface.num_actions

    @property
    def time_limit(self) -> int | None:
        """Steps after which an episode is truncated; None, the default: not known."""
        return None

    @property
    def may_go_on(self) -> bool:
        """Whether nothing is known that would truncate an episode; by default, if there is no time limit."""
        return self.time_limit is None

    @property
    def has_processes(self) -> bool:
        """Whether environments side by side have a process each; False by default."""
        return False


def steps_in_python(builder: EnvironmentBuilder) -> TypeGuard[HostBuilder]:
    """Whether Python steps a builder's environments."""
    return isinstance(builder, HostBuilder) and not builder.compiles


def call(ask: Callable[[], Answer], where: Callable[[], str]) -> Answer:
    """The result of `ask`, which calls an environment; an exception becomes a sentence that begins with `where`."""
    try:
        return ask()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        words = f": {message_of(error)}" if message_of(error) else ""
        raise EnvironmentFailedError(f"{where()} raised {type(error).__name__}{words}.") from error


def step_host(host: HostEnvironment, actions: Int[np.ndarray, " envs"], where: Callable[[], str]) -> HostStep:
    """One step of all environments, as `call` makes it; its rewards and observations must be finite, too."""
    now = call(lambda: host.step(actions), where)
    if not np.isfinite(now.reward).all():
        raise EnvironmentFailedError(NOT_FINITE.format(where(), now.reward[~np.isfinite(now.reward)][0]))
    _require_finite(now.next_observation, where)
    if now.observation is not now.next_observation:
        _require_finite(now.observation, where)
    return now


def begin_host(ask: Callable[[], np.ndarray], where: Callable[[], str]) -> np.ndarray:
    """The first observations of episodes that `ask` begins, as `call` makes it; they must be finite, too."""
    return _require_finite(call(ask, where), where)


def begin_all(asked: list[Callable[[], np.ndarray]], seeds: list[int], when: str) -> np.ndarray:
    """The first observations of episodes that each seed's call begins, with a leading axis of seeds."""
    wheres = [f"The environment of seed {seed}, {when}," for seed in seeds]
    return np.stack([begin_host(ask, lambda w=where: w) for ask, where in zip(asked, wheres, strict=True)])


def _require_finite(observations: np.ndarray, where: Callable[[], str]) -> np.ndarray:
    if observations.dtype.kind == "f" and not np.isfinite(observations).all():
        raise EnvironmentFailedError(f"{where()} gave an observation that is not finite: all its numbers must be.")
    return observations
