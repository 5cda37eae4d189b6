"""The contracts of a driver, which makes the steps of a run, and of a world, the environments of all its seeds."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from uppertail.encodings import ObservationSpace
from uppertail.environments import Environment
from uppertail.errors import InputError
from uppertail.learners import Metrics
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.drivers.groups import Groups
from uppertail.training.drivers.recorder import Recorder
from uppertail.training.loop import Loop, RunState, StepRecord
from uppertail.training.programs import Stopwatch
from uppertail.types import PyTree, ReturnRange

EVALUATION_STEPS = 10_000
"""An episode that is played with a learned network ends after this many steps at the latest."""

State = PyTree
"""The state of all seeds in the driver's own form; others read it through `Driver.gather`."""


class Played(NamedTuple):
    """Episodes that were played with learned networks."""

    returns: Float[np.ndarray, "seeds episodes"]
    lengths: Int[np.ndarray, "seeds episodes"]


class Driver(abc.ABC):
    """Makes the steps of all seeds, and learns from them.

    Attributes:
        groups: the seeds in groups, each with a state of its own.
        failure: why a host environment could not go on; None if none failed.
        reconsider: called once with the range of the first rewards that are not 0, before anything is learned from
            them; returns the loop to go on with. None: it is not called.
        recorder: records return distributions between rollouts; None: nothing is recorded.
    """

    groups: Groups
    failure: InputError | None = None
    reconsider: Callable[[float, float], Loop] | None = None
    recorder: Recorder | None = None

    @abc.abstractmethod
    def template(self) -> RunState:
        """Shapes and types of the state of all seeds."""

    @abc.abstractmethod
    def start(self) -> State:
        """The state of all seeds before the first step."""

    @abc.abstractmethod
    def gather(self, state: State, part: Callable[[RunState], PyTree] = lambda run: run) -> PyTree:
        """Some part of the state, every array with a leading axis of all seeds; valid until the next `advance`."""

    @abc.abstractmethod
    def advance(
        self, state: State, finished: Bool[np.ndarray, " seeds"] | None = None
    ) -> tuple[State, StepRecord, Metrics]:
        """Makes a chunk of rollouts and their updates; records have axes [seeds, iterations, steps or updates].

        Records of seeds that are `finished` mean nothing: these may go on or stand still. After a failure there may be
        fewer iterations than usual, or none.
        """

    @abc.abstractmethod
    def play(self, networks: Network, policy: ExplorationPolicy, keys: Key[Array, " seeds"], episodes: int) -> Played:
        """Plays episodes without further learning."""

    @abc.abstractmethod
    def saved(self) -> dict[str, np.ndarray]:
        """Arrays that a checkpoint must hold beside the state."""

    @abc.abstractmethod
    def restore(self, arrays: dict[str, np.ndarray], state: RunState) -> tuple[State, str | None]:
        """Goes back to a checkpoint; the state to go on from, and a line if that is not exactly the saved one."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends its threads."""


class World(abc.ABC):
    """The environments of all seeds of a run.

    Attributes:
        observations: the space of their observations.
        num_actions: number of discrete actions.
        environments: the compiled environments, every array with a leading axis of seeds; None if there are none.
    """

    observations: ObservationSpace
    num_actions: int
    environments: Environment | None = None

    @abc.abstractmethod
    def return_range(self, discount: float) -> ReturnRange:
        """The range of returns that the run has to tell apart, over all seeds."""

    @abc.abstractmethod
    def start_observations(self) -> Array:
        """The first observation of each seed's run."""

    @abc.abstractmethod
    def identity(self) -> PyTree:
        """Arrays that are equal if the environments are."""

    @abc.abstractmethod
    def driver(self, loop: Loop, seconds: Stopwatch) -> Driver:
        """The driver that makes the steps.

        Args:
            loop: what a run does with its steps.
            seconds: the stopwatch of the run.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Frees the resources of the environments."""
