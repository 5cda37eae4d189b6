"""The share of the wide start that is left, as array operations."""

import functools
from typing import Any

import numpy as np

from uppertail.encodings import Categories, Encoding
from uppertail.errors import InputError
from uppertail.evidence.counts import CountedEvidence
from uppertail.evidence.kernel_counts import KernelEvidence
from uppertail.evidence.pixel_counts import CELLS, SHADE, PixelEvidence, side, split
from uppertail.export.features import features_of
from uppertail.export.observations import NEEDED
from uppertail.export.operations import Program
from uppertail.export.tables import place_of
from uppertail.hashing import mixed
from uppertail.networks import parts_of_actions


@functools.singledispatch
def share_of(unknown: Any, _program: Program) -> Any:
    """The share of the wide start [actions, n, 1] that is left."""
    raise InputError(f"The evidence {type(unknown).__name__} cannot be exported: {NEEDED}.")


@share_of.register
def _(unknown: CountedEvidence, program: Program) -> Any:
    shares = float(unknown.prior_count) / (float(unknown.prior_count) + np.asarray(unknown.visits))
    here = program.add("rows", shares, place_of(unknown.encoding, unknown.encoder, program))
    return program.add("reshape", program.add("transpose", here), [unknown.visits.shape[1], -1, 1])


@share_of.register
def _(unknown: KernelEvidence, program: Program) -> Any:
    stored = min(int(unknown.added), unknown.capacity)
    per_unit = np.asarray(unknown.per_unit)
    places, taken = np.asarray(unknown.places)[:stored] * per_unit, np.asarray(unknown.taken)[:stored].T[..., None]
    here = program.seen * per_unit
    distance = here @ (-2 * places.T) + np.square(places).sum(axis=1) + (here * here).total(per_unit.size)
    counts = np.exp(np.maximum(distance, 0.0) * np.float32(-1.0)) @ taken
    return _of_actions(float(unknown.prior_count) / (counts + float(unknown.prior_count)), unknown.sizes)


@share_of.register
def _(unknown: PixelEvidence, program: Program) -> Any:
    weights, prior = np.asarray(unknown.weights), float(unknown.prior_count)
    subset, place = np.nonzero(weights)
    chosen = weights[subset, place]
    shades = program.add("columns", blocks_of(unknown.encoding, program), place) / SHADE
    whole = program.add("int32", np.floor(shades + (chosen >> 8).astype(np.float32) * 2.0**-24))
    count = len(weights)
    codes = program.add("uint32", whole) @ np.where(subset[:, None] == np.arange(count), chosen[:, None], 0)
    cells = program.add("int64", mixed(codes) % np.uint32(CELLS)) + np.arange(count) * CELLS  # [n, subsets]
    shares = prior / (prior + np.asarray(unknown.visits).reshape(-1, unknown.num_parts))
    different, which = np.unique(shares, axis=0, return_inverse=True)
    here = program.add("rows", different, program.add("rows", which.ravel(), program.add("transpose", cells)))
    return _of_actions(program.add("transpose", here).total(count) / float(count), unknown.sizes)


def blocks_of(encoding: Encoding, program: Program) -> Any:
    """What is counted [n, shades]: of an image, the darkest and brightest shade of each block; of names, numbers."""
    pixels = pixels_of(encoding, program)
    if (size := side(encoding)) == 1:
        return pixels
    places = split(np, np.arange(encoding.num_features).reshape(encoding.pixel_shape or ()), size)
    shades = program.add("columns", pixels, np.moveaxis(places, (1, 3), (3, 4)).reshape(-1, size * size))
    return program.add("beside", (shades * -1.0).highest() @ -np.ones(1), shades.highest() @ np.ones(1))


@functools.singledispatch
def pixels_of(encoding: Any, program: Program) -> Any:
    """What the observations show place by place [n, pixels]."""
    return features_of(encoding, (), program)


@pixels_of.register
def _(encoding: Categories, program: Program) -> Any:
    return program.add("columns", program.seen, encoding.vector.kept)


def _of_actions(share: Any, sizes: tuple[int, ...] | None) -> Any:
    """The share of each action [actions, n, 1]: that of the newest of its parts."""
    if not sizes:
        return share
    parts = np.nonzero(parts_of_actions(sizes))[1].reshape(-1, len(sizes))
    return functools.reduce(np.maximum, (share.program.add("rows", share, each) for each in parts.T))
