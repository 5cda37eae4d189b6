"""The transitions that least squares on shared features keeps, and their features."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.types import PyTree, Transition

BLOCK = 512
"""Transitions that are computed with at once."""

HALVINGS = 60
"""Steps of the search for how many transitions to keep."""


class Transitions(NamedTuple):
    """Transitions, each of which may stand for several.

    Args:
        observation, action, reward, terminated, next_observation: the transitions.
        features: features of s.
        next_features: features of s'.
        weight: how many transitions each stands for; 0: no transition.
        size: how many rows hold a transition.
        gram: sum of weight * phi phi' over the transitions of each action.
    """

    observation: Float[Array, "rows entries"]
    action: Int[Array, " rows"]
    reward: Float[Array, " rows"]
    terminated: Bool[Array, " rows"]
    next_observation: Float[Array, "rows entries"]
    features: Float[Array, "rows features"]
    next_features: Float[Array, "rows features"]
    weight: Float[Array, " rows"]
    size: Int[Array, ""]
    gram: Float[Array, "actions features features"]

    @classmethod
    def none(cls, rows: int, entries: int, features: int, actions: int) -> "Transitions":
        """No transition, and room for this many."""
        return cls(
            observation=jnp.zeros((rows, entries)),
            action=jnp.zeros(rows, jnp.int32),
            reward=jnp.zeros(rows),
            terminated=jnp.zeros(rows, bool),
            next_observation=jnp.zeros((rows, entries)),
            features=jnp.zeros((rows, features)),
            next_features=jnp.zeros((rows, features)),
            weight=jnp.zeros(rows),
            size=jnp.zeros((), jnp.int32),
            gram=jnp.zeros((actions, features, features)),
        )

    @property
    def blocks(self) -> Int[Array, ""]:
        """How many blocks hold a transition."""
        return -(-self.size // BLOCK)

    def narrow(self, width: int) -> "Transitions":
        """The transitions with the first features only."""
        features, next_features = self.features[:, :width], self.next_features[:, :width]
        return self._replace(features=features, next_features=next_features, gram=self.gram[:, :width, :width])

    def added(self, encoding: Encoding, encoder: PyTree, fresh: Transition) -> "Transitions":
        """The transitions with those of a rollout behind them. There has to be room."""
        of_each = jax.vmap(encoding.features, in_axes=(None, 0))
        features = of_each(encoder, fresh.observation)
        new = (fresh.observation, fresh.action, fresh.reward, fresh.terminated, fresh.next_observation)
        ones = jnp.ones(fresh.action.shape[0])
        new = (*new, features, of_each(encoder, fresh.next_observation), ones)
        stored = [
            jax.lax.dynamic_update_slice_in_dim(old, value.astype(old.dtype), self.size, 0)
            for old, value in zip(self[:8], new, strict=True)
        ]
        gram = self.gram + gram_of(features, ones, fresh.action, self.gram.shape[0])
        return Transitions(*stored, size=self.size + ones.shape[0], gram=gram)

    def encoded(self, encoding: Encoding, encoder: PyTree, changed: Bool[Array, ""]) -> "Transitions":
        """The transitions with the features of an encoder that has changed; nothing is computed if it has not."""
        of_each = jax.vmap(encoding.features, in_axes=(None, 0))

        def block(number: Int[Array, ""], carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            features, next_features, gram = carry
            rows = Rows(number, self.weight.shape[0])
            here, after = of_each(encoder, rows.of(self.observation)), of_each(encoder, rows.of(self.next_observation))
            gram = gram + gram_of(here, rows.new(self.weight), rows.of(self.action), gram.shape[0])
            features = jax.lax.dynamic_update_slice_in_dim(features, here, rows.start, 0)
            return features, jax.lax.dynamic_update_slice_in_dim(next_features, after, rows.start, 0), gram

        carry = (self.features, self.next_features, jnp.where(changed, 0.0, self.gram))
        features, next_features, gram = jax.lax.fori_loop(0, jnp.where(changed, self.blocks, 0), block, carry)
        return self._replace(features=features, next_features=next_features, gram=gram)

    def thinned(self, key: PRNGKeyArray, prior_count: Float[Array, ""]) -> "Transitions":
        """About half of the transitions, drawn by how much each determines; those that are left count for the others.

        A transition's leverage, weight * phi' A^-1 phi, is its share in its own prediction. Each is kept with a
        probability in proportion to it, at most 1, and its weight is divided by that probability, so that the
        statistics of the regression stay the same on average (Cohen, Musco and Pachocki 2016). `encoded` has to compute
        `gram` again.
        """
        eye, rows = jnp.eye(self.gram.shape[1]), self.weight.shape[0]
        known = jax.lax.map(lambda gram: jnp.linalg.inv(gram + prior_count * eye), self.gram)
        projected = jnp.einsum("rf,afg->arg", self.features, known)
        of_action = jnp.take_along_axis(projected, self.action[None, :, None], axis=0)[0]
        leverage = self.weight * jnp.maximum(jnp.sum(of_action * self.features, axis=1), 1e-9)

        def narrower(_: Int[Array, ""], bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = (low + high) / 2
            many = jnp.sum(jnp.minimum(jnp.exp(middle) * leverage, 1.0)) > rows / 2
            return jnp.where(many, low, middle), jnp.where(many, middle, high)

        _, factor = jax.lax.fori_loop(0, HALVINGS, narrower, (jnp.array(-30.0), jnp.array(30.0)))
        probability = jnp.minimum(jnp.exp(factor) * leverage, 1.0)
        kept = jax.random.uniform(key, (rows,)) < probability
        order = jnp.argsort(~kept, stable=True)
        size = jnp.minimum(jnp.sum(kept, dtype=jnp.int32), rows * 3 // 4)
        weight = jnp.where(kept, self.weight / jnp.maximum(probability, 1e-12), 0.0)[order]
        taken = [each[order] for each in self[:7]]
        weight = jnp.where(jnp.arange(rows) < size, weight, 0.0)
        return Transitions(*taken, weight=weight, size=size, gram=jnp.zeros_like(self.gram))


class Rows(NamedTuple):
    """One block of the rows of an array: the last block begins earlier, so that it fits.

    Args:
        number: which block.
        rows: rows of the array.
    """

    number: Int[Array, ""]
    rows: int

    @property
    def start(self) -> Int[Array, ""]:
        """The first row."""
        return jnp.minimum(self.number * BLOCK, self.rows - BLOCK)

    def of(self, array: Array) -> Array:
        """These rows of an array."""
        return jax.lax.dynamic_slice_in_dim(array, self.start, BLOCK, 0)

    def new(self, weight: Float[Array, " rows"]) -> Float[Array, " block"]:
        """Their weights, 0 for rows that the block before has, too."""
        return jnp.where(self.start + jnp.arange(BLOCK) >= self.number * BLOCK, self.of(weight), 0.0)


def gram_of(
    features: Float[Array, "rows features"], weight: Float[Array, " rows"], action: Int[Array, " rows"], actions: int
) -> Float[Array, "actions features features"]:
    """The sum of weight * phi phi' over the rows of each action."""
    by_action = jax.nn.one_hot(action, actions, axis=0) * weight[None]
    return jax.vmap(lambda weight: (features * weight[:, None]).T @ features)(by_action)
