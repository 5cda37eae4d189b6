"""Uses what one seed learned: actions and return distributions of observations, by programs that are compiled once."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.distributions.members import spread
from uppertail.encodings import require_state
from uppertail.environments import Interface
from uppertail.errors import InputError, message_of, short_text
from uppertail.networks import Network
from uppertail.training.acting import Actor
from uppertail.training.action_returns import ActionReturns, quantiles
from uppertail.types import PyTree

UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)
"""What reading an observation raises that is not one of the environment's."""


@dataclasses.dataclass(frozen=True, eq=False)
class Player:
    """What one seed learned.

    Args:
        agent: the algorithm.
        network: the learned network.
        interface: how observations are read, and how actions are numbered.
    """

    agent: Agent
    network: Network
    interface: Interface

    def act(self, observation: Any) -> int | Int[np.ndarray, " batch"]:
        """The greedy action of an observation, or of each of a batch."""
        seen, batch = self.read(observation)
        return self._numbered((self._greedy_batch if batch else self._greedy)(self.network, seen))

    def explore(self, observation: Any, key: PRNGKeyArray) -> int | Int[np.ndarray, " batch"]:
        """The action of the run's exploration policy, as in the first step of an episode."""
        seen, batch = self.read(observation)
        if batch:
            return self._numbered(self._first_batch(self.network, seen, jax.random.split(key, len(seen))))
        return self._numbered(self._first(self.network, seen, key))

    def returns(self, observation: Any) -> ActionReturns:
        """The return distribution of each action."""
        seen, batch = self.read(observation)
        z, mean, std = (self._returns_batch if batch else self._returns)(self.network, seen)
        quantiles = self._quantiles_batch if batch else self._quantiles
        return ActionReturns.of(self.agent, z, np.asarray(mean), np.asarray(std), quantiles)

    def means(self, observations: Array) -> Float[Array, "batch actions"]:
        """The mean return of each action, of a batch of observations as the network takes them."""
        return jax.vmap(functools.partial(self._mean, self.network))(observations)

    def read(self, observation: Any) -> tuple[np.ndarray, bool]:
        """An observation as the network takes it, or a batch, and which of them it is.

        Raises:
            InputError: it is neither.
        """
        try:
            if self.interface.is_batch(observation):
                return np.stack([self._one(each) for each in observation]), True
            return self._one(observation), False
        except InputError:
            raise
        except UNREADABLE as error:
            raise InputError(
                f"observation is {short_text(observation)}, which is not of this environment ({message_of(error)}): "
                f"give {self._wanted}."
            ) from error

    def _one(self, observation: Any) -> np.ndarray:
        shape = self.interface.reading.shape
        if shape is not None and np.shape(observation) != shape:
            raise ValueError(f"its shape is {np.shape(observation)}")
        array = self.interface.reading.array(observation)
        require_state(self.agent.encoding, array)
        return array

    @property
    def _wanted(self) -> str:
        shape = self.interface.reading.shape
        if shape is None:
            return "one as the environment gives it, or a list of such"
        return f"one of shape {shape}, or a batch of shape {('n', *shape)}".replace("'", "")

    def _numbered(self, action: Array) -> int | np.ndarray:
        return (np.asarray(action) if action.ndim else int(action)) + self.interface.first_action

    def _mean(self, network: Network, observation: Array) -> Float[Array, " actions"]:
        return spread(self.agent.family, self.agent.returns_by_member(network, observation)).mean

    @functools.cached_property
    def _greedy(self) -> Callable[..., Array]:
        return jax.jit(lambda network, seen: jnp.argmax(self._mean(network, seen)))

    @functools.cached_property
    def _greedy_batch(self) -> Callable[..., Array]:
        return jax.jit(jax.vmap(lambda network, seen: jnp.argmax(self._mean(network, seen)), in_axes=(None, 0)))

    @functools.cached_property
    def _first(self) -> Callable[..., Array]:
        actor = Actor(self.agent, self.agent.policy)
        return jax.jit(lambda network, seen, key: actor.first(key, network, seen).action)

    @functools.cached_property
    def _first_batch(self) -> Callable[..., Array]:
        return jax.jit(jax.vmap(self._first, in_axes=(None, 0, 0)))

    @functools.cached_property
    def _returns(self) -> Callable[..., tuple[PyTree, Array, Array]]:
        def of_one(network: Network, seen: Array) -> tuple[PyTree, Array, Array]:
            z = self.agent.returns_by_member(network, seen)
            moments = spread(self.agent.family, z)
            return z, moments.mean, moments.total

        return jax.jit(of_one)

    @functools.cached_property
    def _returns_batch(self) -> Callable[..., tuple[PyTree, Array, Array]]:
        return jax.jit(jax.vmap(self._returns, in_axes=(None, 0)))

    @functools.cached_property
    def _quantiles(self) -> Callable[[PyTree, Array], Array]:
        return jax.jit(functools.partial(quantiles, self.agent.family))

    @functools.cached_property
    def _quantiles_batch(self) -> Callable[[PyTree, Array], Array]:
        return jax.jit(jax.vmap(self._quantiles, in_axes=(0, None)))
