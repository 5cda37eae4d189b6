"""The contract of what makes the steps of a run: a compiled program, or Python and an environment's own code."""

import abc
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from uppertail.agent import Metrics
from uppertail.encodings import Encoding
from uppertail.environments import Environment
from uppertail.errors import InputError
from uppertail.networks import PerActionNetwork
from uppertail.policies import ExplorationPolicy
from uppertail.training.loop import Loop, RunState, StepRecord
from uppertail.types import ReturnRange

EVALUATION_STEPS = 10_000
"""An episode that is played with a learned network ends after so many steps, whatever its environment says."""


Compile = Callable[..., Any]
"""Compiles a function for arguments of the shapes that it is given, as `Driver.compiled` does."""

State = Any
"""The state of all seeds as a driver holds it; `Driver.gathered` is how others see it."""


class Stopwatch:
    """Seconds of a run, those before it was resumed included: of all of it, of compilation, of the training loop."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.before = self.compile = self.training = 0.0

    @property
    def wall(self) -> float:
        """Seconds of the whole run until now."""
        return self.before + time.perf_counter() - self.started

    def state(self) -> dict[str, float]:
        """What a resumed run adds its own times to."""
        return {"wall": self.wall, "compile": self.compile, "training": self.training}

    def add(self, state: Mapping[str, float]) -> None:
        """Adds the times of a run that is resumed."""
        self.before += state["wall"]
        self.compile += state["compile"]
        self.training += state["training"]


class Played(NamedTuple):
    """Episodes that were played with learned networks."""

    returns: Float[np.ndarray, "seeds episodes"]
    lengths: Int[np.ndarray, "seeds episodes"]


class Driver(abc.ABC):
    """Makes the steps of all seeds. It is asked for the range of returns first, and told the loop then.

    Attributes:
        loop: what is done with the steps.
        seconds: to which times are added.
        encoding: how observations enter the network.
        num_actions: number of discrete actions.
        failure: why a host environment could not go on; None if all is well.
        environments: the compiled environments, every array with a leading axis of seeds; None if there are none.
    """

    loop: Loop
    seconds: Stopwatch
    encoding: Encoding
    num_actions: int
    failure: InputError | None = None
    environments: Environment | None = None

    @abc.abstractmethod
    def return_range(self, discount: float) -> ReturnRange:
        """Between which returns the run has to tell apart, over all seeds."""

    @abc.abstractmethod
    def template(self) -> RunState:
        """Shapes and types of the state of all seeds."""

    @abc.abstractmethod
    def start(self) -> State:
        """The state of all seeds before the first step."""

    @abc.abstractmethod
    def gathered(self, state: State, part: Callable[[RunState], Any] = lambda run: run) -> Any:
        """Some part of the state, every array with a leading axis of all seeds; valid until the next `advance`."""

    @abc.abstractmethod
    def advance(
        self, state: State, finished: Bool[np.ndarray, " seeds"] | None = None
    ) -> tuple[State, StepRecord, Metrics]:
        """A chunk: rollouts and their updates; axes [seeds, iterations, steps or updates].

        What is recorded of seeds that are `finished` means nothing: they may go on or stand still. After a failure
        there may be fewer iterations than usual, or none.
        """

    @abc.abstractmethod
    def start_observations(self) -> Array:
        """The first observation of each seed's run."""

    @abc.abstractmethod
    def play(
        self, networks: PerActionNetwork, policy: ExplorationPolicy, keys: Key[Array, " seeds"], episodes: int
    ) -> Played:
        """Episodes with the networks held still."""

    @abc.abstractmethod
    def identity(self) -> dict[str, np.ndarray]:
        """Arrays that are the same if the environments are."""

    @abc.abstractmethod
    def saved(self) -> dict[str, np.ndarray]:
        """What a checkpoint must hold beside the state."""

    @abc.abstractmethod
    def restore(self, arrays: dict[str, np.ndarray], state: RunState) -> tuple[State, str | None]:
        """Goes back to a checkpoint: the state to go on from, and a line if that is not just where the run was."""

    @abc.abstractmethod
    def close(self) -> None:
        """Gives back what the environments hold."""

    def compiled(self, function: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = ()) -> Any:
        """A function, compiled for arguments of these shapes; the time it takes is counted."""
        began = time.perf_counter()
        program = jax.jit(function, donate_argnums=donate).lower(*arguments).compile()
        self.seconds.compile += time.perf_counter() - began
        return program
