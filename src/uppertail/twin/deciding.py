"""How the twin uses an exploration policy."""

from typing import Any

import jax
from jaxtyping import Array, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.policies import ExplorationPolicy
from uppertail.types import PyTree


def begin(policy: ExplorationPolicy, key: PRNGKeyArray, num_actions: int) -> PyTree:
    """The policy's memory at the start of an episode."""
    return policy.begin(key, 1, num_actions)


def decide(
    policy: ExplorationPolicy, key: PRNGKeyArray, memory: PyTree, family: ReturnDistribution[Any], z: PyTree
) -> tuple[Int[Array, ""], PyTree]:
    """The policy's action in a state, from the distributions of its actions, and its memory after that."""
    action = policy.select(key, memory, family, jax.tree.map(lambda leaf: leaf[None], z))
    return action, policy.advance(jax.random.fold_in(key, 2), memory, action)
