"""What a run learned as array operations: the greedy policy of one seed.

Every value has a batch axis: observations are [n] or [n, entries], a network's outputs [actions, n, outputs].
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.distributions import Categorical, GaussianMixture
from uppertail.encodings import Landmarks, RandomFeatures, Vector
from uppertail.encodings.base import OfStates
from uppertail.encodings.landmarks import SCALES
from uppertail.errors import InputError
from uppertail.export import operations
from uppertail.export.operations import Program
from uppertail.networks import PerActionNetwork
from uppertail.networks.linear import FeatureReturns, from_powers
from uppertail.training.player import Player

NEEDED = "export needs integer states, or plain numbers with LeastSquares or the network PerAction without a torso"


def program_of(player: Player) -> Program:
    """The policy: `action` [n] and `mean` [n, actions] of `observation`; InputError if it cannot be exported."""
    encoding, interface, reading = player.agent.encoding, player.interface, player.interface.reading
    if reading.shape is None:
        raise InputError(f"The observations of this run are not arrays: {NEEDED}.")
    if isinstance(encoding, OfStates) and reading.shape:
        raise InputError(f"Several integers are one state in this run, unless --env.features is scaled: {NEEDED}.")
    if isinstance(encoding, OfStates):
        first, count = np.array(reading.first), encoding.num_states
        program = Program(first, np.array(first + count - 1))
        table = player.means(jnp.arange(count))
        program.add("rows", table, program.add("subtract", "observation", first), result="mean")
    else:
        entries = np.zeros(math.prod(reading.shape))
        program = Program(entries, entries)
        outputs = outputs_of(player.network, program)
        mean = _mean(player.agent.family, program, outputs)
        program.add("rows", program.add("transpose", mean), 0, result="mean")
    program.add("add", program.add("best", "mean"), interface.first_action, result="action")
    return program


@functools.singledispatch
def features_of(encoding: Any, _encoder: Any, _program: Program) -> str:
    """Adds the features [n, features] of the observations."""
    raise InputError(f"Observations encoded by {type(encoding).__name__} cannot be exported: {NEEDED}.")


@features_of.register
def _(encoding: Vector, encoder: Any, program: Program) -> str:
    if encoding.num_features != program.low.size:
        raise InputError(f"The observations of this run are not plain numbers: {NEEDED}.")
    zero = np.asarray(encoding.scaled(encoder, jnp.zeros(encoding.num_features)))
    slope = np.asarray(encoding.scaled(encoder, jnp.ones(encoding.num_features))) - zero
    as_it_is = (slope == 1) & (zero == 0)  # numbers from 0 to 1
    span = np.where(slope == 0, 1, slope)
    program.low, program.high = np.where(as_it_is, 0, (-1 - zero) / span), np.where(as_it_is, 1, (1 - zero) / span)
    return program.add("add", program.add("multiply", "observation", slope), zero)


@features_of.register
def _(encoding: RandomFeatures, encoder: Any, program: Program) -> str:
    scaled = features_of(encoding.vector, encoder.bounds, program)
    angles = program.add("add", program.add("matmul", scaled, encoder.frequencies), encoder.phases)
    return program.add("multiply", program.add("cos", angles), math.sqrt(2 / encoding.count))


@features_of.register
def _(encoding: Landmarks, encoder: Any, program: Program) -> str:
    scaled = features_of(encoding.vector, encoder.bounds, program)
    points = np.asarray(jax.vmap(encoding.vector.scaled, in_axes=(None, 0))(encoder.bounds, encoder.points))
    entries, norm = points.shape[1], np.square(points).sum(axis=1)
    square = operations.total(program, program.add("multiply", scaled, scaled), entries)
    near = program.add("add", program.add("matmul", scaled, -2 * points.T), norm)
    distance = program.add("maximum", program.add("add", near, square), 0.0)
    kernels = []
    for scale in SCALES:
        narrow = -1 / (2 * entries * (float(encoder.length_scale) * scale) ** 2)
        kernels.append(program.add("exp", program.add("multiply", distance, np.float32(narrow))))
    kernel = functools.reduce(lambda one, other: program.add("add", one, other), kernels)
    return program.add("matmul", kernel, np.asarray(encoder.inverse).T / len(SCALES))


class Outputs(NamedTuple):
    """What a network gives."""

    value: str  # the name of its outputs
    distribution: Callable[[Any, Any], Any]  # the return distribution, of a family, that one action's outputs stand for
    weights: Callable[[Program, str], str]  # adds the weights of bins or components, up to a factor


@functools.singledispatch
def outputs_of(network: Any, _program: Program) -> Outputs:
    """Adds the outputs of a network."""
    raise InputError(f"A network of class {type(network).__name__} cannot be exported: {NEEDED}.")


@outputs_of.register
def _(network: FeatureReturns, program: Program) -> Outputs:
    features = features_of(network.encoding, network.encoder, program)
    value = program.add("add", program.add("matmul", features, network.weights), network.start)
    return Outputs(value, lambda family, each: from_powers(family, network.powers, each), operations.positive)


@outputs_of.register
def _(network: PerActionNetwork, program: Program) -> Outputs:
    value = features_of(network.encoding, network.encoder, program)
    for layer, weights in enumerate(network.weights):
        if layer:
            value = operations.NORMALIZATIONS[network.form.units.normalization](program, value, weights.shape[1])
            value = operations.ACTIVATIONS[network.form.units.activation](program, value)
        value = program.add("matmul", value, weights if layer else weights * network.encoding.gain)
        if network.biases:
            value = program.add("add", value, network.biases[layer][:, None])
    return Outputs(value, lambda family, each: family.from_outputs(each), operations.softmax)


def _mean(family: Any, program: Program, outputs: Outputs) -> str:
    """Adds the mean return [actions, n, 1]: linear in the outputs, or the mean of weighted points."""
    mean = jax.vmap(lambda each: family.mean(outputs.distribution(family, each)))
    zero = mean(jnp.zeros((1, family.num_outputs)))
    slopes = (mean(jnp.eye(family.num_outputs)) - zero)[:, None]
    draws = np.random.default_rng(0).normal(size=(100, family.num_outputs))
    if np.allclose(mean(draws), (draws @ slopes)[:, 0] + zero, rtol=1e-4, atol=1e-4 * float(np.abs(slopes).max())):
        return program.add("add", program.add("matmul", outputs.value, slopes), zero)
    scores, points, count = points_of(family, program, outputs.value)
    weights = outputs.weights(program, scores)
    sums = (operations.total(program, each, count) for each in (program.add("multiply", weights, points), weights))
    return program.add("divide", *sums)


@functools.singledispatch
def points_of(family: Any, _program: Program, _outputs: str) -> tuple[str, Any, int]:
    """The scores of a family's bins or components, their returns, and how many there are."""
    raise InputError(f"The mean of {type(family).__name__} is not linear in a network's outputs, so it has no export.")


@points_of.register
def _(family: Categorical, _program: Program, outputs: str) -> tuple[str, Any, int]:
    return outputs, family.centers, family.bins


@points_of.register
def _(family: GaussianMixture, program: Program, outputs: str) -> tuple[str, Any, int]:
    count, pick = family.components, np.eye(family.num_outputs)
    start = np.linspace(-family.spread, family.spread, count)
    means = program.add("add", program.add("matmul", outputs, pick[:, count : 2 * count]), start)
    return program.add("matmul", outputs, pick[:, :count]), program.add("multiply", means, family.unit), count
