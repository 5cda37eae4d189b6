"""Divides seeds into groups that share a program: each seed alone on a CPU, all at once on an accelerator.

On a CPU, a seed alone keeps its weights in the cache, computes only the branches it takes, and learns the same however
many seeds run beside it. An accelerator needs large products, so its seeds are batched.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.training.process import cores
from uppertail.types import PyTree

ALONE = ("cpu",)  # platforms on which each seed runs alone


@dataclasses.dataclass(frozen=True)
class Group:
    """Some seeds, as a slice of all of them, and the device where they run."""

    rows: slice
    device: Any

    def part_of(self, template: PyTree) -> PyTree:
        """Shapes and types of its part of a tree, whose arrays have a leading axis of all seeds."""
        here, size = jax.sharding.SingleDeviceSharding(self.device), self.rows.stop - self.rows.start
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((size, *leaf.shape[1:]), leaf.dtype, sharding=here), template
        )


class Groups:
    """This many seeds of a run, in groups; as many run at a time as there are cores or accelerators."""

    def __init__(self, seeds: int) -> None:
        devices = jax.local_devices()
        alone = devices[0].platform in ALONE
        count = seeds if alone else min(seeds, len(devices))
        edges = np.linspace(0, seeds, count + 1).astype(int).tolist()
        self.groups = [
            Group(slice(*rows), devices[number % len(devices)]) for number, rows in enumerate(itertools.pairwise(edges))
        ]
        self.workers = min(count, cores()) if alone else count

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def split(self, tree: PyTree) -> list[PyTree]:
        """Each group's part of a tree, whose arrays have a leading axis of all seeds, on its device."""
        return [
            jax.device_put(jax.tree.map(lambda leaf, group=group: leaf[group.rows], tree), group.device)
            for group in self.groups
        ]

    def join(self, parts: list[PyTree]) -> PyTree:
        """Joins the groups' trees into one of all seeds, on the first device or on the host."""
        return parts[0] if len(parts) == 1 else jax.tree.map(_end_to_end, *parts)

    def map(self, function: Callable[..., Any], *parts: list[Any]) -> list[Any]:
        """Applies a function to each group's parts, to as many groups at a time as there are workers."""
        if len(self.groups) == 1:
            return [function(*(each[0] for each in parts))]
        return list(self._threads.map(function, *parts))

    def close(self) -> None:
        """Ends the threads; later calls of `map` start others."""
        if threads := self.__dict__.pop("_threads", None):
            threads.shutdown()

    @functools.cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.workers)


def over_seeds(function: Callable[..., Any], *arguments: PyTree, shared: int = 0) -> PyTree:
    """Applies a function of one seed to arrays with a leading axis of seeds; a single seed on a CPU is not batched.

    The first `shared` arguments are the same for all seeds, and have no such axis.
    """
    function = functools.partial(function, *arguments[:shared])
    own = arguments[shared:]
    if jax.tree.leaves(own)[0].shape[0] > 1 or jax.local_devices()[0].platform not in ALONE:
        return jax.vmap(function)(*own)
    results = function(*jax.tree.map(lambda leaf: leaf[0], own))
    return jax.tree.map(lambda leaf: leaf[None], results)


def _end_to_end(*leaves: Any) -> Any:
    if isinstance(leaves[0], np.ndarray):
        return np.concatenate(leaves)
    return jnp.concatenate(jax.device_put(list(leaves), jax.local_devices()[0]))
