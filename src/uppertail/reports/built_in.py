"""The parts that a summary describes, where their classes are ours: no class of a user is imported to read a run."""

import importlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.errors import InputError
from uppertail.parts import PARTS
from uppertail.types import PyTree


def kind_of(part: str, described: Mapping[str, Any]) -> Any:
    """The built-in class of a part; None if it is another one."""
    name = described["name"]
    module = PARTS[part].kinds.get(name)
    return module and getattr(importlib.import_module(module), name)


def built_in(part: str, described: Mapping[str, Any]) -> Any:
    """A part with its settings; None if its class is not built in, or refuses them.

    Args:
        part: the part's option, distribution or policy.
        described: its name and settings, as a summary has them.
    """
    kind = kind_of(part, described)
    settings = {name: _plain(value) for name, value in described.items() if name != "name"}
    try:
        return kind and kind(**settings)
    except (InputError, TypeError, ValueError):
        return None


def are_of(family: Any, arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether recorded arrays are parameters of this family."""
    return {name: array.shape[5:] for name, array in arrays.items()} == {name: x.shape for name, x in _leaves(family)}


def parameters_of(family: Any, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """A family's parameters, from recorded arrays."""
    leaves = [jnp.asarray(arrays[name], leaf.dtype) for name, leaf in _leaves(family)]
    return jax.tree.unflatten(jax.tree.structure(family.terminal()), leaves)


def _leaves(family: Any) -> list[tuple[str, Any]]:
    paths, _ = jax.tree_util.tree_flatten_with_path(family.terminal())
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), jnp.asarray(leaf)) for path, leaf in paths]


def _plain(value: Any) -> Any:
    """JSON's lists as the tuples that settings are."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value
