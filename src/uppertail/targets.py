"""Targets: which network gives the bootstrap Z(s', a')."""

import abc
import dataclasses
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from uppertail.errors import Explained, InputError
from uppertail.networks import Network
from uppertail.schema import settle, traced
from uppertail.types import PyTree

AnyNetwork = TypeVar("AnyNetwork", bound=Network)


class Target(metaclass=Explained):
    """Gives Z(s', a') for the targets r + discount * Z(s', a'), and says which network acts and which one is kept.

    A target is a frozen dataclass of settings; its state is a tree of arrays.

    Examples:
        >>> [issubclass(kind, ut.Target) for kind in (ut.Online, ut.Periodic, ut.RunningMean)]
        [True, True, True]
    """

    @abc.abstractmethod
    def init(self, online: Network) -> PyTree:
        """The state before the first update; it shares no array with the network that learns."""

    @abc.abstractmethod
    def network(self, state: PyTree, online: AnyNetwork) -> AnyNetwork:
        """The network that bootstraps."""

    def acting(self, state: PyTree, online: AnyNetwork) -> AnyNetwork:
        """The network that chooses actions in training; the one that learns, by default."""
        del state
        return online

    def played(self, state: PyTree, online: AnyNetwork) -> AnyNetwork:
        """The network that plays greedily, and that is kept of a run; the one that learns, by default."""
        del state
        return online

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
        >>> from uppertail.encodings import OneHot
        >>> first, second = (ut.PerAction().init(jax.random.key(seed), OneHot(5), 3, 2) for seed in (0, 1))
        >>> target = ut.Periodic(every=2)
        >>> states = [target.after_rollout(target.init(first), second)]
        >>> states.append(target.after_rollout(states[0], second))
        >>> [bool((state.network.weights[0] == second.weights[0]).all()) for state in states]
        [False, True]
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


class Means(NamedTuple):
    """Two running means of the network."""

    network: PyTree  # bootstraps, and plays greedily
    acting: PyTree  # chooses actions in training


@dataclasses.dataclass(frozen=True)
class RunningMean(Target):
    """Bootstraps from an exponential running mean of the network, moved after each update (Lillicrap et al. 2016).

    The mean is also what plays greedily and what is kept of a run: the last update alone leaves errors that are as
    large as a step of delay, and a policy that does not learn on walks to and fro between two of them
    (docs/decisions/0047).

    Args:
        decay: share of the mean that stays at each update, in [0, 1); 0.99 averages over about 100 updates.
        acting_decay: the same of a second mean, which chooses actions in training; 0: the network that learns acts.

    Examples:
        >>> from uppertail.encodings import OneHot
        >>> first, second = (ut.PerAction().init(jax.random.key(seed), OneHot(5), 3, 2) for seed in (0, 1))
        >>> target = ut.RunningMean(decay=0.75)
        >>> mean = target.network(target.after_update(target.init(first), second), second)
        >>> bool(jnp.allclose(mean.weights[0], 0.75 * first.weights[0] + 0.25 * second.weights[0], atol=1e-6))
        True
    """

    decay: float = traced(0.99)
    acting_decay: float = traced(0.0)

    def __post_init__(self) -> None:
        settle(self)
        for name, example in (("decay", 0.99), ("acting_decay", 0.9)):
            if not 0 <= (value := getattr(self, name)) < 1:
                raise InputError(f"{name} is {value}: use a number in [0, 1), for example {example}.")

    def init(self, online: Network) -> Means:
        kind = type(online)
        if kind.observe is not Network.observe and kind.with_observed is Network.with_observed:
            raise InputError(
                f"{kind.__name__} keeps statistics of its observations, which RunningMean would average: give it the "
                "method with_observed, beside observe (uppertail.EncodedNetwork has both)."
            )
        return Means(*(jax.tree.map(jnp.copy, online) for _ in Means._fields))

    def network(self, state: Means, online: AnyNetwork) -> AnyNetwork:
        return state.network.with_observed(online)  # places and bounds have no mean

    def acting(self, state: Means, online: AnyNetwork) -> AnyNetwork:
        return state.acting.with_observed(online)

    def played(self, state: Means, online: AnyNetwork) -> AnyNetwork:
        return self.network(state, online)

    def after_update(self, state: Means, online: Network) -> Means:
        def toward(mean: Array, now: Array) -> Array:
            step = mean + (1.0 - self.decay) * (now - mean)
            return jnp.where(jnp.isfinite(mean), step, now)  # bounds of observations begin as infinite

        def near(mean: Array, now: Array) -> Array:
            step = now + self.acting_decay * (mean - now)  # with 0 it is the network that learns, to the last bit
            return jnp.where(jnp.isfinite(mean), step, now)

        return Means(jax.tree.map(toward, state.network, online), jax.tree.map(near, state.acting, online))
