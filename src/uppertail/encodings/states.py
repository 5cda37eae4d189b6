"""Observations that are integer states. States that share features in their encoding learn together."""

import dataclasses
from typing import Any, Literal

import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from uppertail.encodings.base import Encoding
from uppertail.errors import InputError


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

    @property
    def is_one_hot(self) -> bool:
        return True

    def index(self, encoder: tuple[()], observation: Int[Array, ""]) -> Int[Array, ""]:
        del encoder
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


StateEncoding = Literal["one_hot", "scalar", "thermometer"]  # the names of `--env.encoding`

STATE_ENCODINGS: dict[str, type[OfStates]] = {"one_hot": OneHot, "scalar": Scalar, "thermometer": Thermometer}
