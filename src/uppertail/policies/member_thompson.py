"""Thompson sampling over members: one is followed for a whole episode."""

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.errors import InputError
from uppertail.policies.base import ExplorationPolicy, highest
from uppertail.schema import settle
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class MemberThompson(ExplorationPolicy):
    """Follows one member, or one draw of a network's weights, until the episode ends (Osband et al. 2016).

    With draws of the return, both uncertainties are sampled: what is not known, once for each episode, and the chance
    that this member predicts, at each decision (Moerland, Broekens, Jonker 2017). With `within`, what is not known is
    sampled, and the spread that this member predicts attracts, as in `UCB`.

    Args:
        draws: 0: the action of the member's highest score; else the highest of this many draws from its return
            distribution of each action, as `Thompson` does.
        within: how much the spread of the member's return counts in its score, mean + within * spread; 0 or more.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> family, key = ut.Gaussian(), jax.random.key(0)
        >>> one, other = [[0.5, -9.0], [0.0, -9.0]], [[0.5, -9.0], [0.8, -9.0]]  # two members disagree about action 1
        >>> z = jax.vmap(jax.vmap(family.from_outputs))(jnp.array([one, other]))
        >>> policy = ut.MemberThompson()
        >>> [int(policy.select(key, member, family, z)) for member in (jnp.array(0), jnp.array(1))]
        [0, 1]
    """

    draws: int = 0
    within: float = 0.0
    needs_members: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(self)
        if self.draws < 0:
            raise InputError(f"draws is {self.draws}: use 0, the member's means, or more draws from its returns.")
        if not 0 <= self.within < math.inf:
            raise InputError(f"within is {self.within}: use a finite number, 0 or more; 0 leaves the spread out.")
        if self.draws and self.within:
            raise InputError(
                f"draws is {self.draws} and within is {self.within}, but draws hold the spread already: set one to 0."
            )

    def begin(self, key: PRNGKeyArray, members: int, num_actions: int) -> Int[Array, ""]:
        del num_actions
        return jax.random.randint(key, (), 0, members)

    def select(
        self, key: PRNGKeyArray, memory: Int[Array, ""], family: ReturnDistribution[Any], z: PyTree
    ) -> Int[Array, ""]:
        believed = jax.tree.map(lambda leaf: leaf[memory], z)
        if self.draws == 0:
            bonus = self.within * jax.vmap(family.std)(believed) if self.within else 0.0
            return highest(key, jax.vmap(family.mean)(believed) + bonus)
        draw_key, tie_key = jax.random.split(key)
        keys = jax.random.split(draw_key, (self.draws, jax.tree.leaves(believed)[0].shape[0]))
        draws = jax.vmap(jax.vmap(family.sample), in_axes=(0, None))(keys, believed)
        return highest(tie_key, jnp.max(draws, axis=0))
