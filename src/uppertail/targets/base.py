"""The contract of a target: which network bootstraps."""

import abc
from typing import TypeVar

from uppertail.networks import Network
from uppertail.types import PyTree

AnyNetwork = TypeVar("AnyNetwork", bound=Network)


class Target(abc.ABC):
    """Which network the targets r + discount * Z(s', a') are made with; what acts is always the online network.

    A target is a frozen dataclass of settings; what it keeps is its state, a tree of arrays.
    """

    @abc.abstractmethod
    def init(self, online: Network) -> PyTree:
        """The state before the first update; it shares no array with the network that learns."""

    @abc.abstractmethod
    def network(self, state: PyTree, online: AnyNetwork) -> AnyNetwork:
        """The network that bootstraps."""

    def after_update(self, state: PyTree, online: Network) -> PyTree:
        """The state after an update of the network that learns; as it was by default."""
        del online
        return state

    def after_rollout(self, state: PyTree, online: Network) -> PyTree:
        """The state after a rollout and its updates; as it was by default."""
        del online
        return state
