"""The transitions that least squares on shared features keeps, and their features."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.masks import ActionMask
from uppertail.types import PyTree, Transition

BLOCK = 512
"""Transitions that are computed with at once; there is room for a whole number of blocks."""

PRECISION = 1e-6
"""The smallest lambda for each transition that 32-bit floats can tell from rounding errors in A."""

UNSURE = 100.0
"""What that lambda is multiplied by where A has no factor: rounding adds up where one state comes again and again."""

HALVINGS = 60
"""Steps of the search for how many transitions to keep."""


class Rows(NamedTuple):
    """Transitions, each of which may stand for several."""

    observation: Float[Array, "rows entries"]
    action: Int[Array, " rows"]
    reward: Float[Array, " rows"]
    terminated: Bool[Array, " rows"]
    next_observation: Float[Array, "rows entries"]
    features: Float[Array, "rows features"]  # of s
    next_features: Float[Array, "rows features"]  # of s'
    weight: Float[Array, " rows"]  # how many transitions each stands for; 0: no transition
    next_mask: ActionMask = None  # the actions that are allowed at s'


class Transitions(NamedTuple):
    """All transitions, or those that stand for all."""

    rows: Rows  # the transitions; those from `size` on are none
    size: Int[Array, ""]  # how many there are
    gram: Float[Array, "actions features features"]  # sum of weight * phi phi' over the transitions of each action

    @classmethod
    def none(cls, most: int, entries: int, features: int, actions: int, has_masks: bool = False) -> "Transitions":
        """No transition, and room for this many."""
        numbers, phi, none = jnp.zeros((most, entries)), jnp.zeros((most, features)), jnp.zeros(most)
        mask = jnp.ones((most, actions), bool) if has_masks else None
        rows = Rows(numbers, none.astype(jnp.int32), none, none.astype(bool), numbers, phi, phi, none, mask)
        return cls(rows, jnp.zeros((), jnp.int32), jnp.zeros((actions, features, features)))

    @property
    def blocks(self) -> Int[Array, ""]:
        """How many blocks hold a transition."""
        return -(-self.size // BLOCK)

    def block(self, number: Int[Array, ""]) -> Rows:
        """The transitions of one block."""
        return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, number * BLOCK, BLOCK), self.rows)

    def narrow(self, width: int) -> "Transitions":
        """The transitions with the first features only."""
        features, next_features = self.rows.features[:, :width], self.rows.next_features[:, :width]
        rows = self.rows._replace(features=features, next_features=next_features)
        return self._replace(rows=rows, gram=self.gram[:, :width, :width])

    def added(self, encoding: Encoding, encoder: PyTree, fresh: Transition) -> "Transitions":
        """The transitions with those of a rollout behind them. There has to be room."""
        of_each = jax.vmap(encoding.features, in_axes=(None, 0))
        features, after = of_each(encoder, fresh.observation), of_each(encoder, fresh.next_observation)
        new = Rows(*fresh[:5], features, after, jnp.ones(fresh.action.shape[0]), fresh.next_action_mask)
        rows = jax.tree.map(
            lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new.astype(old.dtype), self.size, 0),
            self.rows,
            new,
        )
        gram = self.gram + gram_of(features, new.weight, fresh.action, self.gram.shape[0])
        return Transitions(rows, self.size + new.weight.shape[0], gram)

    def encoded(self, encoding: Encoding, encoder: PyTree, first: Int[Array, ""]) -> "Transitions":
        """The transitions by an encoder whose features before `first` are those of the encoder before."""
        computed_anew = self._encoded_anew(encoding, encoder, first == 0)
        return computed_anew._extended(encoding, encoder, jnp.where(first == 0, encoding.num_features, first))

    def _encoded_anew(self, encoding: Encoding, encoder: PyTree, changed: Bool[Array, ""]) -> "Transitions":
        """All features computed again; nothing is computed if they have not changed."""
        of_each = jax.vmap(encoding.features, in_axes=(None, 0))

        def encode(number: Int[Array, ""], carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            features, next_features, gram = carry
            block, row = self.block(number), number * BLOCK
            here, after = of_each(encoder, block.observation), of_each(encoder, block.next_observation)
            gram = gram + gram_of(here, block.weight, block.action, gram.shape[0])
            features = jax.lax.dynamic_update_slice_in_dim(features, here, row, 0)
            return features, jax.lax.dynamic_update_slice_in_dim(next_features, after, row, 0), gram

        carry = (self.rows.features, self.rows.next_features, jnp.where(changed, 0.0, self.gram))
        features, next_features, gram = jax.lax.fori_loop(0, jnp.where(changed, self.blocks, 0), encode, carry)
        return self._replace(rows=self.rows._replace(features=features, next_features=next_features), gram=gram)

    def _extended(self, encoding: Encoding, encoder: PyTree, first: Int[Array, ""]) -> "Transitions":
        """The features from `first` on computed, one after another, with their rows and columns of `gram`."""
        of_each, actions = jax.vmap(encoding.feature, in_axes=(None, None, 0)), self.gram.shape[0]

        def extend(place: Int[Array, ""], before: Transitions) -> Transitions:
            def encode(number: Int[Array, ""], carry: tuple[Transitions, Array]) -> tuple[Transitions, Array]:
                (rows, size, gram), products = carry
                block, row = carry[0].block(number), number * BLOCK
                here = of_each(encoder, place, block.observation)
                after = of_each(encoder, place, block.next_observation)
                features = jax.lax.dynamic_update_slice(block.features, here[:, None], (0, place))
                weight = jax.nn.one_hot(block.action, actions, axis=0) * (block.weight * here)[None]
                rows = rows._replace(
                    features=jax.lax.dynamic_update_slice_in_dim(rows.features, features, row, 0),
                    next_features=jax.lax.dynamic_update_slice(rows.next_features, after[:, None], (row, place)),
                )
                return Transitions(rows, size, gram), products + weight @ features

            nothing = jnp.zeros(before.gram.shape[:2])
            after, products = jax.lax.fori_loop(0, before.blocks, encode, (before, nothing))
            return after._replace(gram=after.gram.at[:, place].set(products).at[:, :, place].set(products))

        return jax.lax.fori_loop(first, encoding.used(encoder), extend, self)

    def thinned(self, key: PRNGKeyArray, prior_count: Float[Array, ""]) -> "Transitions":
        """About half of the transitions, drawn by how much each determines; those that are left count for the others.

        A transition's leverage, weight * phi' A^-1 phi, is its share in its own prediction. Each is kept with a
        probability in proportion to it, at most 1, and its weight is divided by that probability, so that the
        statistics of the regression stay the same on average (Cohen, Musco and Pachocki 2016). `gram` is 0 until
        `encoded` computes all features again.
        """
        rows, eye, most = self.rows, jnp.eye(self.gram.shape[1]), self.rows.weight.shape[0]
        known = jax.lax.map(lambda gram: jnp.linalg.inv(gram + prior_count * eye), self.gram)
        projected = jnp.einsum("rf,afg->arg", rows.features, known)
        of_action = jnp.take_along_axis(projected, rows.action[None, :, None], axis=0)[0]
        leverage = rows.weight * jnp.maximum(jnp.sum(of_action * rows.features, axis=1), 1e-9)

        def narrower(_: Int[Array, ""], bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = (low + high) / 2
            many = jnp.sum(jnp.minimum(jnp.exp(middle) * leverage, 1.0)) > most / 2
            return jnp.where(many, low, middle), jnp.where(many, middle, high)

        _, factor = jax.lax.fori_loop(0, HALVINGS, narrower, (jnp.array(-30.0), jnp.array(30.0)))
        probability = jnp.minimum(jnp.exp(factor) * leverage, 1.0)
        is_kept = jax.random.uniform(key, (most,)) < probability
        size = jnp.minimum(jnp.sum(is_kept, dtype=jnp.int32), most * 3 // 4)
        weight = jnp.where(is_kept, rows.weight / jnp.maximum(probability, 1e-12), 0.0)
        order = jnp.argsort(~is_kept, stable=True)
        rows = jax.tree.map(lambda leaf: leaf[order], rows._replace(weight=weight))
        rows = rows._replace(weight=jnp.where(jnp.arange(most) < size, rows.weight, 0.0))
        return Transitions(rows, size, jnp.zeros_like(self.gram))


def gram_of(
    features: Float[Array, "rows features"], weight: Float[Array, " rows"], action: Int[Array, " rows"], actions: int
) -> Float[Array, "actions features features"]:
    """The sum of weight * phi phi' over the rows of each action."""
    by_action = jax.nn.one_hot(action, actions, axis=0) * weight[None]
    return jax.vmap(lambda weight: (features * weight[:, None]).T @ features)(by_action)


def factors_of(
    gram: Float[Array, "actions features features"], prior: Float[Array, ""]
) -> Float[Array, "actions features features"]:
    """The Cholesky factor of each action's A."""
    eye = jnp.eye(gram.shape[1])

    def of_action(gram: Array) -> Array:
        def factor(least: Array) -> Array:
            return cho_factor(gram + jnp.maximum(prior, least) * eye, lower=True)[0]

        def again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            return factor(UNSURE * carry[1]), UNSURE * carry[1]

        def failed(carry: tuple[Array, Array]) -> Bool[Array, ""]:
            return ~jnp.all(jnp.isfinite(carry[0])) & (carry[1] <= first)

        first = PRECISION * jnp.trace(gram)
        return jax.lax.while_loop(failed, again, (factor(first), first))[0]

    return jax.lax.map(of_action, gram)
