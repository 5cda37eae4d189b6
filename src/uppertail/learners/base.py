"""The contract of a learner: how a run's data become return distributions."""

import abc
from typing import Any, NamedTuple

from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.learners.gradients import Gradients
from uppertail.types import PyTree, Transition


class LearnerState(NamedTuple):
    """What was learned.

    Args:
        network: gives the return distributions of a state; the agent acts on it.
        memory: whatever else the learner keeps: data, statistics, the optimizer's state.
    """

    network: Any
    memory: PyTree


class Metrics(NamedTuple):
    """What each update of a rollout reports.

    Args:
        loss: how far the predictions were from the targets.
        gradient_norm: how far the update moved the network: the norm of the gradient or of the change.
        outside: share of the targets whose mean the family cannot represent.
    """

    loss: Float[Array, " updates"]
    gradient_norm: Float[Array, " updates"]
    outside: Float[Array, " updates"]


class Learner(abc.ABC):
    """Pure functions of an explicit state. A learner is a frozen dataclass."""

    @property
    @abc.abstractmethod
    def agent(self) -> Agent:
        """The policy, the family and the discount that it learns for."""

    @property
    def updates(self) -> int:
        """Rows of `Metrics` for each rollout."""
        return 1

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        """A learner that knows nothing: its distributions are wide.

        Args:
            key: randomness of the start.
            observations: the first observations of the run, with a leading axis.
            num_actions: number of discrete actions.
        """

    @abc.abstractmethod
    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        """The state after a rollout was stored and learned from.

        Args:
            key: randomness of the updates.
            state: the state before.
            fresh: the transitions of the rollout, the oldest first.
            iteration: rollouts before this one.
        """


class LearnerBuilder(abc.ABC):
    """A frozen dataclass of settings, named with `--learner`; it builds the learner of a run.

    Examples:
        >>> import uppertail as ut
        >>> builders: list[ut.LearnerBuilder] = [ut.LeastSquares(), ut.GradientDescent()]
        >>> [builder.uses_gradients for builder in builders]
        [False, True]
    """

    @property
    def members(self) -> int | None:
        """Members of the network that acts; None: it has none."""
        return None

    @property
    def uses_gradients(self) -> bool:
        """Whether the network, replay buffer, target and step sizes of a run mean anything to it."""
        return False

    def encoding(self, encoding: Encoding) -> Encoding:
        """How observations enter, of those encodings that the learner can choose from; by default as they are.

        Args:
            encoding: the one that the environment's observations and the user's settings give.
        """
        return encoding

    def rollout_steps(self, encoding: Encoding) -> int:
        """Environment steps between updates, where the user leaves them open; a run rounds up to whole environments."""
        del encoding
        return 16

    @abc.abstractmethod
    def build(self, agent: Agent, gradients: Gradients | None) -> Learner:
        """The learner of an agent.

        Args:
            agent: the policy, the family and the discount that it learns for.
            gradients: parts and settings of learning by gradients; None for a learner that has none.

        Raises:
            InputError: it cannot learn this family or these observations.
        """
