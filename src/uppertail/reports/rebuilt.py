"""The parts of a run, built again from its summary."""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.environments import FiniteMDP
from uppertail.errors import InputError
from uppertail.parts import PARTS
from uppertail.training.seeds import seed_keys
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class Rebuilt:
    """Parts of a run; None: it cannot be built here, for example a class that only the run's own program has.

    Args:
        builder: builds the environments.
        family: the return distributions, as fitted to the environment.
        policy: the exploration policy.
    """

    builder: Any = None
    family: Any = None
    policy: Any = None

    def table(self, seed: int) -> FiniteMDP | None:
        """The table of one seed's environment; None if it has none."""
        if self.builder is None:
            return None
        try:
            environment = self.builder.build(seed_keys(seed).environment)
        except InputError:  # Python steps it
            return None
        return environment if isinstance(environment, FiniteMDP) else None

    def distribution(self, parameters: Mapping[str, np.ndarray]) -> PyTree:
        """The family's own parameters, from their names."""
        paths, structure = jax.tree_util.tree_flatten_with_path(self.family.terminal())
        names = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in paths]
        return jax.tree.unflatten(structure, [jnp.asarray(parameters[name]) for name in names])


def rebuild(summary: Mapping[str, Any], known: Mapping[str, type] | None = None) -> Rebuilt:
    """The parts that a summary names.

    Args:
        summary: the run's.
        known: classes that are not built in, by their names.
    """
    parts = {name: _build(summary[name], PARTS[name].kinds, known or {}) for name in ("env", "distribution", "policy")}
    return Rebuilt(parts["env"], parts["distribution"], parts["policy"])


def _build(described: Mapping[str, Any], kinds: Mapping[str, str], known: Mapping[str, type]) -> Any:
    name = described["name"]
    kind = getattr(importlib.import_module(kinds[name]), name) if name in kinds else known.get(name)
    if kind is None:
        return None
    settings = {setting: _plain(value) for setting, value in described.items() if setting != "name"}
    fields = {field.name for field in dataclasses.fields(kind) if field.init}
    try:
        return kind(**{setting: value for setting, value in settings.items() if setting in fields})
    except (InputError, TypeError, ValueError):  # of a version with other settings
        return None


def _plain(value: Any) -> Any:
    """JSON's lists as the tuples that settings are."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value
