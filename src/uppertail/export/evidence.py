"""The share of the wide start that is left, as array operations."""

import functools
from typing import Any

import numpy as np

from uppertail.errors import InputError
from uppertail.evidence.kernel_counts import KernelEvidence
from uppertail.export.observations import NEEDED
from uppertail.export.operations import Program
from uppertail.networks import parts_of_actions


@functools.singledispatch
def share_of(unknown: Any, _program: Program) -> Any:
    """The share of the wide start [actions, n, 1] that is left."""
    raise InputError(f"The evidence {type(unknown).__name__} cannot be exported: {NEEDED}.")


@share_of.register
def _(unknown: KernelEvidence, program: Program) -> Any:
    stored = min(int(unknown.added), unknown.capacity)
    per_unit = np.asarray(unknown.per_unit)
    places, taken = np.asarray(unknown.places)[:stored] * per_unit, np.asarray(unknown.taken)[:stored].T[..., None]
    here = program.seen * per_unit
    distance = here @ (-2 * places.T) + np.square(places).sum(axis=1) + (here * here).total(per_unit.size)
    counts = np.exp(np.maximum(distance, 0.0) * np.float32(-1.0)) @ taken
    share = float(unknown.prior_count) / (counts + float(unknown.prior_count))
    if not unknown.sizes:
        return share
    parts = np.nonzero(parts_of_actions(unknown.sizes))[1].reshape(-1, len(unknown.sizes))
    return functools.reduce(np.maximum, (program.add("rows", share, each) for each in parts.T))
