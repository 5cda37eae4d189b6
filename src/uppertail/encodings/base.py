"""What observations are, how they enter the network, and the encodings of integer states."""

import abc
import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.errors import InputError, require_choice
from uppertail.types import PyTree

StateEncoding = Literal["one_hot", "scalar", "thermometer"]  # the names of `--env.encoding`
Scaling = Literal["auto", "declared", "running"]  # the names of `--env.scaling`
Features = Literal["auto", "random", "scaled", "hashed", "one_hot"]  # the names of `--env.features`


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorSettings:
    """How vectors of numbers enter the network.

    Args:
        scaling: by which bounds other observations are brought to [-1, 1]: auto (those seen so far for a Box, else
            those declared), declared or running (those seen so far).
        features: how numbers enter the network: random (features that only nearby observations share), scaled (as they
            are; add --bias true), hashed (each different vector is a state of its own), one_hot (each whole number is
            the name of something, such as a kind of tile) or auto (random where there is a Box; integers that have at
            most 4,096 values together are one state, or numbers, as encoding says; hashed where many of the distinct
            ones of a random policy come again).
        num_features: how many random features, or states where there is a radius.
        length_scale: of random features: distance between observations, as root mean square over the numbers in
            [-1, 1], beyond which they share little.
        feature_norm: sum of the absolute values of the random features; with more than 1 the network learns features of
            its own from them.
        radius: two observations within this distance, as root mean square over their numbers as they are, show one
            state, and others are told apart, so that noise is averaged away; null: they stay numbers.
        hash_size: with hashed, slots of the hash table, one for each different observation; rounded up to a power of 2.
        rounding: with hashed, to multiples of what each number is rounded, since sums in another order differ in their
            last digits; 0: it stays as it is. null: where that is all in which numbers of a random policy differ.
        values: with one_hot, how many values a number can have, from 0 on; larger ones count as the largest.
        left_out: places, from 0, of numbers that count for nothing; null: none, or where near vectors are told from far
            ones those that told nothing of what came next in steps of a random policy.
        action_repeat: for how many steps of the environment each action is taken, unless the episode ends before; their
            rewards add up. null: 1, or for numbers that do not repeat, and have more than 64 values, as many, at most
            4, as change what actions control by about a standard deviation.
    """

    scaling: Scaling = "auto"
    features: Features = "auto"
    num_features: int = 300
    length_scale: float = 1.0
    feature_norm: float = 1.0
    radius: float | None = None
    hash_size: int = 4096
    rounding: tuple[float, ...] | None = None
    values: int = 16
    left_out: tuple[int, ...] | None = None
    action_repeat: int | None = None

    def require_none(self, why: str) -> None:
        """Refuses what judges the numbers of a vector, where observations are none."""
        for name in ("radius", "left_out", "rounding"):
            if given := getattr(self, name):
                value = list(given) if isinstance(given, tuple) else given
                remedy = "leave it out (--env.encoding numbers: several integers stay numbers)"
                raise InputError(f"{name} is {value}, but {why}: {remedy}.")


@dataclasses.dataclass(frozen=True)
class Preferences:
    """The user's choices of how observations enter the network."""

    states: StateEncoding = "one_hot"
    vectors: VectorSettings = VectorSettings()


class Encoding(abc.ABC):
    """Turns one observation into the network's input. Observations that share features learn together.

    An encoding is a frozen dataclass with `features`, or with `is_one_hot` and `index`. What it learns or observes in a
    run is its `encoder`, a tree of arrays that the network carries: layers, bounds of the observations, or nothing.

    Attributes:
        is_one_hot: whether a state is a feature of its own, and every other feature is 0.
    """

    is_one_hot: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def num_features(self) -> int:
        """Length of the network's input."""

    @property
    def image_shape(self) -> tuple[int, int, int] | None:
        """Rows, columns and channels if the features are those of an image, in this order; None: they are not."""
        return None

    @property
    def pixel_shape(self) -> tuple[int, int, int] | None:
        """Rows, columns and channels of `pixels`; None: parts of an observation tell nothing by themselves."""
        return self.image_shape

    def pixels(self, observation: Array) -> Float[Array, " pixels"]:
        """What an observation shows place by place, where it has a `pixel_shape`: an image's pixels, or names."""
        return self.features((), observation)

    def index(self, encoder: PyTree, observation: Array) -> Int[Array, ""]:
        """Which feature of an observation is 1; only where `is_one_hot`."""
        raise TypeError(f"{type(self).__name__} has no index of {observation} with {encoder}.")

    def features(self, encoder: PyTree, observation: Array) -> Float[Array, " features"]:
        """The features of one observation; by default the one at `index` is 1."""
        return jax.nn.one_hot(self.index(encoder, observation), self.num_features)

    @property
    def gain(self) -> float:
        """What `project` multiplies `features` by; 1 by default."""
        return 1.0

    def project(
        self, encoder: PyTree, weight: Float[Array, "features outputs"], observation: Array
    ) -> Float[Array, " outputs"]:
        """The encoded observation times the weight of the first layer; that of a one-hot is a row."""
        if self.is_one_hot:
            return weight[self.index(encoder, observation)]
        return self.gain * (self.features(encoder, observation) @ weight)

    def init(self, key: PRNGKeyArray) -> PyTree:
        """The encoder before the first observation; by default there is none."""
        return ()

    def observe(self, encoder: PyTree, observations: Array) -> PyTree:
        """The encoder after a batch of observations, with one leading axis; by default it stays as it is."""
        return encoder

    def with_observed(self, encoder: PyTree, other: PyTree) -> PyTree:
        """The encoder with what another one observed; by default that is all of it, so the other one."""
        return other

    def seen_bounds(self, encoder: PyTree) -> tuple[Array, Array] | None:
        """The lowest and highest value of each number that was observed; None: it does not keep them."""
        return None

    def remark(self, encoder: PyTree) -> str | None:
        """A note at a run's end, from the encoders of all seeds, whose arrays a seeds' axis leads; None by default."""
        return None


