"""Thompson sampling from the return."""

import dataclasses
from typing import Any

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.policies.base import ExplorationPolicy


@dataclasses.dataclass(frozen=True)
class Thompson(ExplorationPolicy):
    """One draw z_a from the return distribution of each action (Section 5)."""

    def scores(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: Any) -> Float[Array, " actions"]:
        num_actions = jax.tree.leaves(z)[0].shape[0]
        return jax.vmap(family.sample)(jax.random.split(key, num_actions), z)
