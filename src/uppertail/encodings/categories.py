"""Numbers that are names of things, such as the kinds of tiles in a grid: each is a one-hot."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from uppertail.encodings.base import Encoding
from uppertail.encodings.vector import Vector
from uppertail.errors import InputError


@dataclasses.dataclass(frozen=True)
class Categories(Encoding):
    """Each whole number as a one-hot of its value; numbers that are declared to lie between 0 and 1 stay as they are.

    A value above the highest that has a place counts as that one.

    Args:
        vector: the numbers and their declared bounds.
        values: how many values a number has a place for, from 0 on.
    """

    vector: Vector
    values: int

    @property
    def is_name(self) -> np.ndarray:
        """Which of the numbers that count are names."""
        kept, (low, high) = self.vector.kept, (np.array(each) for each in (self.vector.low, self.vector.high))
        return ~((low == 0) & (high == 1))[kept]

    @property
    def num_features(self) -> int:
        return int(np.where(self.is_name, self.values, 1).sum())

    @property
    def pixel_shape(self) -> tuple[int, int, int] | None:
        return (1, 1, self.is_name.size) if self.is_name.any() else None

    def pixels(self, observation: Float[Array, " numbers"]) -> Float[Array, " kept"]:
        """The numbers that count, as they are."""
        if observation.shape != (count := len(self.vector.low),):
            raise InputError(f"observation has the shape {observation.shape}: give one of shape ({count},).")
        return observation[self.vector.kept].astype(jnp.float32)

    def features(self, encoder: tuple[()], observation: Float[Array, " numbers"]) -> Float[Array, " features"]:
        numbers, is_name = self.pixels(observation), self.is_name
        names = jnp.clip(jnp.round(numbers[is_name]), 0, self.values - 1).astype(jnp.int32)
        one_hot = jax.nn.one_hot(names, self.values)
        return jnp.concatenate([numbers[~is_name], one_hot.reshape(-1)])
