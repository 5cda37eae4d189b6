"""The two-step MDP of Fig. 1."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from uppertail.environments.builders import StateBuilder
from uppertail.environments.finite import FiniteMDP


@dataclasses.dataclass(frozen=True)
class Toy(StateBuilder):
    """State 0 leads to state 1 (action 0, reward -1) or state 2 (action 1, reward +1).

    State 1 then pays 4 or 1 and state 2 pays 1 or 0 for actions 0 and 1, and the episode ends.

    Examples:
        >>> import jax
        >>> import uppertail as ut
        >>> ut.Toy().build(jax.random.key(0)).reward[..., 0].tolist()
        [[-1.0, 1.0], [4.0, 1.0], [1.0, 0.0]]
    """

    @property
    def success_return(self) -> float:
        return 3.0

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        del key  # nothing is drawn at random
        return FiniteMDP(
            next_state=jnp.array([[1, 2], [1, 1], [2, 2]])[..., None],
            reward=jnp.array([[-1.0, 1.0], [4.0, 1.0], [1.0, 0.0]])[..., None],
            terminated=jnp.array([[False, False], [True, True], [True, True]])[..., None],
            probability=jnp.ones((3, 2, 1)),
            time_limit=2,
        )
