"""Transitions, and for each action the nearest of them to where a transition leads."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uppertail.masks import ActionMask

BLOCK = 1024
"""Transitions that are computed with at once; there is room for a whole number of blocks."""

NEAR = 1e-5
"""Added to squared distances, so that one exact repetition does not decide alone."""

OUTCOMES, OTHER = 4, 4.0
"""Rows of one place and action at most, one for each outcome; and how far apart outcomes are, in units of the distance
within which transitions join. From nearby places deterministic environments lead to nearby ones."""


class Neighbors(NamedTuple):
    """The nearest transitions of each action, the nearest first."""

    row: Int[Array, "*places actions neighbors"]
    square: Float[Array, "*places actions neighbors"]  # of the distance; infinite where there is none

    @classmethod
    def none(cls, actions: int, count: int) -> "Neighbors":
        """No neighbor of any action."""
        return cls(jnp.zeros((actions, count), jnp.int32), jnp.full((actions, count), jnp.inf))

    def unknown(self, reach: Float[Array, ""]) -> Float[Array, "*places actions"]:
        """The share of the wide start that is left for each action: 0 at a neighbor, 1 far from all."""
        return 1.0 - jnp.exp(-self.square[..., 0] / jnp.square(reach))

    @property
    def shares(self) -> Float[Array, "*places actions neighbors"]:
        """The share of each neighbor in their mean; all 0 where there is none."""
        weight = 1.0 / (NEAR + self.square)
        total = jnp.sum(weight, axis=-1, keepdims=True)
        return weight / jnp.where(total > 0, total, 1.0)


class Places(NamedTuple):
    """Where transitions begin.

    Args:
        place: observations on the common scale, over the root of their length: distances are root mean squares.
        action: the action of each; -1 for another outcome of an earlier row, which is nobody's neighbor.
        size: how many there are; rows from here on are none.
    """

    place: Float[Array, "rows entries"]
    action: Int[Array, " rows"]
    size: Int[Array, ""]

    @classmethod
    def none(cls, most: int, entries: int) -> "Places":
        """No transition, and room for this many."""
        return cls(jnp.zeros((most, entries)), jnp.full(most, -1), jnp.zeros((), jnp.int32))

    @property
    def blocks(self) -> Int[Array, ""]:
        """How many blocks have transitions."""
        return -(-self.size // BLOCK)

    def nearest(self, place: Float[Array, " entries"], actions: int, count: int) -> Neighbors:
        """The nearest transitions of each action."""

        def merge(number: Int[Array, ""], best: Neighbors) -> Neighbors:
            first = number * BLOCK
            there = jax.lax.dynamic_slice_in_dim(self.place, first, BLOCK)
            action = jax.lax.dynamic_slice_in_dim(self.action, first, BLOCK)
            rows = first + jnp.arange(BLOCK, dtype=jnp.int32)
            square = jnp.sum(jnp.square(there - place[None]), axis=1)
            own = (action[None] == jnp.arange(actions)[:, None]) & (rows < self.size)[None]
            squares = jnp.concatenate([best.square, jnp.where(own, square[None], jnp.inf)], axis=1)
            rows = jnp.concatenate([best.row, jnp.broadcast_to(rows, own.shape)], axis=1)
            least, index = jax.lax.top_k(-squares, count)
            return Neighbors(jnp.take_along_axis(rows, index, axis=1), -least)

        return jax.lax.fori_loop(0, self.blocks, merge, Neighbors.none(actions, count))


class Row(NamedTuple):
    """One transition, which may stand for several."""

    observation: Float[Array, "*rows entries"]
    action: Int[Array, "*rows"]
    reward: Float[Array, "*rows"]  # the mean reward of those it stands for
    terminated: Bool[Array, "*rows"]
    next_observation: Float[Array, "*rows entries"]
    weight: Float[Array, "*rows"]  # how many transitions it stands for; 0: no transition
    next_mask: ActionMask = None  # the actions that are allowed where it leads


class Neighborhoods(NamedTuple):
    """All transitions, the nearest ones to where each leads, and what follows from each."""

    rows: Row
    next_place: Float[Array, "rows entries"]  # on the common scale
    near: Neighbors  # of `next_place`
    outcomes: Int[Array, "rows outcomes"]  # each row, and the rows of its other outcomes; -1: none
    targets: Float[Array, "rows outputs"]  # coordinates of the target of each

    @classmethod
    def none(
        cls, most: int, entries: int, actions: int, neighbors: int, outputs: int, has_masks: bool = False
    ) -> "Neighborhoods":
        """No transition, and room for this many."""
        numbers, nothing, never = jnp.zeros((most, entries)), jnp.zeros(most), jnp.zeros(most, bool)
        mask = jnp.ones((most, actions), bool) if has_masks else None
        rows = Row(numbers, jnp.full(most, -1), nothing, never, numbers, nothing, mask)
        none = Neighbors.none(actions, neighbors)
        near = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (most, *leaf.shape)), none)
        outcomes = jnp.full((most, OUTCOMES), -1).at[:, 0].set(jnp.arange(most))
        return cls(rows, numbers, near, outcomes, jnp.zeros((most, outputs)))

    def block(self, number: Int[Array, ""]) -> "Neighborhoods":
        return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, number * BLOCK, BLOCK), self)

    def means(self, outcomes: Int[Array, "block outcomes"]) -> Float[Array, "block outputs"]:
        """The mean target of rows with these outcomes, by how often each was seen; the target itself if it is one."""
        seen = jnp.where(outcomes >= 0, self.rows.weight[outcomes], 0.0)
        mean = jnp.einsum("bc,bco->bo", seen, self.targets[outcomes]) / jnp.maximum(jnp.sum(seen, axis=1), 1.0)[:, None]
        return jnp.where(outcomes[:, 1:2] < 0, self.targets[outcomes[:, 0]], mean)

    def with_neighbor(
        self, row: Int[Array, ""], place: Float[Array, " entries"], action: Int[Array, ""], blocks: Int[Array, ""]
    ) -> "Neighborhoods":
        """The neighbors of all, after a new transition of an action from a place is in a row; beyond the last: none."""
        count, is_new = self.near.row.shape[-1], row < self.next_place.shape[0]
        columns, size = jnp.arange(count)[None], (BLOCK, 1, count)

        def merge(number: Int[Array, ""], near: Neighbors) -> Neighbors:
            first = number * BLOCK
            there = jax.lax.dynamic_slice_in_dim(self.next_place, first, BLOCK)
            square = jnp.sum(jnp.square(there - place[None]), axis=1)[:, None]
            before = Neighbors(*(jax.lax.dynamic_slice(leaf, (first, action, 0), size)[:, 0] for leaf in near))
            rank = jnp.sum(before.square <= square, axis=1, keepdims=True)

            def inserted(old: Array, new: Array) -> Array:
                later = jnp.concatenate([old[:, :1], old[:, :-1]], axis=1)
                return jnp.where(columns < rank, old, jnp.where(columns == rank, new, later))[:, None]

            after = inserted(before.row, row.astype(jnp.int32)), inserted(before.square, square)
            pairs = zip(near, after, strict=True)
            return Neighbors(*(jax.lax.dynamic_update_slice(old, new, (first, action, 0)) for old, new in pairs))

        return self._replace(near=jax.lax.fori_loop(0, jnp.where(is_new, blocks, 0), merge, self.near))
