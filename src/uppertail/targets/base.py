"""The contract of a target: which network gives the bootstrap Z(s', a')."""

import abc
from typing import TypeVar

from uppertail.networks import Network
from uppertail.types import PyTree

AnyNetwork = TypeVar("AnyNetwork", bound=Network)


class Target(abc.ABC):
    """Gives Z(s', a') for the targets r + discount * Z(s', a'); the network that acts is always the online network.

    A target is a frozen dataclass of settings; its state is a tree of arrays.

    Examples:
        >>> import dataclasses
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> class Number(ut.Network):  # stands for a network that learns
        ...     weight: jnp.ndarray
        ...
        ...     def outputs(self, observation):
        ...         return self.weight
        >>> @dataclasses.dataclass(frozen=True)
        ... class AsItBegan(ut.Target):
        ...     def init(self, online):
        ...         return jax.tree.map(jnp.copy, online)
        ...
        ...     def network(self, state, online):
        ...         return state
        >>> target = AsItBegan()
        >>> state = target.init(Number(jnp.array(0.0)))
        >>> online = Number(jnp.array(1.0))
        >>> float(target.network(target.after_update(state, online), online).weight)
        0.0
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
