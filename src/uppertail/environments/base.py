"""The contracts of an environment and of its builder."""

import abc

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from uppertail.capacity import require_memory, size_of
from uppertail.encodings import ObservationSpace, Preferences
from uppertail.types import PyTree, TimeStep


class Environment(eqx.Module):
    """A compiled environment: pure functions of explicit state, arrays as leaves.

    There is no reset inside `step`: the loop resets, so the observation after an episode's last step is the true one.
    """

    @property
    @abc.abstractmethod
    def observations(self) -> ObservationSpace:
        """The space of its observations."""

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """Number of discrete actions."""

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray) -> tuple[PyTree, TimeStep]:
        """The state and first time step of a new episode."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        """The state and time step after an action."""

    @abc.abstractmethod
    def return_range(self, discount: float) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The range of discounted returns that a run has to tell apart, 0 included; families are fitted to it."""


class EnvironmentBuilder(abc.ABC):
    """A frozen dataclass of settings, which users name; it builds the environment of each seed.

    Examples:
        >>> import dataclasses
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> @dataclasses.dataclass(frozen=True)
        ... class Bandit(ut.EnvironmentBuilder):
        ...     success_return, floor_episodes = 1.0, 1.5
        ...
        ...     def build(self, key):
        ...         good = jax.random.randint(key, (), 0, 2)  # each seed has its own
        ...         return ut.FiniteMDP(
        ...             next_state=jnp.zeros((1, 2, 1), int),
        ...             reward=jax.nn.one_hot(good, 2)[None, :, None],
        ...             terminated=jnp.ones((1, 2, 1), bool),
        ...             probability=jnp.ones((1, 2, 1)),
        ...             start_state=jnp.zeros(1, int),
        ...             start_probability=jnp.ones(1),
        ...             time_limit=1,
        ...         )
        >>> float(Bandit().build(jax.random.key(0)).reward.sum())
        1.0
    """

    @property
    @abc.abstractmethod
    def success_return(self) -> float:
        """The undiscounted return from which an episode counts as a success."""

    @property
    @abc.abstractmethod
    def floor_episodes(self) -> float | None:
        """The episode in which an agent of perfect memory first succeeds, on average; None where that is not known."""

    @property
    def preferences(self) -> Preferences:
        """The user's choices of how observations enter the network."""
        return Preferences()

    @property
    def rows(self) -> int:
        """How many rows of equal length a picture of its states has; 1: they lie in a line."""
        return 1

    @abc.abstractmethod
    def build(self, key: PRNGKeyArray) -> Environment:
        """The environment of one seed, its random parts drawn from `key`."""


def discounted_steps(steps: float, discount: float) -> float:
    """The sum of the weights of an episode's steps, which may be endless: 1 + discount + discount^2 + ..."""
    return float(steps) if discount == 1 else (1 - discount**steps) / (1 - discount)


def require_tables_fit(builder: EnvironmentBuilder, keys: Key[Array, " seeds"], copies: float = 1.0) -> None:
    """Refuses environments that are too large, before any of them is built.

    Args:
        builder: builds them.
        keys: one for each.
        copies: how many copies of the tables will be held at once.

    Raises:
        InputError: their arrays do not fit into memory.
    """
    tables = copies * size_of(jax.eval_shape(jax.vmap(builder.build), keys))
    require_memory(tables, "The tables of the environments need", "use fewer seeds or a smaller environment")
