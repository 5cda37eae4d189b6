"""Networks whose members are draws of one network: by dropout, or of weights that are normally distributed."""

import abc
import dataclasses
import math
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.networks.perceptrons import PerceptronNetwork, Perceptrons
from uppertail.types import PyTree

START_STD = 0.5
"""Where the standard deviations of variational weights start, in units of the prior's."""


class DrawnNetwork(PerceptronNetwork):
    """A network of perceptrons with members that are draws of it: together they learn as much as one."""

    @property
    @abc.abstractmethod
    def member_parameters(self) -> PyTree:
        """The weights and biases of the members; every array has leading axes [actions, members]."""

    def member_weights(self, extras: PyTree) -> Float[Array, " members"]:
        return jnp.full(self.members, 1 / (self.members or 1))


@dataclasses.dataclass(frozen=True)
class Dropout(Perceptrons):
    """One network whose hidden units are left out at random; each draw is a member (Gal and Ghahramani 2016).

    Members act with draws that never change, so that each member is one plan. Every update learns with fresh draws.

    Its other settings are those of `Perceptrons`.

    Args:
        members: how many draws there are, at least 2.
        rate: probability that a unit is left out, in (0, 1).

    Examples:
        >>> from uppertail.encodings import OneHot
        >>> network = ut.Dropout(members=4, width=8).init(jax.random.key(0), OneHot(5), num_actions=3, num_outputs=2)
        >>> network.outputs(jnp.array(4)).shape  # members, actions, outputs
        (4, 3, 2)
    """

    members: int = 10  # pyright: ignore[reportIncompatibleMethodOverride]
    rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.rate < 1:
            raise InputError(
                f"rate is {self.rate}, but 0 leaves out nothing and 1 everything: use a number between them, for "
                "example 0.1, or --network PerAction for a network without dropout."
            )

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "DropoutNetwork":
        plain = self.per_action(key, encoding, num_actions, num_outputs)
        masks = (jnp.ones((num_actions, self.members, self.width)),) * self.hidden_layers
        learned = plain.weights, plain.biases
        network = DropoutNetwork(plain.encoding, plain.units, learned, masks, plain.encoder, self.rate)
        return network.resample_weights(jax.random.fold_in(key, num_actions + 1))


class DropoutNetwork(DrawnNetwork):
    """The perceptrons of all actions, and which of their units each member has."""

    learned: PyTree  # weights and biases; the leading axis of every array is the action
    masks: tuple[Float[Array, "actions members _units"], ...]  # 0, or 1 / (1 - rate); no gradient reaches them
    encoder: PyTree
    rate: float = eqx.field(static=True)

    @property
    def members(self) -> int:
        return self.masks[0].shape[1]

    @property
    def member_parameters(self) -> PyTree:
        """What is left out does not reach the next layer."""
        (first, *later), biases = self.learned
        kept = (mask[..., None] * weight[:, None] for mask, weight in zip(self.masks, later, strict=True))
        alike = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], self.members, axis=1), (first, biases))
        return (alike[0], *kept), alike[1]

    def outputs(self, observation: Array) -> Float[Array, "members actions outputs"]:
        def one(own: PyTree, masks: PyTree) -> Float[Array, " outputs"]:
            weights, biases = own
            return self.perceptron(self.encoder, weights, biases, observation, masks)

        of_members = jax.vmap(jax.vmap(one, in_axes=(None, 0)), out_axes=1)
        return of_members(self.learned, jax.lax.stop_gradient(self.masks))

    def resample_weights(self, key: PRNGKeyArray) -> Self:
        """Leaves out each unit of each member, or not, independently."""
        keys = jax.random.split(key, len(self.masks))
        draws = (jax.random.bernoulli(k, 1 - self.rate, mask.shape) for k, mask in zip(keys, self.masks, strict=True))
        return dataclasses.replace(self, masks=tuple(kept.astype(jnp.float32) / (1 - self.rate) for kept in draws))


