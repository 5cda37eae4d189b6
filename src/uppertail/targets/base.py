"""The contract of a target: which network, or which memory, the learner bootstraps from."""

import abc
from collections.abc import Callable
from typing import TypeVar

from jaxtyping import Array, PRNGKeyArray

from uppertail.networks import Network
from uppertail.types import PyTree, Transition

AnyNetwork = TypeVar("AnyNetwork", bound=Network)

BackUp = Callable[[PyTree, PRNGKeyArray, Transition, PyTree], PyTree]
"""r + discount * Z(s', a') of one transition by each member: (state, key, transition, predicted). The state is the
target's; predicted is Z(s', .) by the network that bootstraps."""


class Target(abc.ABC):
    """Gives Z(s', a') for the targets r + discount * Z(s', a'); the network that acts is always the online network.

    A target is a frozen dataclass of settings; its state is a tree of arrays. Most only choose the network that
    bootstraps; one may also remember earlier backups.

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
        ...     def init(self, online, z):
        ...         return jax.tree.map(jnp.copy, online)
        ...
        ...     def network(self, state, online):
        ...         return state
        >>> target = AsItBegan()
        >>> state = target.init(Number(jnp.array(0.0)), None)
        >>> online = Number(jnp.array(1.0))
        >>> float(target.network(target.after_update(state, online), online).weight)
        0.0
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

    def after_steps(
        self, state: PyTree, key: PRNGKeyArray, steps: Transition, predicted: PyTree, back_up: BackUp
    ) -> PyTree:
        """The state after a rollout, before anything is learned from it; as it was by default.

        Args:
            state: the state before.
            key: randomness of this call.
            steps: the transitions of the rollout, the oldest first.
            predicted: Z(s', .) of each by the network that bootstraps, with axes [steps, members, actions].
            back_up: backs up one transition.
        """
        del key, steps, predicted, back_up
        return state

    def recall(self, state: PyTree, observation: Array, z: PyTree) -> PyTree:
        """Z(s, .) to bootstrap from, given the prediction z of the network that bootstraps; z itself by default.

        Args:
            state: the state.
            observation: s.
            z: distributions with leading axes [members, actions].
        """
        del state, observation
        return z

    def after_backups(self, state: PyTree, transitions: Transition, targets: PyTree) -> PyTree:
        """The state after the targets [batch, members] of a minibatch were computed; as it was by default."""
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
