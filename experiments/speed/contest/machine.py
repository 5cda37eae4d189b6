"""What the machine can do: its matrix products, large and small, and the memory this process has used."""

import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from uppertail.training.process import cores

LARGE = 2048
"""Rows and columns of the large product."""

AGAIN = 200
"""Small products in a row."""


def large_products() -> float:
    """GFLOP/s of one large product, with whatever threads XLA gives it."""
    square = jnp.ones((LARGE, LARGE))
    return 2 * LARGE**3 / _seconds(jax.jit(lambda x: x @ x * (1.0 / LARGE)), [square], 1) / 1e9


def small_products(rows: int, width: int, actions: int) -> float:
    """GFLOP/s of products of a batch with each action's weights, one after another, on every core or the accelerator.

    Args:
        rows: rows of the batch.
        width: units of the layers.
        actions: networks.
    """

    def chain(batch: Array, weights: Array) -> Array:
        return jax.lax.fori_loop(0, AGAIN, lambda _, x: jnp.einsum("arw,awv->arv", x, weights), batch)

    workers = cores() if jax.default_backend() == "cpu" else 1
    weights = jnp.broadcast_to(jnp.eye(width), (actions, width, width)) + 0.0
    seconds = _seconds(jax.jit(chain), [jnp.ones((actions, rows, width)), weights], workers)
    return workers * AGAIN * actions * 2 * rows * width**2 / seconds / 1e9


def peak_megabytes() -> float:
    """The most memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def _seconds(function: Callable[..., Any], arguments: list[Any], workers: int) -> float:
    """Median seconds of a call, with this many calls at a time."""

    def call(_: int) -> None:
        jax.block_until_ready(function(*arguments))

    times: list[float] = []
    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(call, range(workers)))
        for _ in range(7):
            began = time.perf_counter()
            list(threads.map(call, range(workers)))
            times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]
