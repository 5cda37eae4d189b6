"""The contract of a target: which network gives the bootstrap Z(s', a'); and the plainest one."""

import abc
import dataclasses
from typing import TypeVar

from uppertail.networks import Network
from uppertail.types import PyTree

AnyNetwork = TypeVar("AnyNetwork", bound=Network)


class Target(abc.ABC):
    """Gives Z(s', a') for the targets r + discount * Z(s', a'); the network that acts is always the online network.

    A target is a frozen dataclass of settings; its state is a tree of arrays.

    Examples:
        >>> import uppertail as ut
        >>> [issubclass(kind, ut.Target) for kind in (ut.Online, ut.Periodic, ut.RunningMean)]
        [True, True, True]
    """

    @abc.abstractmethod
    def init(self, online: Network) -> PyTree:
        """The state before the first update; it shares no array with the network that learns."""

    @abc.abstractmethod
    def network(self, state: PyTree, online: AnyNetwork) -> AnyNetwork:
        """The network that bootstraps."""

    def after_update(self, state: PyTree, online: Network) -> PyTree:
        """The state after an update of the network that learns; unchanged by default."""
        del online
        return state

    def after_rollout(self, state: PyTree, online: Network) -> PyTree:
        """The state after a rollout and its updates; unchanged by default."""
        del online
        return state


@dataclasses.dataclass(frozen=True)
class Online(Target):
    """Bootstraps from the network that learns, as in the paper: new values travel back at once.

    Examples:
        >>> import jax
        >>> import uppertail as ut
        >>> from uppertail.encodings import OneHot
        >>> network = ut.PerAction().init(jax.random.key(0), OneHot(5), num_actions=3, num_outputs=2)
        >>> ut.Online().network((), network) is network
        True
    """

    def init(self, online: Network) -> tuple[()]:
        del online
        return ()

    def network(self, state: tuple[()], online: AnyNetwork) -> AnyNetwork:
        del state
        return online
