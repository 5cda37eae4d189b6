"""The contract of an environment, and of what builds one."""

import abc
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from uppertail.capacity import require_memory, size_of
from uppertail.encodings import ObservationSpace, Preferences
from uppertail.types import TimeStep


class Environment(eqx.Module):
    """A compiled environment: pure functions of explicit state, arrays as leaves.

    There is no reset inside `step`: the loop resets, so the observation after an episode's last step is the true one.
    """

    @property
    @abc.abstractmethod
    def observations(self) -> ObservationSpace:
        """What is observed in it."""

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """Number of discrete actions."""

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        """The state and first time step of a new episode."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: Any, action: Int[Array, ""]) -> tuple[Any, TimeStep]:
        """The state and time step after an action."""

    @abc.abstractmethod
    def return_range(self, discount: float) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Between which discounted returns a run has to tell apart, 0 included: what a family is fitted to."""


class EnvironmentBuilder(abc.ABC):
    """What a user names: a frozen dataclass of settings that builds the environment of one seed."""

    @property
    @abc.abstractmethod
    def success_return(self) -> float:
        """The undiscounted return from which an episode counts as a success."""

    @property
    @abc.abstractmethod
    def floor_episodes(self) -> float | None:
        """When a memory-perfect agent first succeeds, on average; None where that is not known."""

    @property
    def preferences(self) -> Preferences:
        """What its user wants observations to become; the usual by default."""
        return Preferences()

    @property
    def rows(self) -> int:
        """In how many rows of equal length its states lie in a picture; 1: in a line."""
        return 1

    @abc.abstractmethod
    def build(self, key: PRNGKeyArray) -> Environment:
        """The environment of one seed; what it draws at random, it draws from `key`."""


def require_tables_fit(builder: EnvironmentBuilder, keys: Key[Array, " seeds"], copies: float = 1.0) -> None:
    """Refuses environments that are too large, before any of them is built.

    Args:
        builder: builds them.
        keys: one for each.
        copies: how many times what is built will be held.

    Raises:
        InputError: their arrays do not fit into memory.
    """
    tables = copies * size_of(jax.eval_shape(jax.vmap(builder.build), keys))
    require_memory(tables, "The tables of the environments need", "use fewer seeds or a smaller environment")
