"""How the weights of a network's first and last layer start."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.networks.layers import Activation, Normalization

Start = Literal["glorot", "zero"]
"""The names of `--network.output_init`."""

InputStart = Literal["auto", "glorot", "zero"]
"""The names of `--network.input_init`."""

LOCAL_GAIN = 30.0
"""The gain of a first layer whose inputs are local. With a minibatch of 256 and Adam's default settings, a one-hot
state that is drawn once then goes most of the way to its target (docs/decisions/0012)."""


def first_layer(
    start: InputStart, gain: float | None, encoding: Encoding, later: Start, activation: Activation, norm: Normalization
) -> tuple[Start, float]:
    """How a first layer starts, and how many times its steps count; the encoding settles what is left open.

    Args:
        start: auto: zero where observations are local and something can be learned from there.
        gain: None: `LOCAL_GAIN` where observations are local, else 1.
        encoding: the encoding of the observations.
        later: how the last layer starts.
        activation: what hidden units go through.
        norm: what is done to hidden units before that.
    """
    local = encoding.is_local
    learns = later != "zero" and activation != "relu" and norm == "none"
    settled: Start = ("zero" if local and learns else "glorot") if start == "auto" else start
    return settled, (LOCAL_GAIN if local else 1.0) if gain is None else gain


def start_layer(glorot: Array, start: Start) -> Array:
    """Sets the weights of a layer before the first update.

    Args:
        glorot: random weights.
        start: whether the layer keeps them, or starts at zero.
    """
    return jnp.zeros_like(glorot) if start == "zero" else glorot


def require_starts(first: InputStart, last: Start, activation: Activation, normalization: Normalization) -> None:
    """Refuses a start from which nothing is learned: a first layer at zero learns only through the later layers.

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
