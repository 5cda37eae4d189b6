"""The features of observations, as array operations."""

import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from uppertail.encodings import RandomFeatures, Vector
from uppertail.encodings.standardized import Standardized
from uppertail.errors import InputError
from uppertail.export.observations import NEEDED
from uppertail.export.operations import Program


@functools.singledispatch
def features_of(encoding: Any, _encoder: Any, _program: Program) -> Any:
    """The features [n, features] of the observations."""
    raise InputError(f"Observations encoded by {type(encoding).__name__} cannot be exported: {NEEDED}.")


@features_of.register
def _(encoding: Vector, encoder: Any, program: Program) -> Any:
    zero = np.asarray(encoding.scaled(encoder, jnp.zeros(encoding.num_features)))
    slope = np.asarray(encoding.scaled(encoder, jnp.ones(encoding.num_features))) - zero
    return program.seen * slope + zero


@features_of.register
def _(encoding: Standardized, encoder: Any, program: Program) -> Any:
    return program.seen * np.asarray(encoding.per_unit(encoder))


@features_of.register
def _(encoding: RandomFeatures, encoder: Any, program: Program) -> Any:
    scaled = features_of(encoding.vector, encoder.bounds, program)
    return np.cos(scaled @ encoder.frequencies + encoder.phases) * math.sqrt(2 / encoding.count)
