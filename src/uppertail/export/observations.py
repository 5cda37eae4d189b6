"""Observations in an exported file: as the environment gives them, then as the network takes them."""

import functools
import itertools
import math
from typing import Any

import numpy as np

from uppertail.encodings import TEXT_PLACES, HashedStates, Pixels, States, one_hot_text
from uppertail.encodings.hashed import MOST
from uppertail.environments import Reading
from uppertail.environments.spaces import Part, rounding
from uppertail.export.operations import Program

LOADED = "call run.act of uppertail.load in place of a file"
"""What to do where there is no export."""

NEEDED = f"{LOADED}, or train with what is left open by default"
"""The same where something that was given has none."""


def read(reading: Reading, actions: int) -> Program:
    """A program for so many actions that has `seen` an observation; InputError if a file cannot read it."""
    shape, parts = reading.shape, reading.parts
    if isinstance(reading.space, HashedStates):
        program = Program(actions, reading.space.pixels, shape or ())
        background = program.constant(np.array(reading.space.background or np.zeros((0, 0))))
        hashes = program.add("hashes", program.observation, MOST, background)
        program.seen = program.add("uint32", hashes)
        return program
    if isinstance(reading.space, States) and shape == ():
        program = Program(actions, "int64")
        program.seen = program.observation - reading.first
        return program
    if isinstance(reading.space, Pixels):
        assert shape is not None
        program = Program(actions, np.dtype(reading.array(np.zeros(shape)).dtype).name, shape)
        program.seen = program.observation
        return program
    program = Program(actions, "" if shape is None else _type(parts), (math.prod(shape or ()),))
    program.seen = whole = program.observation
    if len(shape or ()) > 1:
        program.seen = whole = program.add("reshape", whole, [-1, *program.shape])  # one row of each
    given = [whole if shape is not None else _given(part, whole) for part in parts]
    if isinstance(reading.space, States) and parts:
        program.seen = _state(parts, given)
    elif parts:
        numbers = [*map(_numbers, parts, given)]
        program.seen = numbers[0] if len(numbers) == 1 else program.add("beside", *numbers)
    return program


def _type(parts: tuple[Part, ...]) -> str:
    """The type of an observation that is an array."""
    if parts and all(part.sizes for part in parts):
        return "int64"
    return next((part.origin.dtype.name for part in parts if part.origin is not None), "float32")


def _state(parts: tuple[Part, ...], given: list[Any]) -> Any:
    """Several integers as one state [n], as the digits of a number."""
    sizes = [size for part in parts for size in part.sizes]
    weights = np.cumprod([1, *sizes[:0:-1]])[::-1]
    ends = itertools.accumulate(len(part.sizes) for part in parts)
    of_parts = np.split(weights, [*ends][:-1])
    digits = ((x - part.start) @ weight for part, x, weight in zip(parts, given, of_parts, strict=True))
    return functools.reduce(np.add, digits)


def _given(part: Part, whole: Any) -> Any:
    """A part of dicts or tuples [n, numbers]: a text as the one-hot of its hash, all else as it is."""
    if part.numbers is one_hot_text:
        return np.equal(whole.program.add("texts", whole, TEXT_PLACES, *part.path), np.arange(TEXT_PLACES))
    return whole.program.add("part", whole, *part.path)


def _numbers(part: Part, given: Any) -> Any:
    """A part as numbers [n, numbers]: each integer as a one-hot or as it is, counted from 0."""
    program, sizes = given.program, np.array(part.sizes, int)
    if not sizes.size:
        return program.add("float32", given if part.origin is None else _less(part.origin, given))
    integers = given - part.start
    if not part.is_one_hot:
        return program.add("float32", integers)
    each = np.repeat(np.arange(sizes.size), sizes)
    values = np.concatenate([*map(np.arange, sizes)])
    return program.add("float32", np.equal(program.add("columns", integers, each), values))


def _less(origin: np.ndarray, given: Any) -> Any:
    """Numbers [n, numbers] less what is subtracted from them, in 64 bits; where that is 0, they are as they are."""
    program = given.program
    if origin.dtype.kind == "i":
        return program.add("int64", given) - origin
    step = program.constant(rounding(origin))
    less = np.rint((given - program.constant(origin)) / step) * step
    return program.add("where", program.constant(origin == 0), given, less)
