"""The distinct outcomes of each (state, action) pair of a table, and how often each was seen."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

NONE = -1
"""The index of an outcome or a pair that is not there."""


class Outcomes(NamedTuple):
    """Linked lists: each pair points to its newest outcome, and each outcome to an earlier one of its pair.

    Two transitions have the same outcome if they lead to the same state, and both or neither terminated there. Rewards
    are averaged: backups of means are linear in them, those of Categorical only nearly. Each pair that was never seen
    has a slot kept for it. Where no other slot is left, a new outcome takes the place of its pair's rarest one.
    """

    newest: Int[Array, " pairs"]  # each pair's newest outcome; NONE: the pair was never seen
    order: Int[Array, " pairs"]  # the pairs in the order in which they were first seen; NONE beyond the last
    pairs: Int[Array, ""]  # how many pairs were seen
    pair: Int[Array, " outcomes"]  # the pair of each outcome
    earlier: Int[Array, " outcomes"]  # each outcome's predecessor in the list of its pair; NONE: it is the last
    next_state: Int[Array, " outcomes"]  # the state that an outcome leads to
    terminated: Bool[Array, " outcomes"]  # whether the episode terminated there
    seen: Float[Array, "outcomes 3"]  # how often, mean reward on the way there, sum of squared deviations from it
    size: Int[Array, ""]  # how many outcomes there are
    replaced: Int[Array, ""]  # how many were given up for want of room

    @classmethod
    def none(cls, pairs: int, most: int) -> "Outcomes":
        """No outcome of any pair, and room for this many."""
        return cls(
            newest=jnp.full(pairs, NONE),
            order=jnp.full(pairs, NONE),
            pairs=jnp.zeros((), jnp.int32),
            pair=jnp.zeros(most, jnp.int32),
            earlier=jnp.full(most, NONE),
            next_state=jnp.zeros(most, jnp.int32),
            terminated=jnp.zeros(most, bool),
            seen=jnp.zeros((most, 3)),
            size=jnp.zeros((), jnp.int32),
            replaced=jnp.zeros((), jnp.int32),
        )

    def only_back(self, pair: Int[Array, "*pairs"], state: Int[Array, "*pairs"]) -> Bool[Array, "*pairs"]:
        """Whether pairs were seen, and only led back to their own states."""
        newest = self.newest[pair]
        alone = (newest != NONE) & (self.earlier[newest] == NONE)
        return alone & (self.next_state[newest] == state) & ~self.terminated[newest]

    def differ(self, least: float) -> bool:
        """Whether a pair has several outcomes, or rewards of one that differ by more than `least`, on any seed."""
        earlier, size, seen = map(np.asarray, (self.earlier, self.size, self.seen))
        several = (earlier != NONE) & (np.arange(earlier.shape[-1]) < size[..., None])
        return bool(np.any(several | (seen[..., 2] > least**2 * seen[..., 0])))

    def add(
        self, pair: Int[Array, ""], next_state: Int[Array, ""], reward: Float[Array, ""], terminated: Bool[Array, ""]
    ) -> "Outcomes":
        """The outcomes after one more transition. Each array is written once, where it was read: no copies."""

        def differs(walk: tuple[Int[Array, ""], Int[Array, ""]]) -> Bool[Array, ""]:
            slot, _ = walk
            same = (self.next_state[slot] == next_state) & (self.terminated[slot] == terminated)
            return (slot != NONE) & ~same

        def further(walk: tuple[Int[Array, ""], Int[Array, ""]]) -> tuple[Int[Array, ""], Int[Array, ""]]:
            slot, rarest = walk
            return self.earlier[slot], jnp.where(self.seen[slot, 0] <= self.seen[rarest, 0], slot, rarest)

        head, most = self.newest[pair], self.seen.shape[0]
        found, rarest = jax.lax.while_loop(differs, further, (head, head))
        first, joins = head == NONE, found != NONE
        kept = self.newest.shape[0] - self.pairs  # slots for pairs that were never seen
        replaces = ~first & ~joins & (most - self.size <= kept)
        is_new = ~joins & ~replaces
        slot = jnp.where(joins, found, jnp.where(replaces, rarest, self.size))
        visits, mean, squares = jnp.where(joins, self.seen[slot], jnp.stack([jnp.zeros(()), reward, jnp.zeros(())]))
        share = visits / (visits + 1.0)
        after = jnp.stack([visits + 1.0, reward - (reward - mean) * share, squares + (reward - mean) ** 2 * share])
        return Outcomes(
            newest=self.newest.at[pair].set(jnp.where(is_new, slot, head)),
            order=self.order.at[jnp.where(first, self.pairs, self.order.shape[0])].set(pair, mode="drop"),
            pairs=self.pairs + first.astype(jnp.int32),
            pair=self.pair.at[slot].set(pair),
            earlier=self.earlier.at[slot].set(jnp.where(is_new, head, self.earlier[slot])),
            next_state=self.next_state.at[slot].set(next_state),
            terminated=self.terminated.at[slot].set(terminated),
            seen=self.seen.at[slot].set(after),
            size=self.size + is_new.astype(jnp.int32),
            replaced=self.replaced + replaces.astype(jnp.int32),
        )