@dataclasses.dataclass(frozen=True)
class OfStates(Encoding):
    """An encoding of integer states: it learns nothing, and keeps nothing of what is observed."""

    num_states: int

    @property
    def num_features(self) -> int:
        return self.num_states


def require_state(encoding: Encoding, observation: object) -> None:
    """Raises InputError unless a number is one of the states: JAX would take an index beyond the last for the last.

    It does nothing for other observations, and within compiled programs, where the number is not known.
    """
    if not isinstance(encoding, OfStates) or isinstance(observation, Tracer):
        return
    state: Any = observation
    if jnp.ndim(state) or not 0 <= state < encoding.num_states:
        raise InputError(f"observation is {observation}: give one state, from 0 to {encoding.num_states - 1}.")


class OneHot(OfStates):
    """A state as a unit vector: two states share nothing but biases."""

    is_one_hot: ClassVar[bool] = True

    def index(self, encoder: PyTree, observation: Int[Array, ""]) -> Int[Array, ""]:
        return observation


class Scalar(OfStates):
    """A state as one number from -1 (the first state) to 1 (the last)."""

    @property
    def num_features(self) -> int:
        return 1

    def features(self, encoder: tuple[()], observation: Int[Array, ""]) -> Float[Array, "1"]:
        return (2.0 * observation.astype(jnp.float32) / max(self.num_states - 1, 1) - 1.0)[None]


class Thermometer(OfStates):
    """State s as s + 1 ones, then zeros: neighbours share all features but one."""

    def features(self, encoder: tuple[()], observation: Int[Array, ""]) -> Float[Array, " features"]:
        return (jnp.arange(self.num_states) <= observation).astype(jnp.float32)


STATE_ENCODINGS: dict[str, type[OfStates]] = {"one_hot": OneHot, "scalar": Scalar, "thermometer": Thermometer}


class ObservationSpace(abc.ABC):
    """What an environment's observations are. A space is a frozen dataclass.

    Examples:
        >>> [issubclass(kind, ut.ObservationSpace) for kind in (ut.States, ut.Numbers, ut.Pixels)]
        [True, True, True]
    """

    @abc.abstractmethod
    def encoding(self, preferences: Preferences) -> Encoding:
        """How an observation enters the network; InputError if the preferences cannot be met."""


@dataclasses.dataclass(frozen=True)
class States(ObservationSpace):
    """An integer state.

    Args:
        count: number of states.
        sizes: of a state that is made of several integers, how many values each has; the last one counts fastest.

    Examples:
        >>> ut.States(count=5)
        States(count=5)
        >>> ut.States(5).has(ut.States(4)), ut.States(6, sizes=(2, 3)).has(ut.States(6, sizes=(3, 2)))
        (True, False)
    """

    count: int
    sizes: tuple[int, ...] = dataclasses.field(default=(), repr=False, compare=False)

    def has(self, other: ObservationSpace) -> bool:
        """Whether a state of another space has the same number here: integers but the first have as many values."""
        return isinstance(other, States) and other.count <= self.count and other.sizes[1:] == self.sizes[1:]

    def encoding(self, preferences: Preferences) -> Encoding:
        preferences.vectors.require_none("each observation is one of several states")
        require_choice("encoding", preferences.states, list(STATE_ENCODINGS))
        return STATE_ENCODINGS[preferences.states](self.count)
