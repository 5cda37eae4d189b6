"""How the weights of a network's first and last layer start."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array

from uppertail.errors import InputError
from uppertail.networks.layers import Activation, Normalization

Start = Literal["glorot", "zero"]
"""The names of `--network.input_init` and `--network.output_init`."""


def started(glorot: Array, start: Start) -> Array:
    """The weights of a layer before the first update.

    Args:
        glorot: as they are drawn.
        start: how they start.
    """
    return jnp.zeros_like(glorot) if start == "zero" else glorot


def require_starts(first: Start, last: Start, activation: Activation, normalization: Normalization) -> None:
    """Refuses a start from which nothing is learned: a first layer at zero learns through what comes after it.

    Raises:
        InputError: no gradient would reach the first layer, or far too large a one.
    """
    if first != "zero":
        return
    if last == "zero":
        raise InputError("input_init and output_init are both zero, and nothing would ever be learned: use one.")
    if activation == "relu":
        raise InputError("input_init is zero, where the activation relu has no slope: use elu, tanh or silu.")
    if normalization != "none":
        raise InputError(
            f"input_init is zero, and normalization {normalization} would blow up the first step from there: use none, "
            "or input_init glorot."
        )
