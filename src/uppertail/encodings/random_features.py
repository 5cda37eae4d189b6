"""Vectors of numbers as random features: near observations share them, far ones share nothing."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings.base import Encoding
from uppertail.encodings.vector import Bounds, Vector
from uppertail.errors import InputError
from uppertail.schema import settle

SCALES = (0.5, 1.0, 2.0)  # in units of the length scale that is asked for; of equally many features each


class Waves(NamedTuple):
    """The frequencies and phases that a run draws once, and the bounds of what it observed."""

    frequencies: Float[Array, "entries features"]
    phases: Float[Array, " features"]
    bounds: Bounds


@dataclasses.dataclass(frozen=True)
class RandomFeatures(Encoding):
    """Random Fourier features (Rahimi and Recht 2007): cosines of random directions of the scaled vector.

    The product of two observations' features is exp(- distance^2 / (2 length_scale^2)). They do for continuous
    environments what one-hot states do for finite ones: observations far from all visited ones share nothing with
    them, so their returns stay wide. By default absolute values sum to about 1, as a one-hot's do, so that a step of
    Adam changes as much; hidden units then stay in the linear part of their ELU. With a larger norm they leave it, and
    the network learns features of its own: finer distinctions, but far observations share more (docs/decisions/0008).
    """

    vector: Vector  # how the numbers are brought to a common scale first
    count: int = 300  # number of features
    length_scale: float = 1.0  # root mean square of scaled numbers at which observations begin to differ
    norm: float = 1.0  # sum of the features' absolute values, about

    def __post_init__(self) -> None:
        settle(self)
        if self.count < 1:
            raise InputError(f"num_features is {self.count}: use 1 or more.")
        if not 0 < self.length_scale < math.inf:
            raise InputError(f"length_scale is {self.length_scale}: use a number above 0, for example 0.2.")
        if not 0 < self.norm < math.inf:
            raise InputError(f"feature_norm is {self.norm}: use a number above 0, for example 1 or 100.")

    @property
    def num_features(self) -> int:
        return self.count

    def init(self, key: PRNGKeyArray) -> Waves:
        frequency_key, phase_key = jax.random.split(key)
        entries = self.vector.num_features
        scales = self.length_scale * jnp.array(SCALES)[jnp.arange(self.count) % len(SCALES)]
        return Waves(
            jax.random.normal(frequency_key, (entries, self.count)) / (scales * math.sqrt(self.vector.kept.size))[None],
            jax.random.uniform(phase_key, (self.count,), maxval=2 * math.pi),
            self.vector.init(phase_key),
        )

    def observe(self, encoder: Waves, observations: Float[Array, "batch entries"]) -> Waves:
        return encoder._replace(bounds=self.vector.observe(encoder.bounds, observations))

    def seen_bounds(self, encoder: Waves) -> Bounds:
        return encoder.bounds

    @property
    def gain(self) -> float:
        return self.norm * math.pi / math.sqrt(8 * self.count)

    def features(self, encoder: Waves, observation: Float[Array, " entries"]) -> Float[Array, " features"]:
        """sqrt(2 / n) cos(w'x + b): their products are the kernel; the mean of |cos| is 2 / pi."""
        drawn = jax.lax.stop_gradient(encoder)
        scaled = self.vector.scaled(drawn.bounds, observation)
        return math.sqrt(2 / self.count) * cosine(scaled @ drawn.frequencies + drawn.phases)


def cosine(x: Float[Array, " angles"]) -> Float[Array, " angles"]:
    """The cosine of angles in radians, up to rounding of the angle: a thirtieth of the price of XLA's on a CPU.

    In turns from the nearest whole one, cos(2 pi t) = sin(2 pi (1/4 - |t|)), whose argument is at most a quarter turn:
    there Taylor's series up to the 11th power is as precise as float32 is.
    """
    turns = x / (2 * math.pi)
    angle = 2 * math.pi * (0.25 - jnp.abs(turns - jnp.round(turns)))
    square, series = jnp.square(angle), jnp.zeros_like(x)
    for power in (11, 9, 7, 5, 3):
        series = (series + (-1) ** (power // 2) / math.factorial(power)) * square
    return angle + angle * series
