"""Vectors of numbers in units of their standard deviations."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings.base import Encoding
from uppertail.encodings.vector import Bounds, Vector

GROWTH = 1.25
"""A scale is the largest standard deviation so far, and grows by at least this factor, so that it seldom changes."""

LEAST = 1 / 16
"""The least scale, as a share of the span of a number: one that seldom differs would count for too much."""


class Moments(NamedTuple):
    """What a run has observed of each number."""

    total: Float[Array, ""]
    mean: Float[Array, " entries"]
    squares: Float[Array, " entries"]  # summed squared deviations from the mean
    scale: Float[Array, " entries"]  # what a number is divided by; 0: it has not varied
    bounds: Bounds


@dataclasses.dataclass(frozen=True)
class Standardized(Encoding):
    """Each number over its standard deviation, so that the numbers' extremes do not blur what is usual."""

    vector: Vector

    @property
    def num_features(self) -> int:
        return self.vector.num_features

    def init(self, key: PRNGKeyArray) -> Moments:
        nothing = jnp.zeros(self.num_features)
        return Moments(jnp.zeros(()), nothing, nothing, nothing, self.vector.init(key))

    def observe(self, encoder: Moments, observations: Float[Array, "batch entries"]) -> Moments:
        fresh = observations.shape[0]
        count, bounds = encoder.total + fresh, self.vector.observe(encoder.bounds, observations)
        mean = jnp.mean(observations, axis=0)
        moved = mean - encoder.mean
        squares = jnp.sum(jnp.square(observations - mean[None]), axis=0)
        squares = encoder.squares + squares + jnp.square(moved) * encoder.total * fresh / count
        std = jnp.maximum(jnp.sqrt(squares / count), LEAST * (bounds.high - bounds.low))
        scale = jnp.where(std > encoder.scale, jnp.maximum(std, GROWTH * encoder.scale), encoder.scale)
        return Moments(count, encoder.mean + moved * fresh / count, squares, scale, bounds)

    def features(self, encoder: Moments, observation: Float[Array, " entries"]) -> Float[Array, " features"]:
        """The numbers over their scales; 0 for one that never varied, or that is left out."""
        scale = jax.lax.stop_gradient(encoder.scale)
        scaled = jnp.where(scale > 0, observation / jnp.where(scale > 0, scale, 1.0), 0.0)
        return scaled.at[jnp.array(self.vector.left_out, int)].set(0.0) if self.vector.left_out else scaled

    def per_unit(self, encoder: Moments) -> Float[Array, " entries"]:
        """What each number is multiplied by."""
        scale = jax.lax.stop_gradient(encoder.scale)
        inverse = jnp.where(scale > 0, 1.0 / jnp.where(scale > 0, scale, 1.0), 0.0)
        return inverse.at[jnp.array(self.vector.left_out, int)].set(0.0) if self.vector.left_out else inverse

    def seen_bounds(self, encoder: Moments) -> Bounds:
        return encoder.bounds
