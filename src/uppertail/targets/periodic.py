"""Bootstraps from a copy of the network that learns, renewed from time to time."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.schema import settle
from uppertail.targets.base import AnyNetwork, Target
from uppertail.types import PyTree


class NetworkCopy(NamedTuple):
    """The copy, and the rollouts since it was made."""

    network: PyTree
    age: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class Periodic(Target):
    """Bootstraps from a copy of the network, renewed every few rollouts (Mnih et al. 2015).

    Args:
        every: rollouts from one copy to the next, at least 1.

    Examples:
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> class Number(ut.Network):  # stands for a network that learns
        ...     weight: jnp.ndarray
        ...
        ...     def outputs(self, observation):
        ...         return self.weight
        >>> target = ut.Periodic(every=2)
        >>> state = target.init(Number(jnp.array(0.0)))
        >>> for number in (1.0, 2.0, 3.0):
        ...     state = target.after_rollout(state, Number(jnp.array(number)))
        ...     print(float(target.network(state, Number(jnp.array(number))).weight))
        0.0
        2.0
        2.0
    """

    every: int = 32

    def __post_init__(self) -> None:
        settle(self)
        if self.every < 1:
            raise InputError(f"every is {self.every}: use a whole number of rollouts, 1 or more.")

    def init(self, online: Network) -> NetworkCopy:
        return NetworkCopy(jax.tree.map(jnp.copy, online), jnp.zeros((), jnp.int32))

    def network(self, state: NetworkCopy, online: AnyNetwork) -> AnyNetwork:
        del online
        return state.network

    def after_rollout(self, state: NetworkCopy, online: Network) -> NetworkCopy:
        age = state.age + 1
        due = age >= self.every
        copied = jax.tree.map(lambda old, new: jnp.where(due, new, old), state.network, online)
        return NetworkCopy(copied, jnp.where(due, 0, age))
