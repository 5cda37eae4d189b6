"""The contract of a learner: how a run's data become return distributions."""

import abc
import dataclasses
from typing import Any, ClassVar, Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.errors import Explained
from uppertail.evidence import EvidenceBuilder, NoEvidence
from uppertail.networks import Network, NetworkBuilder
from uppertail.replay import Replay
from uppertail.targets import Target
from uppertail.types import PyTree, Transition

OnPolicy = Literal["fresh", "all", "none"]
"""The names of `Settings.on_policy`."""


class LearnerState(NamedTuple):
    """What was learned."""

    network: Any  # gives the return distributions of a state
    memory: PyTree  # whatever else the learner keeps: data, statistics, the optimizer's state


class Metrics(NamedTuple):
    """What each update of a rollout reports."""

    loss: Float[Array, " updates"]  # of averages, how far the last sweep moved them, over the tolerance
    gradient_norm: Float[Array, " updates"]  # NaN where there is no gradient
    outside: Float[Array, " updates"]  # share of the targets whose mean the family cannot represent
    sweeps: Float[Array, " updates"]  # over all data; NaN where there are none

    @classmethod
    def of_sweeps(cls, change: Float[Array, ""], sweeps: Int[Array, ""]) -> "Metrics":
        """The report of a learner that averages, once for each rollout."""
        loss = change[None]
        return cls(loss, jnp.full_like(loss, jnp.nan), jnp.zeros_like(loss), sweeps[None].astype(jnp.float32))


class Learner(abc.ABC):
    """Pure functions of an explicit state. A learner is a frozen dataclass.

    Attributes:
        agent: the policy, the family and the discount that it learns for.
    """

    agent: Agent

    @property
    def updates(self) -> int:
        """Rows of `Metrics` for each rollout."""
        return 1

    @property
    def whole_episodes(self) -> bool:
        """Whether it needs the steps of one environment, in their order."""
        return False

    @property
    def asks_cut_soon(self) -> bool:
        """Whether it is told where the discount looks beyond a time limit (`Transition.cut_soon`)."""
        return False

    @property
    def can_refit(self) -> bool:
        """Whether `refitted` keeps what was learned when the range of returns is found to be another one."""
        return False

    def refitted(self, before: "Learner", state: LearnerState) -> LearnerState:
        """The state of a learner whose family was fitted to another range of returns; unchanged by default.

        Args:
            before: the same learner with the family as it was fitted before.
            state: what it learned.
        """
        del before
        return state

    def acting(self, state: LearnerState) -> Network:
        """The network that chooses actions in training; the one that learns, by default."""
        return state.network

    def played(self, state: LearnerState) -> Network:
        """The network that plays after training, and that is kept of a run; the one that learns, by default."""
        return state.network

    def without_data(self, state: LearnerState) -> LearnerState:
        """The part of a state that `acting` and `played` need."""
        return state._replace(memory=())

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


@dataclasses.dataclass(frozen=True)
class Gradients:
    """Parts and settings of learning by gradients; those of `Settings` have the same names.

    Args:
        optimizer: turns gradients into updates: optax's, or an object with the same `init` and `update`.
        sizes: how many values each number of an action has, where what is learned for these is combined; None: each
            action is learned by itself.
        stochastic: whether equal observations and actions may lead to different outcomes.
    """

    network: NetworkBuilder
    replay: Replay
    target: Target
    optimizer: Any
    rollout_steps: int
    updates_per_rollout: int
    batch_size: int
    replay_size: int
    on_policy: OnPolicy = "fresh"
    replay_start: int = 0
    evidence: EvidenceBuilder = dataclasses.field(default_factory=NoEvidence)
    sizes: tuple[int, ...] | None = None
    stochastic: bool = False


class LearnerBuilder(metaclass=Explained):
    """A frozen dataclass of settings, named with `--learner`; it builds the learner of a run.

    Attributes:
        uses_gradients: whether the network, replay buffer, target and step sizes of a run mean anything to it.
        unused: parts and settings of gradient descent that mean nothing to it all the same.

    Examples:
        >>> builders: list[ut.LearnerBuilder] = [ut.LeastSquares(), ut.GradientDescent(), ut.Imitation()]
        >>> [builder.uses_gradients for builder in builders]
        [False, True, True]
    """

    uses_gradients: ClassVar[bool] = False
    unused: ClassVar[tuple[str, ...]] = ()

    def rollout_steps(self, encoding: Encoding) -> int:
        """Environment steps between updates, where the user leaves them open; a run rounds up to whole environments."""
        del encoding
        return 16

    def usual(self, encoding: Encoding) -> dict[str, Any]:
        """Parts and settings of gradient descent, where they are left open, that differ from GradientDescent's."""
        del encoding
        return {}

    def evidence(self, network: NetworkBuilder | None, encoding: Encoding) -> EvidenceBuilder:
        """The evidence beside the network, where it is left open; `network` is None where that is open, too."""
        del network, encoding
        return NoEvidence()

    def network(self, network: NetworkBuilder, encoding: Encoding) -> NetworkBuilder:
        """The network of a run, with its open settings as this learner needs them."""
        return network.for_images() if encoding.image_shape else network

    def family(self, family: Any) -> Any:
        """The family of return distributions, with its open settings as this learner needs them."""
        return family

    @abc.abstractmethod
    def build(self, agent: Agent, gradients: Gradients | None) -> Learner:
        """The learner of an agent.

        Args:
            agent: the policy, the family and the discount that it learns for.
            gradients: parts and settings of learning by gradients; None for a learner that has none.

        Raises:
            InputError: it cannot learn this family or these observations.
        """
