"""The contract of an encoding."""

import abc

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.types import PyTree


class Encoding(abc.ABC):
    """Turns one observation into the network's input. Observations that share features learn together.

    An encoding is a frozen dataclass with `features`, or with `is_one_hot` and `index`. What it learns or observes in a
    run is its `encoder`, a tree of arrays that the network carries: layers, bounds of the observations, or nothing.
    """

    @property
    @abc.abstractmethod
    def num_features(self) -> int:
        """Length of the network's input."""

    @property
    def is_one_hot(self) -> bool:
        """Whether a state is a feature of its own, and every other feature is 0; False by default."""
        return False

    @property
    def image_shape(self) -> tuple[int, int, int] | None:
        """Rows, columns and channels if the features are those of an image, in this order; None: they are not."""
        return None

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

    @property
    def has_features(self) -> bool:
        """Whether least squares can use its features as they are; False where others have to be learned from them."""
        return True

    def init(self, key: PRNGKeyArray) -> PyTree:
        """The encoder before the first observation; by default there is none."""
        del key
        return ()

    def observe(self, encoder: PyTree, observations: Array) -> PyTree:
        """The encoder after a batch of observations, with one leading axis; by default it stays as it is."""
        del observations
        return encoder

    def with_observed(self, encoder: PyTree, other: PyTree) -> PyTree:
        """The encoder with what another one observed; by default that is all of it, so the other one."""
        del encoder
        return other

    def seen_bounds(self, encoder: PyTree) -> tuple[Array, Array] | None:
        """The lowest and highest value of each number that was observed; None: it does not keep them."""
        del encoder
        return None

    def version(self, encoder: PyTree) -> Int[Array, ""]:
        """A number that changes whenever weights on the features lose their meaning; by default they keep it."""
        del encoder
        return jnp.zeros((), jnp.int32)

    def used(self, encoder: PyTree) -> Int[Array, ""]:
        """All features from this one on are 0; by default none is."""
        del encoder
        return jnp.asarray(self.num_features)

    def for_least_squares(self) -> "Encoding":
        """The encoding of the same observations that least squares does best with; by default this one."""
        return self

    def remark(self, encoder: PyTree) -> str | None:
        """A note at a run's end, from the encoders of all seeds, whose arrays a seeds' axis leads; None by default."""
        del encoder
        return None
