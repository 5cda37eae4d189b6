"""What a run learned as array operations: the greedy policy of one seed.

Every value has a batch axis: what a network sees is [n] or [n, entries], its outputs are [actions, n, outputs].
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.contrib.draws import DropoutNetwork, VariationalNetwork
from uppertail.encodings import OneHot
from uppertail.encodings.base import OfStates
from uppertail.errors import InputError
from uppertail.evidence import MixedNetwork
from uppertail.export.evidence import share_of
from uppertail.export.features import features_of
from uppertail.export.means import expected, lowest
from uppertail.export.observations import NEEDED, read
from uppertail.export.operations import Program
from uppertail.export.tables import place_of
from uppertail.export.units import units_of
from uppertail.networks import PerActionNetwork, TwinNetwork, mean_of_parts
from uppertail.networks.ensemble import EnsembleNetwork
from uppertail.networks.perceptrons import PerceptronNetwork
from uppertail.training.player import Player


def program_of(player: Player) -> Program:
    """The policy: `action` [n, ...] and returns [n, actions] of observations; InputError if it cannot be exported."""
    reading, listed = player.interface.reading, player.interface.actions
    program = read(reading, listed.size)
    if table := table_of(player, program):
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
        program.action = listed.own[0]  # of the type that the environment takes
        program.add("rows", program.constant(listed.own), best, result="action")
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
    return expected(family, outputs_of(network, program))


@mean_of.register
def _(network: TwinNetwork, family: Any, program: Program) -> Any:
    return lowest(family, [*critics_of(network, program)])


@mean_of.register
def _(network: EnsembleNetwork, family: Any, program: Program) -> Any:
    pairs = (network.learned, network.encoder), (network.prior, network.prior_encoder)
    features = [features_of(network.encoding, encoder, program) for _, encoder in pairs]

    def of_member(member: int) -> Any:
        own, prior = (
            perceptrons(network, seen, *_member(arrays, member))
            for seen, (arrays, _) in zip(features, pairs, strict=True)
        )
        return expected(family, own + prior * network.prior_scale)

    return functools.reduce(np.add, map(of_member, range(network.members))) / float(network.members)


@mean_of.register
def _(network: DropoutNetwork | VariationalNetwork, family: Any, program: Program) -> Any:
    features, drawn = features_of(network.encoding, network.encoder, program), network.member_parameters
    outputs = (perceptrons(network, features, *_member(drawn, member)) for member in range(network.members))
    return functools.reduce(np.add, (expected(family, each) for each in outputs)) / float(network.members)


def _member(arrays: Any, member: int) -> Any:
    """The arrays of one member, of those with leading axes [actions, members]."""
    return jax.tree.map(lambda leaf: leaf[:, member], arrays)


@mean_of.register
def _(network: MixedNetwork, family: Any, program: Program) -> Any:
    share, start = share_of(network.unknown, program), float(family.mean(network.unknown.start(family)))
    if network.stochastic:
        known = doubted(network.learned, family, program, network.unknown.doubt(share))
    else:
        known = mean_of(network.learned, family, program)
    return known * (1.0 - share) + share * start  # exactly the start where nothing is known: all actions are equal


@functools.singledispatch
def doubted(network: Any, family: Any, program: Program, _doubt: Any) -> Any:
    """The mean returns [actions, n, 1] of a network where each action is doubted so much."""
    return mean_of(network, family, program)


@doubted.register
def _(network: TwinNetwork, family: Any, program: Program, doubt: Any) -> Any:
    critics = [*critics_of(network, program)]
    mean = functools.reduce(np.add, (expected(family, each) for each in critics)) / float(len(critics))
    return lowest(family, critics) * doubt + mean * (1.0 - doubt)


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
    for layer, weight in enumerate(weights):
        if layer:
            value = units_of(network.units, value, weight.shape[1])
        value = value @ (weight if layer else weight * network.encoding.gain)
        if biases:
            value = value + biases[layer][:, None]
    return value


def critics_of(network: TwinNetwork, program: Program) -> Iterator[Any]:
    """The outputs of each critic."""
    features = features_of(network.encoding, network.encoder, program)
    for critic in range(network.heads.shape[0]):
        value = features
        for layer, (weights, biases) in enumerate(zip(network.weights, network.biases, strict=True)):
            factor = 1.0 if layer else network.encoding.gain
            value = units_of(network.units, value @ (weights[critic] * factor) + biases[critic], weights.shape[-1])
        heads, offsets = np.moveaxis(np.asarray(network.heads[critic]), 1, 0), np.asarray(network.offsets[critic])
        if network.sizes:  # outputs of an action are means, which are linear in the heads
            parts = mean_of_parts(network.sizes)
            heads, offsets = np.tensordot(parts, heads, 1), parts @ offsets
        yield value @ heads + offsets[:, None]
