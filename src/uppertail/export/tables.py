"""The place of an observation in a table, as array operations; that of one never seen is the one it would get."""

import functools
from typing import Any

import numpy as np

from uppertail.encodings import Encoding, Hashed, HashedNumbers, Nearest
from uppertail.encodings.hashed import TRIED, tried_places
from uppertail.encodings.nearest import Centers
from uppertail.errors import InputError
from uppertail.export.observations import NEEDED
from uppertail.export.operations import Program
from uppertail.hashing import mixed, odd_numbers


@functools.singledispatch
def place_of(encoding: Encoding, _encoder: Any, _program: Program) -> Any:
    """The place [n] of observations in the table of a one-hot encoding."""
    raise InputError(f"Observations encoded by {type(encoding).__name__} cannot be exported: {NEEDED}.")


@place_of.register
def _(encoding: Hashed, encoder: Any, program: Program) -> Any:
    return _first_of(encoding, encoder, program, program.seen)


@place_of.register
def _(encoding: HashedNumbers, encoder: Any, program: Program) -> Any:
    kept, one = encoding.vector.kept, np.uint32(1)
    numbers, scale = program.add("columns", program.seen, kept), encoding.scale
    if scale.any():
        numbers = program.add("where", scale > 0, np.rint(numbers * scale), numbers)
    bits, odd = program.add("bits", numbers), odd_numbers(kept.size)
    return _first_of(encoding, encoder, program, np.maximum(mixed(mixed(bits ^ odd[0]) @ odd[1][:, None]) >> one, one))


def _first_of(encoding: Hashed, encoder: Any, program: Program, hashed: Any) -> Any:
    """The first of the places [n] of hashes [n, 1] that holds the hash or is free; if none is, the first."""
    places = tried_places(hashed, encoding.places)
    held = program.add("rows", np.asarray(encoder, np.uint32) @ np.array([2**16, 1], np.uint32), places)
    first = program.add("best", np.equal(held, np.uint32(0)) | np.equal(held, hashed))
    return (program.add("rows", np.eye(TRIED, dtype=np.uint32), first) * places) @ np.ones(TRIED, np.uint32)


@place_of.register
def _(encoding: Nearest, encoder: Centers, program: Program) -> Any:
    points, taken = np.asarray(encoder.points), np.asarray(encoder.visits) > 0
    entries = np.broadcast_to(np.arange(encoding.entries), points.shape)
    apart = program.add("columns", program.seen, entries) - points
    squares = (apart * apart) @ np.ones(encoding.entries) / float(encoding.entries)
    new = np.where(taken, 0.0, encoding.radius**2)  # a free place is as far away as the radius
    return program.add("best", (squares * taken.astype(np.float32) + new) * -1.0)
