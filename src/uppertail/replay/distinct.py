"""The distinct (observation, action) pairs seen so far, all equally likely."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt32

from uppertail.errors import InputError
from uppertail.replay.base import Replay, Sample, rows_of, storage, write_rows
from uppertail.replay.fingerprints import PROBES, fingerprints, places_of
from uppertail.schema import settle
from uppertail.types import Transition

EMPTY = -1

ROW = 2
"""Folded into the key of a draw for the rows within pairs; the pairs themselves are drawn as `Uniform` draws rows."""


class PairBuffer(NamedTuple):
    """The latest transitions of each pair.

    Pairs are numbered as they are first seen; number n is kept in slot n % slots, until another takes its slot.

    Args:
        transitions: transitions; those of slot s are in rows s * latest to (s + 1) * latest - 1.
        known: the fingerprint of the pair in each slot.
        counts: transitions of that pair so far.
        pairs: pairs numbered so far.
        lookup: hash table from fingerprints to numbers of pairs; EMPTY: nothing there.
    """

    transitions: Transition
    known: UInt32[Array, "slots 2"]
    counts: Int[Array, " slots"]
    pairs: Int[Array, ""]
    lookup: Int[Array, " places"]

    @property
    def slots(self) -> int:
        """How many pairs it holds."""
        return self.counts.shape[0]

    @property
    def latest(self) -> int:
        """How many transitions it keeps of each pair."""
        return self.transitions.action.shape[0] // self.slots


@dataclasses.dataclass(frozen=True)
class Distinct(Replay):
    """Uniform over the distinct (observation, action) pairs; of each it keeps the latest transitions.

    An action that is no longer taken keeps its data, so what was learned about it stays. Replaying previously seen
    pairs uniformly is what Dyna-Q does (Sutton 1990). A full buffer forgets the pair that it saw first. Where no
    observation ever repeats, every transition is a pair of its own: then this is `Uniform`.

    Args:
        latest: how many transitions it keeps of each pair, at most as many as the buffer holds; more than 1 where the
            same action leads to different places.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.types import Transition
        >>> steps = Transition(
        ...     observation=jnp.array([0, 0, 1]),
        ...     action=jnp.array([1, 1, 0]),
        ...     reward=jnp.zeros(3),
        ...     terminated=jnp.zeros(3, bool),
        ...     next_observation=jnp.array([1, 1, 2]),
        ...     next_action=jnp.full(3, -1),
        ... )
        >>> first = jax.tree.map(lambda leaf: leaf[0], steps)
        >>> replay = ut.Distinct()
        >>> buffer = replay.add(replay.init(1000, first), steps)
        >>> drawn = replay.sample(buffer, jax.random.key(0), 300).transitions
        >>> round(float(jnp.mean(drawn.observation == 0)), 1)  # one of two pairs, though it was seen twice
        0.5
    """

    latest: int = 1

    def __post_init__(self) -> None:
        settle(self)
        if self.latest < 1:
            raise InputError(f"latest is {self.latest}: use a whole number, 1 or more.")

    def init(self, capacity: int, example: Transition) -> PairBuffer:
        latest = min(self.latest, capacity)
        slots = capacity // latest
        places = min(1 << (4 * slots - 1).bit_length(), 2**30)
        return PairBuffer(
            storage(slots * latest, example),
            jnp.zeros((slots, 2), jnp.uint32),
            jnp.zeros(slots, jnp.int32),
            jnp.zeros((), jnp.int32),
            jnp.full(places, EMPTY, jnp.int32),
        )

    def add(self, state: PairBuffer, transitions: Transition) -> PairBuffer:
        size, slots = transitions.action.shape[0], state.slots
        for start in range(0, size, slots):  # a batch with more new pairs than slots would overwrite its own pairs
            piece = jax.tree.map(lambda leaf, start=start: leaf[start : start + slots], transitions)
            state = self._add_piece(state, piece)
        return state

    def sample(self, state: PairBuffer, key: PRNGKeyArray, count: int) -> Sample:
        slots = jax.random.randint(key, (count,), 0, jnp.minimum(state.pairs, state.slots))
        kept = jnp.minimum(state.counts[slots], state.latest)
        rows = slots * state.latest + jax.random.randint(jax.random.fold_in(key, ROW), (count,), 0, kept)
        return Sample(rows_of(state.transitions, rows), rows, jnp.ones(count))

    def _add_piece(self, state: PairBuffer, batch: Transition) -> PairBuffer:
        """The buffer with a batch of at most as many transitions as it has slots."""
        size, slots, latest = batch.action.shape[0], state.slots, state.latest
        own = fingerprints(batch.observation, batch.action)
        same = jnp.all(own[:, None] == own[None, :], axis=-1)  # equal pairs within the batch
        first = jnp.argmax(same, axis=1)
        earlier = jnp.sum(jnp.tril(same, -1), axis=1, dtype=jnp.int32)
        in_batch = jnp.sum(same, axis=1, dtype=jnp.int32)

        places = places_of(own, state.lookup.shape[0])
        listed, oldest = state.lookup[places], state.pairs - slots
        hit = (listed >= jnp.maximum(oldest, 0)) & jnp.all(state.known[listed % slots] == own[:, None], axis=-1)
        number = jnp.max(jnp.where(hit, listed, EMPTY), axis=1)
        begins = first == jnp.arange(size)
        stays_from = jnp.maximum(oldest + _needed(jnp.where(number == EMPTY, -1, number - oldest), begins), 0)
        new = begins & (number < stays_from)
        number = jnp.where(new, state.pairs + jnp.cumsum(new, dtype=jnp.int32) - 1, number)[first]
        slot = number % slots
        before = jnp.where(new[first], 0, state.counts[slot])
        rows = slot * latest + (before + earlier) % latest
        last_ones = in_batch - earlier <= latest
        return PairBuffer(
            write_rows(state.transitions, jnp.where(last_ones, rows, slots * latest), batch),
            state.known.at[slot].set(own),
            state.counts.at[slot].set(before + in_batch),
            state.pairs + jnp.sum(new, dtype=jnp.int32),
            state.lookup.at[_free_places(places, listed < stays_from, new, state.lookup.shape[0])].set(
                number, mode="drop"
            ),
        )


def _needed(ages: Int[Array, " batch"], begins: Bool[Array, " batch"]) -> Int[Array, ""]:
    """The smallest number of slots that is enough for a batch; it takes free ones first and then the oldest.

    A pair that the buffer does not hold needs a slot; so does one of the batch whose own slot is among those taken.

    Args:
        ages: how many slots are taken before that of each pair is; below 0: the buffer does not hold it.
        begins: whether the pair has not come before in the batch.
    """
    in_order = jnp.sort(jnp.where(begins, ages, jnp.iinfo(jnp.int32).max))
    enough = in_order >= jnp.arange(ages.shape[0])
    return jnp.where(jnp.any(enough), jnp.argmax(enough), ages.shape[0]).astype(jnp.int32)


def _free_places(
    places: Int[Array, "batch probes"], free: Bool[Array, "batch probes"], new: Bool[Array, " batch"], nowhere: int
) -> Int[Array, " batch"]:
    """The first of its places that is free, for each new pair; `nowhere` for all others, and where none is free.

    Two new pairs may want one place: the earlier one gets it, the other tries its next in another round. The table
    itself stays out of the loop, which under `vmap` would copy it.
    """
    nth_free = jnp.where(free, jnp.cumsum(free, axis=1), 0)

    def any_waiting(carry: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        return jnp.any(carry[1])

    def settle(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        found, waiting, attempt = carry
        chosen = (nth_free == attempt) & waiting[:, None]
        wanted = jnp.where(jnp.any(chosen, axis=1), jnp.sum(jnp.where(chosen, places, 0), axis=1), nowhere)
        taken = jnp.any(wanted[:, None] == found[None, :], axis=1)
        contested = jnp.any(jnp.tril(wanted[:, None] == wanted[None, :], -1), axis=1)
        got = (wanted != nowhere) & ~taken & ~contested
        return jnp.where(got, wanted, found), waiting & ~got & (attempt < PROBES), attempt + 1

    start = (jnp.full(new.shape, nowhere, jnp.int32), new, jnp.ones((), jnp.int32))
    return jax.lax.while_loop(any_waiting, settle, start)[0]
