"""Observations of any kind, each with a place of its own in a hash table: a one-hot for those that repeat exactly."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Real

from uppertail.encodings.base import Encoding
from uppertail.encodings.vector import Vector
from uppertail.errors import InputError
from uppertail.hashing import hash_of_numbers
from uppertail.loader import place_of, without

Table = Float[Array, "places 2"]

TRIED = 16  # places that an observation may have: in a half-full table, it finds none free once in 65,000 times
FULL = 0.9  # the share of places taken from which on the user is told: by then one observation in a hundred found none
MOST = 2**31 - 1  # the largest hash of an observation: it is an integer of 32 bits, with a sign, as JAX has them
TEXT_PLACES = 64  # of the one-hot of a text, which takes the place of its hash: no list of texts has to be kept


def hash_of(observation: Any) -> np.ndarray:
    """The hash of an observation, from 1 to MOST. Of 43 sets of 10,000 observations, one holds two with the same."""
    return np.array(1 + place_of(observation, MOST), np.int32)


def hashes_of(observation: Any, background: Real[np.ndarray, "pixels channels"]) -> Int[np.ndarray, "2"]:
    """The hash of an observation whose background is blank, which tells states apart, and that of all of it."""
    return np.array([hash_of(without(observation, background)), hash_of(observation)])


def one_hot_text(text: str) -> Float[np.ndarray, " places"]:
    """A text as the one-hot of its hash."""
    places = np.zeros(TEXT_PLACES, np.float32)
    places[place_of(str(text), TEXT_PLACES)] = 1
    return places


@dataclasses.dataclass(frozen=True)
class Hashed(Encoding):
    """An observation, given by its hash, as a unit vector: its place is the first that was free when it was first seen.

    Two observations share a place only if none was left for the later one, or if their hashes are the same. One that
    was never observed is shown in the place that it would get. The encoder is the table: the upper and lower 16 bits of
    the hash in each place, as numbers; both are 0 in a free one.
    """

    is_one_hot: ClassVar[bool] = True
    places: int  # how many there are, a power of 2

    def __post_init__(self) -> None:
        if self.places < 1 or self.places & (self.places - 1):
            raise InputError(f"places is {self.places}: use a power of 2, for example 4096.")

    @property
    def num_features(self) -> int:
        return self.places

    def init(self, key: PRNGKeyArray) -> Table:
        return jnp.zeros((self.places, 2))

    def observe(self, encoder: Table, observations: Array) -> Table:
        def enter(table: Table, observation: Array) -> tuple[Table, None]:
            place = self.index(table, observation)
            before = table[place]
            return table.at[place].set(jnp.where(_free(before), _halves(self.hash(observation)), before)), None

        return jax.lax.scan(enter, encoder, observations)[0]  # one after another: two may want the same place

    def remark(self, encoder: Float[Array, "seeds places 2"]) -> str | None:
        """A note if the table is so full that some observations found no place."""
        taken = int((np.asarray(encoder) != 0).any(axis=-1).sum(axis=-1).max())
        if taken <= FULL * self.places:
            return None
        return (
            f"{taken:,} of {self.places:,} places for hashed observations are taken, and those that found none share "
            f"one with another: with a larger --env.hash_size, such as {4 * self.places}, fewer do."
        )

    def hash(self, observation: Array) -> Int[Array, ""]:
        """The hash of a state, which is 1 or more: the observation itself, or the first of the two of `hashes_of`."""
        return jnp.ravel(observation)[0]

    def index(self, encoder: Table, observation: Array) -> Int[Array, ""]:
        """The first of an observation's places that holds it or is free, by double hashing; if none is, its first."""
        hashed = self.hash(observation)
        places = tried_places(hashed.astype(jnp.uint32), self.places).astype(jnp.int32)
        held = encoder[places]
        return places[jnp.argmax(_free(held) | jnp.all(held == _halves(hashed)[None], axis=-1))]


@dataclasses.dataclass(frozen=True)
class HashedNumbers(Hashed):
    """A vector of numbers that repeats exactly, as a unit vector.

    Args:
        vector: which numbers count.
        rounding: to multiples of what each is rounded, of all that are shown; 0, or none: it stays as it is.
    """

    vector: Vector
    rounding: tuple[float, ...] = ()

    @property
    def scale(self) -> Float[np.ndarray, " kept"]:
        """How many multiples make 1, of each number that counts; 0: it stays as it is."""
        steps = np.array(self.rounding or [0.0] * self.vector.num_features)[self.vector.kept]
        return np.divide(1.0, steps, out=np.zeros_like(steps), where=steps > 0).astype(np.float32)

    def hash(self, observation: Float[Array, " entries"]) -> Int[Array, ""]:
        numbers, scale = observation.astype(jnp.float32)[self.vector.kept], self.scale
        if scale.any():
            numbers = jnp.where(scale > 0, jnp.round(numbers * scale), numbers)
        hashed = hash_of_numbers(numbers)
        return jnp.maximum(hashed >> 1, 1).astype(jnp.int32)


def tried_places(hashed: Any, places: int) -> Any:
    """The places that an observation may have, of how many, by its hash of 32 bits, for arrays or exported files."""
    tried = hashed + (hashed >> np.uint32(15) | np.uint32(1)) * np.arange(TRIED, dtype=np.uint32)
    return tried & np.uint32(places - 1)


def _halves(observation: Int[Array, ""]) -> Float[Array, " 2"]:
    """The upper and lower 16 bits, which 32-bit floats hold exactly: the encoder goes where networks go."""
    return jnp.stack([observation >> 16, observation & 0xFFFF]).astype(jnp.float32)


def _free(held: Float[Array, "*places 2"]) -> Bool[Array, "*places"]:
    """Whether a place holds nothing."""
    return jnp.all(held == 0, axis=-1)