@dataclasses.dataclass(frozen=True)
class Variational(Perceptrons):
    """Bayes by backprop (Blundell et al. 2015): weights w = mean + std * noise; each draw of the noise is a member.

    Updates minimize the mean loss of the data plus kl / n times the divergence from the prior, where n counts the
    transitions seen: with a negative log-likelihood and kl 1, the evidence bound per transition. The prior has the
    standard deviation of Glorot's weights. Members act with noise that never changes; every update learns with random
    signs of it (Flipout, Wen et al. 2018).

    Its other settings are those of `Perceptrons`.

    Args:
        members: how many draws of the weights there are, at least 2.
        kl: how much the divergence from the prior counts, 0 or more.

    Examples:
        >>> from uppertail.encodings import OneHot
        >>> builder, key = ut.Variational(members=4, width=8), jax.random.key(0)
        >>> network = builder.init(key, OneHot(5), num_actions=3, num_outputs=2)
        >>> network.outputs(jnp.array(4)).shape  # members, actions, outputs
        (4, 3, 2)
    """

    members: int = 10  # pyright: ignore[reportIncompatibleMethodOverride]
    kl: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kl < 0:
            raise InputError(f"kl is {self.kl}: use a finite number, 0 or more; 0 leaves the prior out.")

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "VariationalNetwork":
        network = self.per_action(key, encoding, num_actions, num_outputs)
        own = network.weights, network.biases
        glorot = tuple(math.sqrt(2 / sum(weight.shape[1:])) for weight in network.weights)
        prior = glorot, glorot[: len(network.biases)]
        leaves, structure = jax.tree.flatten(own)
        keys = jax.random.split(jax.random.fold_in(key, num_actions + 1), len(leaves))
        shapes = [(num_actions, self.members, *leaf.shape[1:]) for leaf in leaves]
        noise = [jax.random.normal(k, shape) for k, shape in zip(keys, shapes, strict=True)]

        def raw_std(mean: Array, prior: float) -> Array:
            return jnp.full_like(mean, math.log(math.expm1(START_STD * prior)))  # before the softplus

        return VariationalNetwork(
            mean=own,
            raw_std=jax.tree.map(raw_std, own, prior),
            noise=jax.tree.unflatten(structure, noise),
            seen=jnp.zeros(()),
            encoder=network.encoder,
            encoding=network.encoding,
            units=network.units,
            prior=prior,
            kl=self.kl,
        )


class VariationalNetwork(DrawnNetwork):
    """A normal distribution for each weight of the perceptrons of all actions, and the members' noise.

    No gradient reaches the noise, nor the number of transitions seen.
    """

    mean: PyTree  # of weights and biases; the leading axis of every array is the action
    raw_std: PyTree  # standard deviations before the softplus that keeps them above 0
    noise: PyTree  # how far members' weights deviate, in units of these; leading axes [actions, members]
    seen: Float[Array, ""]  # transitions seen so far
    encoder: PyTree
    prior: tuple[tuple[float, ...], tuple[float, ...]] = eqx.field(static=True)  # std by layer of weights and biases
    kl: float = eqx.field(static=True)

    @property
    def members(self) -> int:
        return jax.tree.leaves(self.noise)[0].shape[1]

    @property
    def member_parameters(self) -> PyTree:
        def draw(mean: Array, raw: Array, noise: Array) -> Array:
            return mean[:, None] + jax.nn.softplus(raw)[:, None] * jax.lax.stop_gradient(noise)

        return jax.tree.map(draw, self.mean, self.raw_std, self.noise)

    def outputs(self, observation: Array) -> Float[Array, "members actions outputs"]:
        return self.of_members(self.encoder, self.member_parameters, observation)

    def observe(self, observations: Array) -> Self:
        encoder = self.encoding.observe(self.encoder, observations)
        return dataclasses.replace(self, encoder=encoder, seen=self.seen + observations.shape[0])

    def with_observed(self, other: Any) -> Self:
        encoder = self.encoding.with_observed(self.encoder, other.encoder)
        return dataclasses.replace(self, encoder=encoder, seen=other.seen)

    def resample_weights(self, key: PRNGKeyArray) -> Self:
        """The same noise with random signs for the units before and behind each weight: as likely, and uncorrelated."""
        leaves, structure = jax.tree.flatten(self.noise)
        keys = jax.random.split(key, len(leaves))
        turned = [_flip_signs(k, leaf) for k, leaf in zip(keys, leaves, strict=True)]
        return dataclasses.replace(self, noise=jax.tree.unflatten(structure, turned))

    def divergence(self) -> Float[Array, ""]:
        """KL from the weights' distributions to their prior N(0, prior^2), summed over all weights, in nats."""

        def of_layer(mean: Array, raw: Array, prior: float) -> Float[Array, ""]:
            std = jax.nn.softplus(raw)
            return jnp.sum(jnp.log(prior / std) + (std**2 + mean**2) / (2 * prior**2) - 0.5)

        return sum(jax.tree.leaves(jax.tree.map(of_layer, self.mean, self.raw_std, self.prior)), jnp.zeros(()))

    def penalty(self) -> Float[Array, ""]:
        return self.kl / jax.lax.stop_gradient(self.seen) * self.divergence()


def _flip_signs(
    key: PRNGKeyArray, noise: Float[Array, "actions members *units"]
) -> Float[Array, "actions members *units"]:
    """The noise with random signs: one for each unit on either side of a weight."""
    for axis in range(2, noise.ndim):
        shape = [size if each in (0, 1, axis) else 1 for each, size in enumerate(noise.shape)]
        noise = noise * jax.random.rademacher(jax.random.fold_in(key, axis), tuple(shape), noise.dtype)
    return noise
