"""Observations that are integer states. States that share features in their encoding learn together."""

import dataclasses
from typing import Any, Literal

import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from uppertail.encodings.base import Encoding
from uppertail.errors import InputError, require_choice


@dataclasses.dataclass(frozen=True)
class OfStates(Encoding):
    """An encoding of integer states: it learns nothing, and keeps nothing of what is observed."""

    num_states: int

    @property
    def num_features(self) -> int:
        return self.num_states


def require_state(encoding: Encoding, observation: object) -> None:
    """Checks that a number is one of the states, since JAX would take an index beyond the last state for the last.

    It does nothing for other observations, and within compiled programs, where the number is not known.

    Raises:
        InputError: there is no such state.
    """
    if not isinstance(encoding, OfStates) or isinstance(observation, Tracer):
        return
    state: Any = observation
    if jnp.ndim(state) or not 0 <= state < encoding.num_states:
        raise InputError(f"observation is {observation}: give one state, from 0 to {encoding.num_states - 1}.")


class OneHot(OfStates):
    """A state as a unit vector: two states share nothing but biases. The product is a row lookup."""

    @property
    def is_one_hot(self) -> bool:
        return True

    def index(self, encoder: tuple[()], observation: Int[Array, ""]) -> Int[Array, ""]:
        del encoder
        return observation

    def project(
        self, encoder: tuple[()], weight: Float[Array, "features outputs"], observation: Int[Array, ""]
    ) -> Float[Array, " outputs"]:
        return weight[observation]


class Scalar(OfStates):
    """A state as one number from -1 (the first state) to 1 (the last)."""

    @property
    def num_features(self) -> int:
        return 1

    def project(
        self, encoder: tuple[()], weight: Float[Array, "features outputs"], observation: Int[Array, ""]
    ) -> Float[Array, " outputs"]:
        return (2.0 * observation.astype(jnp.float32) / max(self.num_states - 1, 1) - 1.0) * weight[0]


class Thermometer(OfStates):
    """State s as s + 1 ones, then zeros: neighbours share all features but one."""

    def project(
        self, encoder: tuple[()], weight: Float[Array, "features outputs"], observation: Int[Array, ""]
    ) -> Float[Array, " outputs"]:
        return (jnp.arange(self.num_states) <= observation).astype(jnp.float32) @ weight


StateEncoding = Literal["one_hot", "scalar", "thermometer"]  # the names of `--env.encoding`

STATE_ENCODINGS: dict[str, type[OfStates]] = {"one_hot": OneHot, "scalar": Scalar, "thermometer": Thermometer}
"""Encodings of an integer state, by name."""


def state_encoding(name: StateEncoding, num_states: int) -> OfStates:
    """The encoding of this name.

    Raises:
        InputError: there is no such encoding.
    """
    require_choice("encoding", name, list(STATE_ENCODINGS))
    return STATE_ENCODINGS[name](num_states)
