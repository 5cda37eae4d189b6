"""What becomes of the sums of a hidden layer, as array operations."""

from collections.abc import Callable
from typing import Any

import numpy as np

from uppertail.networks.layers import TINY, Activation, Normalization, Units


def units_of(units: Units, sums: Any, count: int) -> Any:
    """The `count` hidden units along the last axis, from their sums."""
    return ACTIVATIONS[units.activation](NORMALIZATIONS[units.normalization](sums, count))


def _rms(x: Any, count: int) -> Any:
    return x / np.sqrt((x * x).total(count) / float(count) + TINY)


ACTIVATIONS: dict[Activation, Callable[[Any], Any]] = {
    "elu": lambda x: np.maximum(x, 0.0) + (np.exp(np.minimum(x, 0.0)) - 1.0),
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "silu": lambda x: x * 0.5 * (np.tanh(x * 0.5) + 1.0),  # x / (1 + exp(-x)), but it does not overflow
}
NORMALIZATIONS: dict[Normalization, Callable[[Any, int], Any]] = {
    "none": lambda x, count: x,
    "layer": lambda x, count: _rms(x - x.total(count) / float(count), count),
    "rms": _rms,
}
