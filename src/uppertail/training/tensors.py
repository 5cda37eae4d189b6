"""Converts trees of arrays to named arrays of plain numbers, which a file can hold, and back."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.training.checkpoint import UnusableCheckpointError
from uppertail.types import PyTree


def to_named(tree: PyTree) -> dict[str, np.ndarray]:
    """Every array of a tree, by its path."""
    return {name: np.asarray(_plain(leaf), order="C") for name, leaf in _leaves(tree)}


def from_named(template: PyTree, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """A tree of the template's structure, with these arrays; the template may hold only shapes and types.

    Raises:
        UnusableCheckpointError: an array is missing, too many, or of another shape or type.
    """
    expected = dict(_leaves(template))
    if odd := sorted(expected.keys() ^ arrays.keys()):
        problem = "missing" if odd[0] in expected else "not expected"
        raise UnusableCheckpointError(f"has another shape: {odd[0]} is {problem}")
    for name, leaf in expected.items():
        plain, array = jax.eval_shape(_plain, leaf), arrays[name]
        if (plain.shape, plain.dtype) != (array.shape, array.dtype):
            found, wanted = (f"{each.dtype}{list(each.shape)}" for each in (array, plain))
            raise UnusableCheckpointError(f"has another shape: {name} is {found}, not {wanted}")
    leaves = [_as(leaf, arrays[name]) for name, leaf in expected.items()]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _leaves(tree: PyTree) -> list[tuple[str, Any]]:
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in paths]


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> Any:
    """The numbers of an array, or of a key."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _as(leaf: Any, array: np.ndarray) -> Any:
    """A copy on the device, since the compiled loop overwrites what it is given."""
    copy = jnp.array(array, copy=True)
    if not _is_key(leaf):
        return copy
    return jax.random.wrap_key_data(copy, impl=jax.random.key_impl(jnp.empty((), leaf.dtype)))
