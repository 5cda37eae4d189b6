"""The contract of a driver: the environments of all seeds, and what makes their steps."""

import abc
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from uppertail.encodings import ObservationSpace
from uppertail.environments import FiniteMDP, Say
from uppertail.learners import Learner, LearnerState, Metrics
from uppertail.masks import ActionMask
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.loop import Loop, RunState, StepRecord
from uppertail.training.process import StopRequest
from uppertail.training.programs import Groups, Programs
from uppertail.types import PyTree

EVALUATION_STEPS = 10_000  # an episode that is played with a learned network ends after this many steps at the latest

State = list[RunState]
"""The state of all seeds, of each group its own; others read it through `Driver.gather`."""

Refit = Callable[[float, float], Loop]
"""Takes the range of the first rewards that are not 0; returns the loop whose distribution is fitted to it."""


class Played(NamedTuple):
    """Episodes that were played with learned networks."""

    returns: Float[np.ndarray, "seeds episodes"]
    lengths: Int[np.ndarray, "seeds episodes"]  # as `steps_of` takes them
    idle: Float[np.ndarray, "seeds episodes"] | None = None  # share of actions that changed nothing; None: not counted


class Driver(abc.ABC):
    """The environments of all seeds; makes their steps, and learns from them."""

    observations: ObservationSpace
    num_actions: int
    environments: PyTree = None  # the compiled ones, every array with a leading axis of seeds
    first: Array  # the first observation of each seed's run
    first_mask: ActionMask = None  # which actions are allowed there
    identity: PyTree  # arrays that are equal if the environments are
    groups: Groups  # of seeds, each with a state of its own
    failure: str | None = None  # why an environment could not go on
    stop: StopRequest = StopRequest()  # of the user
    say: Say | None = None  # is called with a line if playing takes long
    programs: Programs  # that are compiled for it
    loop: Loop  # after `use`
    iterations: int  # of a chunk, after `use`
    template: RunState  # shapes and types of the state of all seeds, after `use`

    def table(self) -> FiniteMDP | None:
        """The table of an environment such as theirs, the same whatever the seeds; by default there is none."""
        return None

    @property
    def remark(self) -> str | None:
        """A sentence for the user, at the end, about the environments; None by default."""
        return None

    @abc.abstractmethod
    def begin(self) -> None:
        """Opens the environments and begins their episodes; comes before all below."""

    @abc.abstractmethod
    def release(self) -> None:
        """Closes the environments of training, after its last step: there may be room for no others beside them."""

    @abc.abstractmethod
    def use(self, loop: Loop, refit: Refit | None) -> None:
        """Takes what to do with the steps; comes before what is below.

        `refit` is called once, before anything is learned from a reward that is not 0; None: it is not called.
        """

    def refit(self, state: State, loop: Loop) -> State:
        """The state to go on from with a loop whose distribution is fitted to another range of returns."""
        refit = functools.partial(self.programs.call, _refitted, (self.loop.learner, loop.learner))
        self.use(loop, None)

        def refitted(run: RunState) -> RunState:
            best = run.best and run.best._replace(network=refit(run.learned._replace(network=run.best.network)).network)
            return run._replace(learned=refit(run.learned), best=best)

        return [*map(refitted, state)]

    def compared(self, state: State, returns: Float[np.ndarray, " seeds"]) -> State:
        """The state with the best networks, after greedy episodes of now had these mean returns."""
        of_groups = zip(state, self.groups.split(returns.astype(np.float32)), strict=True)
        compare = functools.partial(self.programs.call, Loop.compared, self.loop)
        return [run._replace(best=compare(self.loop.without_data(run), mean)) for run, mean in of_groups]

    @abc.abstractmethod
    def start(self) -> State:
        """The state of all seeds before the first step."""

    def begun_with(self, state: State, learned: LearnerState) -> State:
        """The state before the first step with what all seeds learned earlier."""
        of_groups = zip(state, self.groups.split(learned), strict=True)
        return [run._replace(learned=each) for run, each in of_groups]

    @abc.abstractmethod
    def gather(self, state: State, part: Callable[[RunState], PyTree] = lambda run: run) -> PyTree:
        """Some part of the state, every array with a leading axis of all seeds; valid until the next `advance`."""

    @abc.abstractmethod
    def advance(
        self, state: State, finished: Bool[np.ndarray, " seeds"] | None = None, iterations: int | None = None
    ) -> tuple[State, StepRecord, Metrics]:
        """Makes rollouts and their updates, a chunk of them or fewer.

        Records, with axes [seeds, iterations, steps or updates], mean nothing for seeds that are `finished`: these may
        go on or stand still. After a failure, or once the user stops the run, there may be fewer iterations,
        or none.
        """

    @abc.abstractmethod
    def play(self, networks: Network, policy: ExplorationPolicy, episodes: int) -> Played:
        """Plays episodes of each seed without further learning; OutOfTimeError: they take long, and a signal came."""

    @abc.abstractmethod
    def saved(self) -> dict[str, np.ndarray]:
        """Arrays that a checkpoint must hold beside the state."""

    @abc.abstractmethod
    def restore(self, arrays: dict[str, np.ndarray], state: RunState) -> tuple[State, str | None]:
        """Goes back to a checkpoint; the state to go on from, and a line if that is not exactly the saved one."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends threads, and frees the resources of the environments."""


def _refitted(learners: tuple[Learner, Learner], learned: LearnerState) -> LearnerState:
    """What was learned, after the first learner's family was fitted to another range of returns."""
    before, now = learners
    return now.refitted(before, learned)
