"""The distinct (observation, action) pairs seen so far, all equally likely."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt32

from uppertail.errors import InputError
from uppertail.replay.base import Replay, Sample, rows_of, storage, written
from uppertail.replay.fingerprints import PROBES, fingerprints, places_of
from uppertail.types import Transition

EMPTY = -1


class PairBuffer(NamedTuple):
    """The latest transitions of each pair.

    Pairs are numbered as they are first seen; number n is kept in slot n % slots, until another takes its slot.

    Args:
        transitions: those of slot s in rows s * latest to (s + 1) * latest - 1.
        known: the fingerprint of the pair in each slot.
        counts: transitions of that pair so far.
        pairs: pairs numbered so far.
        lookup: where numbers of pairs are found by their fingerprints; EMPTY: none there.
    """

    transitions: Transition
    known: UInt32[Array, "slots 2"]
    counts: Int[Array, " slots"]
    pairs: Int[Array, ""]
    lookup: Int[Array, " places"]


@dataclasses.dataclass(frozen=True)
class Distinct(Replay):
    """Uniform over the distinct (observation, action) pairs, of each the latest transitions.

    An action that nobody takes any more keeps its data, so what was learned of it stays. Replaying previously seen
    pairs uniformly is what Dyna-Q does (Sutton 1990). A full buffer forgets the pair that it saw first. Where no
    observation ever repeats, every transition is a pair of its own: then this is `Uniform`.

    Args:
        latest: how many transitions it keeps of each pair; more than 1 where the same action leads to different places.
    """

    latest: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.latest, bool) or not isinstance(self.latest, int) or not 1 <= self.latest < 2**31:
            raise InputError(f"latest is {self.latest}: use a whole number, 1 or more.")

    def init(self, capacity: int, example: Transition) -> PairBuffer:
        slots = max(capacity // self.latest, 1)
        places = 1 << (4 * slots - 1).bit_length()
        return PairBuffer(
            storage(slots * self.latest, example),
            jnp.zeros((slots, 2), jnp.uint32),
            jnp.zeros(slots, jnp.int32),
            jnp.zeros((), jnp.int32),
            jnp.full(places, EMPTY, jnp.int32),
        )

    def add(self, state: PairBuffer, transitions: Transition) -> PairBuffer:
        size, slots = transitions.action.shape[0], state.counts.shape[0]
        for start in range(0, size, slots):  # a batch with more new pairs than slots would meet itself
            piece = jax.tree.map(lambda leaf, start=start: leaf[start : start + slots], transitions)
            state = self._added(state, piece)
        return state

    def sample(self, state: PairBuffer, key: PRNGKeyArray, count: int) -> Sample:
        pair_key, row_key = jax.random.split(key)
        slots = jax.random.randint(pair_key, (count,), 0, jnp.minimum(state.pairs, state.counts.shape[0]))
        kept = jnp.minimum(state.counts[slots], self.latest)
        rows = slots * self.latest + jax.random.randint(row_key, (count,), 0, kept)
        return Sample(rows_of(state.transitions, rows), rows, jnp.ones(count))

    def _added(self, state: PairBuffer, batch: Transition) -> PairBuffer:
        """The buffer with a batch of at most as many transitions as it has slots."""
        size, slots = batch.action.shape[0], state.counts.shape[0]
        own = fingerprints(batch.observation, batch.action)
        same = jnp.all(own[:, None] == own[None, :], axis=-1)  # of the batch among itself
        first = jnp.argmax(same, axis=1)
        earlier = jnp.sum(jnp.tril(same, -1), axis=1, dtype=jnp.int32)
        in_batch = jnp.sum(same, axis=1, dtype=jnp.int32)

        places = places_of(own, state.lookup.shape[0])
        numbers = state.lookup[places]
        stays = (numbers != EMPTY) & (numbers >= state.pairs + size - slots)  # it keeps its slot through this batch
        hit = stays & jnp.all(state.known[numbers % slots] == own[:, None], axis=-1)
        new = ~jnp.any(hit, axis=1) & (first == jnp.arange(size))
        number = jnp.where(
            new,
            state.pairs + jnp.cumsum(new, dtype=jnp.int32) - 1,
            jnp.take_along_axis(numbers, jnp.argmax(hit, axis=1)[:, None], axis=1)[:, 0],
        )[first]
        slot = number % slots
        before = jnp.where(new[first], 0, state.counts[slot])
        rows = slot * self.latest + (before + earlier) % self.latest
        last_ones = in_batch - earlier <= self.latest
        return PairBuffer(
            written(state.transitions, jnp.where(last_ones, rows, slots * self.latest), batch),
            state.known.at[slot].set(own),
            state.counts.at[slot].set(before + in_batch),
            state.pairs + jnp.sum(new, dtype=jnp.int32),
            _listed(state.lookup, places, stays, new, number),
        )


def _listed(
    lookup: Int[Array, " places"],
    places: Int[Array, "batch probes"],
    stays: Bool[Array, "batch probes"],
    new: Bool[Array, " batch"],
    number: Int[Array, " batch"],
) -> Int[Array, " places"]:
    """The lookup table with the new pairs in it, each in the first of its places that is free.

    Two new pairs may want one place: the one with the higher number gets it, the other tries its next in another round.
    """
    nowhere, first_new = lookup.shape[0], jnp.min(jnp.where(new, number, jnp.iinfo(jnp.int32).max))
    nth_free = jnp.where(stays, 0, jnp.cumsum(~stays, axis=1))

    def waits(carry: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        return jnp.any(carry[1])

    def settle(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        table, waiting, attempt = carry
        chosen = nth_free == attempt
        place = jnp.where(waiting & jnp.any(chosen, axis=1), jnp.sum(places * chosen, axis=1), nowhere)
        taken = table.at[place].get(mode="fill", fill_value=EMPTY) >= first_new  # by a new pair, in an earlier round
        claimed = jnp.where(taken, nowhere, place)
        table = table.at[claimed].max(number, mode="drop")
        settled = table.at[claimed].get(mode="fill", fill_value=EMPTY) == number
        return table, waiting & ~settled & (attempt < PROBES), attempt + 1

    return jax.lax.while_loop(waits, settle, (lookup, new, jnp.ones((), jnp.int32)))[0]
