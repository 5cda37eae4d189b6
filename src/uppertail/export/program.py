"""What a run learned as array operations: the greedy policy of one seed.

Every value has a batch axis: what a network sees is [n] or [n, entries], its outputs are [actions, n, outputs].
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass
from uppertail.encodings import OneHot, RandomFeatures, Vector
from uppertail.encodings.base import OfStates
from uppertail.encodings.standardized import Standardized
from uppertail.errors import InputError
from uppertail.evidence import MixedNetwork
from uppertail.evidence.kernel_counts import KernelEvidence
from uppertail.export.observations import LOADED, NEEDED, read
from uppertail.export.operations import Program, Value
from uppertail.export.tables import place_of
from uppertail.networks import PerActionNetwork, TwinNetwork, mean_of_parts, parts_of_actions
from uppertail.networks.ensemble import EnsembleNetwork
from uppertail.networks.layers import TINY, Activation, Normalization
from uppertail.networks.perceptrons import PerceptronNetwork
from uppertail.networks.twin import UNITS
from uppertail.training.player import Player


def program_of(player: Player) -> Program:
    """The policy: `action` [n, ...] and returns [n, actions] of observations; InputError if it cannot be exported."""
    reading, listed = player.interface.reading, player.interface.actions
    program = read(reading, listed.size)
    table = table_of(player, program)
    if reading.origins and (table or reading.shape is None):
        raise InputError(
            "Large numbers are subtracted from the observations of this run before they are cast, which a file cannot "
            f"do: let the environment show differences from a start, or {LOADED}."
        )
    if table:
        place, (means, stds) = table
        mean = program.add("rows", means, place, result="mean")
        program.add("rows", stds, place, result="std")
    else:
        mean = mean_of(player.network, player.agent.family, program)  # [actions, n, 1]
        mean = program.add("rows", program.add("transpose", mean), 0, result="mean")
    best = program.add("best", program.add("where", program.mask, mean, -np.inf))
    if listed.own is None:
        program.add("add", best, listed.first, result="action")
    else:
        program.action, program.arrays["own"] = listed.own[0], listed.own  # of the type that the environment takes
        program.add("rows", Value(program, "own"), best, result="action")
    return program


def table_of(player: Player, program: Program) -> tuple[Any, tuple[Any, Any]] | None:
    """The place [n] of observations in a table, and its mean and std [places, actions]; None: there is no table."""
    encoding, network = player.agent.encoding, player.network
    own = getattr(network, "encoding", None)
    if isinstance(encoding, OfStates):
        return program.seen, player.moments(jnp.arange(encoding.num_states))
    if own is None or not own.is_one_hot:
        return None
    by_place: Any = dataclasses.replace(network, encoding=OneHot(own.num_features))
    moments = Player(player.agent, by_place, player.interface).moments(jnp.arange(own.num_features))
    return place_of(own, by_place.encoder, program), moments


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
def _(network: EnsembleNetwork, family: Any, program: Program) -> Any:
    pairs = (network.learned, network.encoder), (network.prior, network.prior_encoder)
    features = [features_of(network.encoding, encoder, program) for _, encoder in pairs]

    def of_member(member: int) -> Any:
        own, prior = (
            perceptrons(network, seen, *jax.tree.map(lambda leaf: leaf[:, member], arrays))
            for seen, (arrays, _) in zip(features, pairs, strict=True)
        )
        return _mean(family, own + prior * network.prior_scale)

    return functools.reduce(np.add, map(of_member, range(network.members))) / float(network.members)


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
    here = program.seen * per_unit
    distance = here @ (-2 * places.T) + np.square(places).sum(axis=1) + (here * here).total(per_unit.size)
    counts = np.exp(np.maximum(distance, 0.0) * np.float32(-1.0)) @ taken
    share = float(unknown.prior_count) / (counts + float(unknown.prior_count))
    if not unknown.sizes:
        return share
    parts = np.nonzero(parts_of_actions(unknown.sizes))[1].reshape(-1, len(unknown.sizes))
    return functools.reduce(np.maximum, (program.add("rows", share, each) for each in parts.T))


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


@functools.singledispatch
def outputs_of(network: Any, _program: Program) -> Any:
    """The outputs [actions, n, outputs] of a network."""
    raise InputError(f"A network of class {type(network).__name__} cannot be exported: {NEEDED}.")


@outputs_of.register
def _(network: PerActionNetwork, program: Program) -> Any:
    features = features_of(network.encoding, network.encoder, program)
    return perceptrons(network, features, network.weights, network.biases)


def perceptrons(network: PerceptronNetwork, value: Any, weights: Sequence[Any], biases: Sequence[Any]) -> Any:
    """The outputs [actions, n, outputs] of one perceptron for each action, of the features of a network."""
    units = network.units
    for layer, weight in enumerate(weights):
        if layer:
            value = ACTIVATIONS[units.activation](NORMALIZATIONS[units.normalization](value, weight.shape[1]))
        value = value @ (weight if layer else weight * network.encoding.gain)
        if biases:
            value = value + biases[layer][:, None]
    return value


def critics_of(network: TwinNetwork, program: Program) -> Iterator[Any]:
    """The outputs of each critic."""
    features = features_of(network.encoding, network.encoder, program)
    for critic in range(network.heads.shape[0]):
        value = features
        for weights, biases in zip(network.weights, network.biases, strict=True):
            value = value @ weights[critic] + biases[critic]
            value = ACTIVATIONS[UNITS.activation](NORMALIZATIONS[UNITS.normalization](value, weights.shape[-1]))
        heads, offsets = np.moveaxis(np.asarray(network.heads[critic]), 1, 0), np.asarray(network.offsets[critic])
        if network.sizes:  # outputs of an action are means, which are linear in the heads
            parts = mean_of_parts(network.sizes)
            heads, offsets = np.tensordot(parts, heads, 1), parts @ offsets
        yield value @ heads + offsets[:, None]


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


def _mean(family: Any, outputs: Any) -> Any:
    """The mean return [actions, n, 1]: linear in the outputs, or the mean of weighted points."""
    mean = jax.vmap(lambda each: family.mean(family.from_outputs(each)))
    zero = mean(jnp.zeros((1, family.num_outputs)))
    slopes = (mean(jnp.eye(family.num_outputs)) - zero)[:, None]
    draws = np.random.default_rng(0).normal(size=(100, family.num_outputs))
    if np.allclose(mean(draws), (draws @ slopes)[:, 0] + zero, rtol=1e-4, atol=1e-4 * float(np.abs(slopes).max())):
        return outputs @ slopes + zero
    scores, points, count = points_of(family, outputs)
    weights = np.exp(scores - scores.highest())
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
