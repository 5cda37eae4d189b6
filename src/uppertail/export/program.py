"""What a run learned as array operations: the greedy policy of one seed.

Every value has a batch axis: observations are [n] or [n, entries], a network's outputs [actions, n, outputs].
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass
from uppertail.distributions.categorical import TINY as LEAST_MASS
from uppertail.encodings import HashedNumbers, Landmarks, Nearest, RandomFeatures, Vector
from uppertail.encodings.base import OfStates
from uppertail.encodings.landmarks import SCALES
from uppertail.encodings.standardized import Standardized
from uppertail.errors import InputError
from uppertail.evidence import MixedNetwork
from uppertail.evidence.kernel_counts import KernelEvidence
from uppertail.export.operations import Program
from uppertail.learners.regression import FeatureReturns, from_powers
from uppertail.networks import PerActionNetwork, TwinNetwork
from uppertail.networks.layers import TINY, Activation, Normalization
from uppertail.networks.twin import UNITS
from uppertail.training.player import Player

NEEDED = "export needs integer states, or plain numbers by default, with LeastSquares or with PerAction without a torso"


def program_of(player: Player) -> Program:
    """The policy: `action` [n, ...] and `mean` [n, actions] of `observation`; InputError if it cannot be exported."""
    encoding, interface, reading = player.agent.encoding, player.interface, player.interface.reading
    if player.agent.has_masks:
        raise InputError(
            "This environment says which actions are allowed, and an exported policy would not ask: load the run, and "
            "call run.act(observation, action_mask=mask), or train with --env.action_masks false."
        )
    if reading.shape is None:
        raise InputError(f"The observations of this run are not arrays: {NEEDED}.")
    if isinstance(encoding, OfStates) and reading.shape:
        raise InputError(f"Several integers are one state in this run, unless --env.features is scaled: {NEEDED}.")
    if isinstance(encoding, HashedNumbers | Nearest):
        raise InputError(
            "In this run vectors became states, by a hash or by the nearest mean, and such states cannot be exported: "
            "train with --env.features random, and without --env.radius."
        )
    if isinstance(encoding, OfStates):
        first, count = np.array(reading.first), encoding.num_states
        program = Program(first, np.array(first + count - 1))
        mean = program.add("rows", player.means(jnp.arange(count)), program.observation - first, result="mean")
    else:
        entries = np.zeros(math.prod(reading.shape))
        program = Program(entries, entries)
        mean = mean_of(player.network, player.agent.family, program)  # [actions, n, 1]
        mean = program.add("rows", program.add("transpose", mean), 0, result="mean")
    best, listed = program.add("best", mean), interface.actions
    if listed.own is None:
        program.add("add", best, listed.first, result="action")
    else:
        program.action = listed.own[0]
        program.add("rows", listed.own, best, result="action")
    return program


@functools.singledispatch
def mean_of(network: Any, family: Any, program: Program) -> Any:
    """The mean returns [actions, n, 1] of a network."""
    return _mean(family, outputs_of(network, program))


@mean_of.register
def _(network: TwinNetwork, family: Any, program: Program) -> Any:
    if not isinstance(family, Gaussian | PointMass):
        raise InputError(f"The lower of two {type(family).__name__} returns cannot be exported: {NEEDED}.")
    return functools.reduce(np.minimum, (_mean(family, outputs) for outputs in critics_of(network, program)))


@mean_of.register
def _(network: MixedNetwork, family: Any, program: Program) -> Any:
    known, start = mean_of(network.learned, family, program), float(family.mean(network.unknown.start(family)))
    return known + share_of(network.unknown, program) * (start - known)


@functools.singledispatch
def share_of(unknown: Any, _program: Program) -> Any:
    """The share of the wide start [actions, n, 1] that is left."""
    raise InputError(f"The evidence {type(unknown).__name__} cannot be exported: {NEEDED}.")


@share_of.register
def _(unknown: KernelEvidence, program: Program) -> Any:
    stored = min(int(unknown.added), unknown.capacity)
    per_unit = np.asarray(unknown.per_unit)
    places, taken = np.asarray(unknown.places)[:stored] * per_unit, np.asarray(unknown.taken)[:stored].T[..., None]
    here = program.observation * per_unit
    distance = here @ (-2 * places.T) + np.square(places).sum(axis=1) + (here * here).total(per_unit.size)
    counts = np.exp(np.maximum(distance, 0.0) * np.float32(-1.0)) @ taken
    return float(unknown.prior_count) / (counts + float(unknown.prior_count))


@functools.singledispatch
def features_of(encoding: Any, _encoder: Any, _program: Program) -> Any:
    """The features [n, features] of the observations."""
    raise InputError(f"Observations encoded by {type(encoding).__name__} cannot be exported: {NEEDED}.")


@features_of.register
def _(encoding: Vector, encoder: Any, program: Program) -> Any:
    if encoding.num_features != program.low.size:
        raise InputError(f"The observations of this run are not plain numbers: {NEEDED}.")
    zero = np.asarray(encoding.scaled(encoder, jnp.zeros(encoding.num_features)))
    slope = np.asarray(encoding.scaled(encoder, jnp.ones(encoding.num_features))) - zero
    as_it_is = (slope == 1) & (zero == 0)  # numbers from 0 to 1
    span = np.where(slope == 0, 1, slope)
    program.low, program.high = np.where(as_it_is, 0, (-1 - zero) / span), np.where(as_it_is, 1, (1 - zero) / span)
    return program.observation * slope + zero


@features_of.register
def _(encoding: Standardized, encoder: Any, program: Program) -> Any:
    if encoding.num_features != program.low.size:
        raise InputError(f"The observations of this run are not plain numbers: {NEEDED}.")
    seen = encoding.seen_bounds(encoder)
    program.low, program.high = (np.asarray(bound, np.float64) for bound in seen)
    return program.observation * np.asarray(encoding.per_unit(encoder))


@features_of.register
def _(encoding: RandomFeatures, encoder: Any, program: Program) -> Any:
    scaled = features_of(encoding.vector, encoder.bounds, program)
    return np.cos(scaled @ encoder.frequencies + encoder.phases) * math.sqrt(2 / encoding.count)


@features_of.register
def _(encoding: Landmarks, encoder: Any, program: Program) -> Any:
    scaled = features_of(encoding.vector, encoder.bounds, program)
    points = np.asarray(jax.vmap(encoding.vector.scaled, in_axes=(None, 0))(encoder.bounds, encoder.points))
    entries, norm = encoding.vector.kept.size, np.square(points).sum(axis=1)
    distance = np.maximum(scaled @ (-2 * points.T) + norm + (scaled * scaled).total(points.shape[1]), 0.0)
    narrow = [-1 / (2 * entries * (float(encoder.length_scale) * scale) ** 2) for scale in SCALES]
    kernel = functools.reduce(np.add, [np.exp(distance * np.float32(each)) for each in narrow])
    return kernel @ (np.asarray(encoder.inverse).T / len(SCALES))


class Outputs(NamedTuple):
    """What a network gives."""

    value: Any
    distribution: Callable[[Any, Any], Any]  # the return distribution, of a family, that one action's outputs stand for
    weights: Callable[[Any], Any]  # the weights of bins or components, up to a factor, from their scores


@functools.singledispatch
def outputs_of(network: Any, _program: Program) -> Outputs:
    """The outputs of a network."""
    raise InputError(f"A network of class {type(network).__name__} cannot be exported: {NEEDED}.")


@outputs_of.register
def _(network: FeatureReturns, program: Program) -> Outputs:
    value = features_of(network.encoding, network.encoder, program) @ network.weights + network.start
    return Outputs(
        value,
        lambda family, each: from_powers(family, network.powers, each),
        lambda x: np.maximum(x, 0.0) + LEAST_MASS,  # as `Categorical.from_coordinates`
    )


@outputs_of.register
def _(network: PerActionNetwork, program: Program) -> Outputs:
    value, units = features_of(network.encoding, network.encoder, program), network.units
    for layer, weights in enumerate(network.weights):
        if layer:
            value = ACTIVATIONS[units.activation](NORMALIZATIONS[units.normalization](value, weights.shape[1]))
        value = value @ (weights if layer else weights * network.encoding.gain)
        if network.biases:
            value = value + network.biases[layer][:, None]
    return Outputs(value, lambda family, each: family.from_outputs(each), lambda x: np.exp(x - x.highest()))


def critics_of(network: TwinNetwork, program: Program) -> Iterator[Outputs]:
    """The outputs of each critic."""
    features = features_of(network.encoding, network.encoder, program)
    for critic in range(network.heads.shape[0]):
        value = features
        for weights, biases in zip(network.weights, network.biases, strict=True):
            value = value @ weights[critic] + biases[critic]
            value = ACTIVATIONS[UNITS.activation](NORMALIZATIONS[UNITS.normalization](value, weights.shape[-1]))
        heads = np.moveaxis(np.asarray(network.heads[critic]), 1, 0)
        value = value @ heads + np.asarray(network.offsets[critic])[:, None]
        yield Outputs(value, lambda family, each: family.from_outputs(each), np.exp)


def _rms(x: Any, count: int) -> Any:
    return x / np.sqrt((x * x).total(count) / float(count) + TINY)


ACTIVATIONS: dict[Activation, Callable[[Any], Any]] = {
    "elu": lambda x: np.maximum(x, 0.0) + (np.exp(np.minimum(x, 0.0)) - 1.0),
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "silu": lambda x: x * 0.5 * (np.tanh(x * 0.5) + 1.0),  # x / (1 + exp(-x)), but it does not overflow
}
NORMALIZATIONS: dict[Normalization, Callable[[Any, int], Any]] = {
    "none": lambda x, count: x,
    "layer": lambda x, count: _rms(x - x.total(count) / float(count), count),
    "rms": _rms,
}


def _mean(family: Any, outputs: Outputs) -> Any:
    """The mean return [actions, n, 1]: linear in the outputs, or the mean of weighted points."""
    mean = jax.vmap(lambda each: family.mean(outputs.distribution(family, each)))
    zero = mean(jnp.zeros((1, family.num_outputs)))
    slopes = (mean(jnp.eye(family.num_outputs)) - zero)[:, None]
    draws = np.random.default_rng(0).normal(size=(100, family.num_outputs))
    if np.allclose(mean(draws), (draws @ slopes)[:, 0] + zero, rtol=1e-4, atol=1e-4 * float(np.abs(slopes).max())):
        return outputs.value @ slopes + zero
    scores, points, count = points_of(family, outputs.value)
    weights = outputs.weights(scores)
    return (weights * points).total(count) / weights.total(count)


@functools.singledispatch
def points_of(family: Any, _outputs: Any) -> tuple[Any, Any, int]:
    """The scores of a family's bins or components, their returns, and how many there are."""
    raise InputError(f"The mean of {type(family).__name__} is not linear in a network's outputs, so it has no export.")


@points_of.register
def _(family: Categorical, outputs: Any) -> tuple[Any, Any, int]:
    return outputs, family.centers, family.bins


@points_of.register
def _(family: GaussianMixture, outputs: Any) -> tuple[Any, Any, int]:
    count, pick = family.components, np.eye(family.num_outputs)
    means = outputs @ pick[:, count : 2 * count] + np.linspace(-family.spread, family.spread, count)
    return outputs @ pick[:, :count], means * family.unit, count
