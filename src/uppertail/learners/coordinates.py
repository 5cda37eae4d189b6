"""The coordinates of return distributions that a table averages."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class Coordinates:
    """Those of a family, but the variance in place of a spread beside a mean.

    Then the standard errors of independent steps add up as they should (O'Donoghue et al. 2018).
    """

    family: Any

    @property
    def is_mean(self) -> Bool[np.ndarray, " outputs"]:
        """Which coordinates are the mean return."""
        return np.array(self.family.is_mean)

    @property
    def is_spread(self) -> Bool[np.ndarray, " outputs"]:
        """Which coordinates are a spread beside a mean."""
        return self.is_mean.any() & ~self.is_mean

    @property
    def powers(self) -> Float[np.ndarray, " outputs"]:
        """What each coordinate of the family is raised to."""
        return np.where(self.is_spread, 2.0, 1.0).astype(np.float32)

    def of(self, z: PyTree) -> Float[Array, " outputs"]:
        """The coordinates of one distribution."""
        plain = self.family.coordinates(z)
        return plain**self.powers if self.is_spread.any() else plain

    def roots(self, vectors: Float[Array, "*batch outputs"]) -> Float[Array, "*batch outputs"]:
        """The coordinates before they were raised to their powers."""
        if not self.is_spread.any():
            return vectors
        exponents = np.broadcast_to(self.powers, vectors.shape)
        return jnp.where(exponents == 1, vectors, jnp.maximum(vectors, 0.0) ** (1 / exponents))

    def distribution(self, vector: Float[Array, " outputs"]) -> PyTree:
        """The valid distribution nearest to these coordinates."""
        return self.family.from_coordinates(self.roots(vector))

    def mean(self, vector: Float[Array, " outputs"]) -> Float[Array, ""]:
        """The mean of that distribution, in units of return."""
        return self.family.mean(self.distribution(vector))
