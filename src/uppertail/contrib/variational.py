"""Variational weights: a normal distribution for each of them, learned by backpropagation (Blundell et al. 2015)."""

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


@dataclasses.dataclass(frozen=True)
class Variational(Perceptrons):
    """Bayes by backprop: weights w = mean + std * noise; each draw of the noise is a member.

    Updates minimize the mean loss of the data plus kl / n times the divergence from the prior, where n counts the
    transitions seen: with a negative log-likelihood and kl 1, the evidence bound per transition. Members act with noise
    that never changes; every update learns with random signs of it (Flipout, Wen et al. 2018).

    Its other settings are those of `Perceptrons`.

    Args:
        members: how many draws of the weights there are, at least 2.
        prior_std: standard deviation of the prior, in units of that of Glorot's weights, above 0.
        start_std: where the standard deviations start, in the same units, above 0.
        kl: how much the divergence from the prior counts, 0 or more.

    Examples:
        >>> from uppertail.encodings import OneHot
        >>> builder, key = ut.Variational(members=4, width=8), jax.random.key(0)
        >>> network = builder.init(key, OneHot(5), num_actions=3, num_outputs=2)
        >>> network.outputs(jnp.array(4)).shape  # members, actions, outputs
        (4, 3, 2)
    """

    members: int = 10  # pyright: ignore[reportIncompatibleMethodOverride]
    prior_std: float = 1.0
    start_std: float = 0.5
    kl: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("prior_std", "start_std"):
            if getattr(self, name) <= 0:
                raise InputError(f"{name} is {getattr(self, name)}: use a finite number above 0.")
        if self.kl < 0:
            raise InputError(f"kl is {self.kl}: use a finite number, 0 or more; 0 leaves the prior out.")

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "VariationalNetwork":
        network = self.per_action(key, encoding, num_actions, num_outputs)
        own = network.weights, network.biases
        scales = tuple(map(_glorot_std, network.weights))
        unit = scales, scales[: len(network.biases)]
        leaves, structure = jax.tree.flatten(own)
        keys = jax.random.split(jax.random.fold_in(key, num_actions + 1), len(leaves))
        shapes = [(num_actions, self.members, *leaf.shape[1:]) for leaf in leaves]
        noise = [jax.random.normal(k, shape) for k, shape in zip(keys, shapes, strict=True)]
        return VariationalNetwork(
            mean=own,
            raw_std=jax.tree.map(lambda mean, scale: jnp.full_like(mean, _raw_std(self.start_std * scale)), own, unit),
            noise=jax.tree.unflatten(structure, noise),
            seen=jnp.zeros(()),
            encoder=network.encoder,
            encoding=network.encoding,
            units=network.units,
            prior=jax.tree.map(lambda scale: self.prior_std * scale, unit),
            kl=self.kl,
        )


class VariationalNetwork(PerceptronNetwork):
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

    def outputs(self, observation: Array) -> Float[Array, "members actions outputs"]:
        return self.of_members(self.encoder, self.draw_weights(), observation)

    def with_observed(self, other: Any) -> Self:
        encoder = self.encoding.with_observed(self.encoder, other.encoder)
        return dataclasses.replace(self, encoder=encoder, seen=other.seen)

    def draw_weights(self) -> PyTree:
        """The weights and biases of all members; leading axes [actions, members]."""

        def draw(mean: Array, raw: Array, noise: Array) -> Array:
            return mean[:, None] + jax.nn.softplus(raw)[:, None] * jax.lax.stop_gradient(noise)

        return jax.tree.map(draw, self.mean, self.raw_std, self.noise)

    def observe(self, observations: Array) -> Self:
        encoder = self.encoding.observe(self.encoder, observations)
        return dataclasses.replace(self, encoder=encoder, seen=self.seen + observations.shape[0])

    def resample_weights(self, key: PRNGKeyArray) -> Self:
        """The same noise with random signs for the units before and behind each weight: as likely, and uncorrelated."""
        leaves, structure = jax.tree.flatten(self.noise)
        keys = jax.random.split(key, len(leaves))
        turned = [_flip_signs(k, leaf) for k, leaf in zip(keys, leaves, strict=True)]
        return dataclasses.replace(self, noise=jax.tree.unflatten(structure, turned))

    def member_weights(self, extra: PyTree) -> Float[Array, " members"]:
        """All draws are of one network: together they learn as much as one."""
        return jnp.full(self.members, 1 / self.members)

    def divergence(self) -> Float[Array, ""]:
        """KL from the weights' distributions to their prior N(0, prior^2), summed over all weights, in nats."""

        def of_layer(mean: Array, raw: Array, prior: float) -> Float[Array, ""]:
            std = jax.nn.softplus(raw)
            return jnp.sum(jnp.log(prior / std) + (std**2 + mean**2) / (2 * prior**2) - 0.5)

        return sum(jax.tree.leaves(jax.tree.map(of_layer, self.mean, self.raw_std, self.prior)), jnp.zeros(()))

    def penalty(self) -> Float[Array, ""]:
        return self.kl / jax.lax.stop_gradient(self.seen) * self.divergence()


def _glorot_std(weight: Float[Array, "actions _inputs _outputs"]) -> float:
    return math.sqrt(2 / (weight.shape[1] + weight.shape[2]))


def _raw_std(std: float) -> float:
    """The number whose softplus is this standard deviation."""
    return math.log(math.expm1(std))


def _flip_signs(
    key: PRNGKeyArray, noise: Float[Array, "actions members *units"]
) -> Float[Array, "actions members *units"]:
    """The noise with random signs: one for each unit on either side of a weight."""
    for axis in range(2, noise.ndim):
        shape = [size if each in (0, 1, axis) else 1 for each, size in enumerate(noise.shape)]
        noise = noise * jax.random.rademacher(jax.random.fold_in(key, axis), tuple(shape), noise.dtype)
    return noise
