"""How an observation enters the network. What states share there, they learn together."""

import abc
import dataclasses
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Encoding(abc.ABC):
    """Turns one observation into the network's input. An encoding is a frozen dataclass."""

    @property
    @abc.abstractmethod
    def num_features(self) -> int:
        """Length of the network's input."""

    @abc.abstractmethod
    def project(self, weight: Float[Array, "features outputs"], observation: Array) -> Float[Array, " outputs"]:
        """The encoded observation times the weight of the first layer."""


@dataclasses.dataclass(frozen=True)
class OneHot(Encoding):
    """A state as a unit vector: two states share nothing but biases. The product is a row lookup."""

    num_states: int

    @property
    def num_features(self) -> int:
        return self.num_states

    def project(
        self, weight: Float[Array, "features outputs"], observation: Int[Array, ""]
    ) -> Float[Array, " outputs"]:
        return weight[observation]


@dataclasses.dataclass(frozen=True)
class Scalar(Encoding):
    """A state as one number from -1 (the first state) to 1 (the last)."""

    num_states: int

    @property
    def num_features(self) -> int:
        return 1

    def project(
        self, weight: Float[Array, "features outputs"], observation: Int[Array, ""]
    ) -> Float[Array, " outputs"]:
        return (2.0 * observation.astype(jnp.float32) / max(self.num_states - 1, 1) - 1.0) * weight[0]


@dataclasses.dataclass(frozen=True)
class Thermometer(Encoding):
    """State s as s + 1 ones, then zeros: neighbours share all features but one."""

    num_states: int

    @property
    def num_features(self) -> int:
        return self.num_states

    def project(
        self, weight: Float[Array, "features outputs"], observation: Int[Array, ""]
    ) -> Float[Array, " outputs"]:
        return (jnp.arange(self.num_states) <= observation).astype(jnp.float32) @ weight


StateEncoding = Literal["one_hot", "scalar", "thermometer"]
"""The names of `--env.encoding`."""

STATE_ENCODINGS = {"one_hot": OneHot, "scalar": Scalar, "thermometer": Thermometer}
"""Encodings of an integer state, by name."""
