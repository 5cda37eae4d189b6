"""How every program is compiled."""

import functools
from collections.abc import Callable
from typing import Any

import jax


def precise(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with products that keep all 32 bits.

    By default an accelerator rounds their factors, to 11 bits on recent GPUs. Distances between vectors that are far
    from 0, and normal equations, are lost then.
    """

    @functools.wraps(function)
    def of_all_bits(*arguments: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments)

    return of_all_bits


def jitted(function: Callable[..., Any], **options: Any) -> Any:
    """`jax.jit` of a function with precise products."""
    return jax.jit(precise(function), **options)
