"""Converts trees of arrays to named arrays of plain numbers, which a file can hold, and back."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.types import PyTree


class OtherShapesError(Exception):
    """Arrays do not fit the tree that they are put into; the error's text says which, and how."""


def to_named(tree: PyTree) -> dict[str, np.ndarray]:
    """Every array of a tree, by its path."""
    return {name: np.asarray(_plain(leaf), order="C") for name, leaf in _leaves(tree)}


def from_named(template: PyTree, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """A tree of the template's structure, shapes and types, with these arrays.

    Args:
        template: the tree, or its shapes from `jax.eval_shape`.
        arrays: the array of each path.

    Raises:
        OtherShapesError: an array is missing, too many, or of another shape or type.
    """
    expected = dict(_leaves(template))
    if odd := sorted(expected.keys() ^ arrays.keys()):
        raise OtherShapesError(f"{odd[0]} is {'missing' if odd[0] in expected else 'not expected'}")
    for name, leaf in expected.items():
        plain = jax.eval_shape(_plain, leaf)
        if (plain.shape, plain.dtype) != (arrays[name].shape, arrays[name].dtype):
            raise OtherShapesError(f"{name} is {_shape_text(arrays[name])}, not {_shape_text(plain)}")
    return jax.tree.unflatten(
        jax.tree.structure(template), [_as(leaf, arrays[name]) for name, leaf in expected.items()]
    )


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
    return (
        jax.random.wrap_key_data(copy, impl=jax.random.key_impl(jnp.empty((), leaf.dtype))) if _is_key(leaf) else copy
    )


def _shape_text(array: Any) -> str:
    return f"{array.dtype}{list(array.shape)}"
