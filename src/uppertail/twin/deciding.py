"""The one place where the twin asks an exploration policy."""

from typing import Any

from jaxtyping import Array, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.policies import ExplorationPolicy


def begun(policy: ExplorationPolicy, key: PRNGKeyArray) -> Any:
    """What a policy remembers throughout an episode: nothing."""
    del policy, key
    return ()


def decided(
    policy: ExplorationPolicy, key: PRNGKeyArray, memory: Any, family: ReturnDistribution[Any], z: Any
) -> Int[Array, ""]:
    """The policy's action in a state, from the distributions of its actions."""
    del memory
    return policy.select(key, family, z)
