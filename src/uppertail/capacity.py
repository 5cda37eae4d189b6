"""How much memory is free, and an error for a request that needs more, before anything is allocated."""

import contextlib
import math
from pathlib import Path
from typing import Any

import psutil

from uppertail.errors import InputError

CONTAINER = Path("/sys/fs/cgroup")
GIB = 2**30


def require_memory(needed: float, what: str, remedy: str) -> None:
    """Refuses a request for more bytes than are free, in a sentence that begins with what needs them."""
    free = free_memory()
    if free is not None and needed > free:
        raise InputError(f"{what} about {needed / GIB:,.1f} GiB of memory, and {free / GIB:,.1f} are free: {remedy}.")


def size_of(tree: Any) -> float:
    """Bytes of a tree of arrays, or of the shapes that `jax.eval_shape` gives."""
    import jax

    leaves = [leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]
    return sum(float(leaf.size) * getattr(leaf.dtype, "itemsize", 8) for leaf in leaves)  # a key is two words


def free_memory() -> float | None:
    """Bytes that a new array may take: of the device, else of the machine or the container; None: not known."""
    import jax

    if stats := jax.devices()[0].memory_stats():
        return stats["bytes_limit"] - stats["bytes_in_use"] if "bytes_limit" in stats else None
    return min(float(psutil.virtual_memory().available), _free_in_container())


def _free_in_container() -> float:
    """What is left of the limit of a control group (version 2), where caches count as free; infinite without one."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        limit = (CONTAINER / "memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            used = int((CONTAINER / "memory.current").read_text(encoding="ascii"))
            lines = (line.split() for line in (CONTAINER / "memory.stat").read_text(encoding="ascii").splitlines())
            return float(int(limit) - used + sum(int(count) for name, count in lines if name == "inactive_file"))
    return math.inf
