"""The contract of a target: what bootstraps."""

import abc
from collections.abc import Callable
from typing import Any, TypeVar

from jaxtyping import Array, PRNGKeyArray

from uppertail.networks import Network
from uppertail.types import PyTree, Transition

AnyNetwork = TypeVar("AnyNetwork", bound=Network)

BackedUp = Callable[[Any, PRNGKeyArray, Transition], PyTree]
"""r + discount * Z(s', a') of one transition by each member, with a target in this state: (state, key, transition)."""


class Target(abc.ABC):
    """What the targets r + discount * Z(s', a') are made with; what acts is always the online network.

    A target is a frozen dataclass of settings; what it keeps is its state, a tree of arrays. Most only say which
    network bootstraps; one may also remember what it has backed up before.
    """

    @abc.abstractmethod
    def init(self, online: Network, z: PyTree) -> PyTree:
        """The state before the first update; it shares no array with the network that learns.

        Args:
            online: the network that learns.
            z: any one distribution of the family, for the shapes and types of its parameters.
        """

    @abc.abstractmethod
    def network(self, state: PyTree, online: AnyNetwork) -> AnyNetwork:
        """The network that bootstraps."""

    def after_steps(self, state: PyTree, key: PRNGKeyArray, steps: Transition, backed_up: BackedUp) -> PyTree:
        """The state after a rollout, before anything is learned from it; as it was by default.

        Args:
            state: the state before.
            key: randomness of this call.
            steps: the transitions of the rollout, the oldest first.
            backed_up: backs up one transition.
        """
        del key, steps, backed_up
        return state

    def recall(self, state: PyTree, observation: Array, z: PyTree) -> PyTree:
        """Z(s, .) to bootstrap from, where the network that bootstraps says z; that is all there is by default.

        Args:
            state: the state.
            observation: s.
            z: distributions with leading axes [members, actions].
        """
        del state, observation
        return z

    def after_backups(self, state: PyTree, transitions: Transition, targets: PyTree) -> PyTree:
        """The state after the targets [batch, members] of a minibatch were worked out; as it was by default."""
        del transitions, targets
        return state

    def after_update(self, state: PyTree, online: Network) -> PyTree:
        """The state after an update of the network that learns; as it was by default."""
        del online
        return state

    def after_rollout(self, state: PyTree, online: Network) -> PyTree:
        """The state after a rollout and its updates; as it was by default."""
        del online
        return state
