"""Random network distillation as reward (Burda et al. 2018), on the network of the defaults."""

import dataclasses
import itertools
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from experiments.tasks.bonus import Unheard
from uppertail.encodings import Encoding
from uppertail.evidence import KernelCounts, PixelCounts
from uppertail.types import PyTree, Transition

WIDTH, FEATURES = 128, 32
"""Units of the hidden layers, two as in the critics, and what the networks give for an observation."""

CLIP = 5.0
"""Standardized numbers are clipped here, as published."""

DECAY = 0.999
"""Errors are in units of their root mean square over about the last 1 / (1 - DECAY) of them. Over all of them, the
first ones, before anything is learned, would leave all later ones no weight."""

OPTIMIZER = optax.adam(1e-3)

Weights = tuple[Float[Array, "inputs outputs"], ...]


def outputs(weights: Weights, entries: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
    """What a network of these layers gives; the first has a bias, so that 0 is like any other observation."""
    *hidden, last = weights
    values = jnp.append(entries, 1.0)
    for layer in hidden:
        values = jax.nn.relu(values @ layer)
    return values @ last


class Distilled(Unheard):
    """A network that learns to predict a random one from the observations so far; the critics hear nothing of it."""

    encoding: Encoding = eqx.field(static=True)
    encoder: PyTree
    random: Weights
    predicting: Weights
    optimizer: optax.OptState
    squares: Float[Array, ""]  # of the errors so far, summed, the newest counting most
    weight: Float[Array, ""]  # what they count as together

    def errors(self, predicting: Weights, observations: Float[Array, "new entries"]) -> Float[Array, " new"]:
        """How far the prediction is from the random network: the mean square over its outputs."""

        def of_one(observation: Float[Array, " entries"]) -> Float[Array, ""]:
            entries = jnp.clip(self.encoding.features(self.encoder, observation), -CLIP, CLIP)
            return jnp.mean((outputs(predicting, entries) - outputs(self.random, entries)) ** 2)

        return jax.vmap(of_one)(observations)

    def surprise(self, observations: Float[Array, "new entries"]) -> Float[Array, " new"]:
        """The errors, in units of the root mean square of the last ones; 0 before the first."""
        unit = jnp.sqrt(self.squares / jnp.maximum(self.weight, 1.0))
        return jnp.where(unit > 0, self.errors(self.predicting, observations) / jnp.where(unit > 0, unit, 1.0), 0.0)

    def paid(self, fresh: Transition, unit: Array | float) -> Float[Array, " new"]:
        return unit * self.surprise(fresh.next_observation)

    def observe(self, fresh: Transition) -> Self:
        new = dataclasses.replace(self, encoder=self.encoding.observe(self.encoder, fresh.observation))
        errors = new.errors(new.predicting, fresh.next_observation)
        gradient = jax.grad(lambda weights: jnp.mean(new.errors(weights, fresh.next_observation)))(new.predicting)
        steps, optimizer = OPTIMIZER.update(gradient, new.optimizer)
        return dataclasses.replace(
            new,
            predicting=optax.apply_updates(new.predicting, steps),
            optimizer=optimizer,
            squares=DECAY * new.squares + jnp.sum(errors**2),
            weight=DECAY * new.weight + errors.shape[0],
        )


@dataclasses.dataclass(frozen=True)
class Distillation(KernelCounts):
    """The two networks, in place of kernel counts."""

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> Any:
        return _distilled(key, encoding, num_actions)


@dataclasses.dataclass(frozen=True)
class DistilledPixels(PixelCounts):
    """The two networks, in place of counts of pixels."""

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> Any:
        return _distilled(key, encoding, num_actions)


def _distilled(key: PRNGKeyArray, encoding: Encoding, num_actions: int) -> Distilled:
    shapes = [*itertools.pairwise((encoding.num_features + 1, WIDTH, WIDTH, FEATURES))]
    orthogonal, keys = jax.nn.initializers.orthogonal(2**0.5), jax.random.split(key, (2, len(shapes)))
    random, predicting = (tuple(map(orthogonal, of_layers, shapes)) for of_layers in keys)
    nothing = OPTIMIZER.init(predicting), jnp.zeros(()), jnp.zeros(())
    return Distilled(num_actions, encoding, encoding.init(key), random, predicting, *nothing)
