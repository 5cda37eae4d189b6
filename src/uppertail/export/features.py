"""The features of observations, as array operations."""

import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from uppertail.encodings import Categories, Image, RandomFeatures, Vector
from uppertail.encodings.standardized import Standardized
from uppertail.errors import InputError
from uppertail.export.observations import NEEDED
from uppertail.export.operations import Program
from uppertail.export.tables import place_of
from uppertail.export.units import units_of
from uppertail.networks.layers import Convolutions, Dense, Learned, padding


@functools.singledispatch
def features_of(encoding: Any, encoder: Any, program: Program) -> Any:
    """The features [n, features] of the observations; where each state has one of its own, that is 1."""
    if not encoding.is_one_hot:
        raise InputError(f"Observations encoded by {type(encoding).__name__} cannot be exported: {NEEDED}.")
    place = program.add("reshape", place_of(encoding, encoder, program), [-1, 1])
    return program.add("float32", np.equal(place, np.arange(encoding.num_features)))


@features_of.register
def _(encoding: Vector, encoder: Any, program: Program) -> Any:
    zero = np.asarray(encoding.scaled(encoder, jnp.zeros(encoding.num_features)))
    slope = np.asarray(encoding.scaled(encoder, jnp.ones(encoding.num_features))) - zero
    return program.seen * slope + zero


@features_of.register
def _(encoding: Categories, _encoder: Any, program: Program) -> Any:
    kept, is_name = encoding.vector.kept, encoding.is_name
    numbers = program.add("columns", program.seen, np.repeat(kept[is_name], encoding.values))
    value = np.tile(np.arange(encoding.values, dtype=np.float32), is_name.sum())
    names = np.equal(np.minimum(np.maximum(np.rint(numbers), 0.0), encoding.values - 1.0), value)
    return program.add("beside", program.add("columns", program.seen, kept[~is_name]), program.add("float32", names))


@features_of.register
def _(encoding: Standardized, encoder: Any, program: Program) -> Any:
    return program.seen * np.asarray(encoding.per_unit(encoder))


@features_of.register
def _(encoding: Image, _encoder: Any, program: Program) -> Any:
    pixels = program.add("float32", program.seen) / encoding.peak
    if encoding.channels_first:
        pixels = program.add("transpose", pixels, [0, 2, 3, 1])
    return program.add("reshape", pixels, [-1, encoding.num_features])


@features_of.register
def _(encoding: Convolutions, encoder: Learned, program: Program) -> Any:
    below = features_of(encoding.below, encoder.below, program)
    image = program.add("transpose", program.add("reshape", below, [-1, *encoding.shape_below]), [0, 3, 1, 2])
    sides = encoding.shape_below[:2]
    for place, kernels in enumerate(encoder.weights):
        biases = encoder.biases[place] if encoder.biases else np.zeros(kernels.shape[-1])
        pads = np.transpose([padding(side, encoding.stride) for side in sides]).ravel()
        ordered = np.transpose(kernels, (3, 2, 0, 1))
        sums = program.add("convolve", image, ordered, biases, [encoding.stride] * 2, pads)
        sides = [math.ceil(side / encoding.stride) for side in sides]
        count = math.prod(shape := (len(ordered), *sides))
        units = units_of(encoding.units, program.add("reshape", sums, [-1, count]), count)
        image = program.add("reshape", units, [-1, *shape])
    return program.add("reshape", program.add("transpose", image, [0, 2, 3, 1]), [-1, encoding.num_features])


@features_of.register
def _(encoding: Dense, encoder: Learned, program: Program) -> Any:
    values, factor = features_of(encoding.below, encoder.below, program), encoding.below.gain
    for place, weights in enumerate(encoder.weights):
        values = values @ (weights * factor)
        values = values + encoder.biases[place] if encoder.biases else values
        values, factor = units_of(encoding.units, values, weights.shape[1]), 1.0
    return values


@features_of.register
def _(encoding: RandomFeatures, encoder: Any, program: Program) -> Any:
    scaled = features_of(encoding.vector, encoder.bounds, program)
    return np.cos(scaled @ encoder.frequencies + encoder.phases) * math.sqrt(2 / encoding.count)
