"""The contracts of an environment and of its builder, and builders of states and of vectors."""

import abc
import dataclasses
import functools
import math
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from uppertail.capacity import require_memory, size_of
from uppertail.compiling import jitted
from uppertail.encodings import ObservationSpace, Preferences, VectorSettings
from uppertail.encodings.base import StateEncoding
from uppertail.errors import Explained, InputError
from uppertail.records import Success
from uppertail.schema import settle
from uppertail.types import PyTree, ReturnRange, TimeStep

MOST_VALUES = 2**12  # of a number that is a one-hot
MOST_PLACES = 2**30  # of a hash table: the largest power of 2 that an integer of 32 bits can be
MOST_REPEATS = 1_000  # of an action
EVALUATION = 2**31  # added to the seed of a run, it gives the seed of the environments in which that run is evaluated
Frame = np.ndarray | str | None  # a picture [rows, columns, red green blue], a text, or None: shown in a window


class Environment(eqx.Module):
    """A compiled environment: pure functions of explicit state, arrays as leaves. docs/parts.md writes one.

    A run has one for each seed and maps over them with `jax.vmap`; every method here is that of a single one. There is
    no reset inside `step`: the loop resets, so the observation after an episode's last step is the true one.

    Examples:
        >>> environment: ut.Environment = ut.Chain(length=4).build(jax.random.key(0))
        >>> state, first = environment.reset(jax.random.key(1))
        >>> int(first.observation), environment.num_actions
        (0, 2)
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

    def return_range(self, discount: float) -> tuple[Float[Array, ""], Float[Array, ""]] | None:
        """The range of discounted returns that a run has to tell apart, 0 included; None: it is measured."""
        return None

    def require_masks(self, *steps: TimeStep) -> None:
        """Refuses time steps whose masks of allowed actions are of the wrong form, or only in some of them."""
        for mask in (masks := [step.action_mask for step in steps]):
            if (mask is None) != (masks[0] is None):
                raise InputError("Of its reset and its step, one gives an action_mask: give it in both, or in none.")
            if mask is not None and (mask.shape, mask.dtype) != ((self.num_actions,), bool):
                raise InputError(
                    f"action_mask is an array of {mask.dtype}{list(mask.shape)}: give one truth value for each of the "
                    f"{self.num_actions} actions."
                )


class WatchedEnvironment(abc.ABC):
    """One environment that shows itself, at `frames_per_second`."""

    frames_per_second: float
    length = 0  # of the episode so far, as `steps_of` takes it
    action_mask: np.ndarray | None = None  # which actions are allowed now; None: it does not say

    @abc.abstractmethod
    def reset(self, seed: int, episode: int) -> np.ndarray:
        """The first observation of an episode, which is the same each time."""

    @abc.abstractmethod
    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        """The observation and reward of one step, and whether the episode is over; the caller then resets."""

    @abc.abstractmethod
    def frame(self) -> Frame:
        """The picture or text of the current state."""

    def close(self) -> None:  # noqa: B027 (optional)
        """Closes its window; does nothing by default."""


class EnvironmentBuilder(metaclass=Explained):
    """A frozen dataclass of settings, which users name; it builds the environment of each seed.

    Examples:
        >>> builder: ut.EnvironmentBuilder = ut.DeepSea(size=5)
        >>> builder.build(jax.random.key(0)).num_actions, builder.floor_episodes
        (2, 3.5)
    """

    def __post_init__(self) -> None:
        settle(self)

    @property
    def label(self) -> str:
        """The environment's name, for messages and tables: its id if it has one, else its class."""
        return str(vars(self).get("id", type(self).__name__))

    @property
    def note(self) -> str | None:
        """What a user should know before a run; None: nothing."""
        return None

    @property
    def success_return(self) -> float:
        """The undiscounted return from which an episode counts as a success; infinite: success is not defined."""
        return math.inf

    @property
    def success_episodes(self) -> int:
        """How many episodes in a row are judged, by the mean of their returns; 1: each by its own."""
        return 1

    @property
    def criterion(self) -> Success:
        """When episodes are a success, and a seed is solved."""
        return Success(self.success_return, self.success_episodes)

    def steps_of(self, lengths: Int[np.ndarray, "*episodes"]) -> Int[np.ndarray, "*episodes"]:
        """Steps of whole episodes from the lengths that a run counts: of actions, the last of which counts in full."""
        return np.asarray(self.repeats * lengths)

    @property
    def floor_episodes(self) -> float | None:
        """The episode in which an agent of perfect memory first succeeds, on average; None: not known."""
        return None

    @property
    def preferences(self) -> Preferences:
        """The user's choices of how observations enter the network."""
        return Preferences()

    @property
    def known_returns(self) -> ReturnRange | None:
        """The range of discounted returns that a run has to tell apart, if the user gave one."""
        return None

    @property
    def merged(self) -> str | None:
        """A sentence if observations that differ became the same since `note` was made."""
        return None

    @property
    def repeats(self) -> int:
        """For how many steps of the environment each action is taken."""
        return 1

    @property
    def can_repeat(self) -> bool:
        """Whether its actions can be taken several times."""
        return True

    @property
    def rows(self) -> int:
        """How many rows of equal length a picture of its states has; 1: they lie in a line."""
        return 1

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """What pictures call its `actions`, its `states` and the `numbers` of a vector, in order; else numbers."""
        return {}

    @property
    def compiles(self) -> bool:
        """Whether its environments are compiled; else they are of Gymnasium, and Python steps them."""
        return True

    @abc.abstractmethod
    def build(self, key: PRNGKeyArray) -> Environment:
        """The environment of one seed, its random parts drawn from `key`; it takes each action once."""

    def watched(self, pictures: bool, frames_per_second: int | None = None) -> WatchedEnvironment:
        """The environment, to be watched in `pictures`, or else in a window or as texts, by default at its own speed.

        InputError if it cannot be shown in this way, or not at all, as by default.
        """
        raise InputError(
            f"{self.label} draws no pictures, so there is nothing to watch: "
            "`uppertail inspect` and `uppertail report` show what it learns."
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class StateBuilder(EnvironmentBuilder):
    """Builds environments whose observations are integer states.

    Args:
        encoding: how a state enters the network.
    """

    encoding: StateEncoding = "one_hot"

    @property
    def preferences(self) -> Preferences:
        return Preferences(states=self.encoding)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorBuilder(EnvironmentBuilder, VectorSettings):
    """Builds environments whose observations are vectors of numbers; its settings are those of `VectorSettings`.

    Examples:
        >>> ut.RichChain(features="scaled").preferences.vectors.features
        'scaled'
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.values <= MOST_VALUES:
            raise InputError(f"values is {self.values}: use 2 or more, at most {MOST_VALUES}.")
        if not 2 <= self.hash_size <= MOST_PLACES:
            raise InputError(f"hash_size is {self.hash_size}: use 2 places or more, at most 2^30.")
        if not all(0 <= each < math.inf for each in self.rounding or ()):
            raise InputError(f"rounding is {list(self.rounding or ())}: use finite numbers from 0 on, or null.")
        if self.action_repeat is not None and not 1 <= self.action_repeat <= MOST_REPEATS:
            raise InputError(f"action_repeat is {self.action_repeat}: use 1 to {MOST_REPEATS:,}, or leave it out.")

    @property
    def preferences(self) -> Preferences:
        return Preferences(vectors=self)

    def with_settings(self, **settings: Any) -> Self:
        """This builder with other settings; what it was made from, such as an environment of the user's, stays."""
        other = dataclasses.replace(self, **settings)
        for field in dataclasses.fields(self):
            if not field.init:
                object.__setattr__(other, field.name, getattr(self, field.name))
        return other

    @property
    def repeats(self) -> int:
        return self.action_repeat or 1


def discounted_steps(steps: float, discount: float) -> float:
    """The sum of the weights of an episode's steps, which may be endless: 1 + discount + discount^2 + ..."""
    return float(steps) if discount == 1 else (1 - discount**steps) / (1 - discount)


@functools.partial(jitted, static_argnums=2)
def _range(environments: Environment, seed: Int[Array, ""], discount: float) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[seed], environments).return_range(discount)


def widest_range(environments: Environment, discount: float) -> ReturnRange | None:
    """The widest range of returns that compiled environments [seeds] name; None: they name none.

    Large tables take seconds, so Ctrl-C is heard between seeds.
    """
    low, high = math.inf, -math.inf
    if not (arrays := jax.tree.leaves(environments)):
        return None
    for seed in range(arrays[0].shape[0]):
        if (named := _range(environments, seed, discount)) is None:
            return None
        low, high = min(low, float(named[0])), max(high, float(named[1]))
    return ReturnRange(low, high)


def require_tables_fit(builder: EnvironmentBuilder, keys: Key[Array, " seeds"], copies: float = 1.0) -> None:
    """Refuses environments, one for each key, whose arrays do not fit into memory, before any of them is built.

    `copies` says how many copies of these arrays will be held at once.
    """
    tables = copies * size_of(jax.eval_shape(jax.vmap(builder.build), keys))
    require_memory(tables, "The tables of the environments need", "use fewer --seeds or a smaller environment")
