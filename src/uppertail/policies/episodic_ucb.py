"""Upper confidence bound with visits within the episode, for a new layout in each of them."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.policies.base import Decision, ExplorationPolicy
from uppertail.schema import settle, traced

PLACES = 4096
"""Places for an episode's observations in the hash table of visits: one more of 200 meets another in 5% of cases."""

Visits = Float[Array, "places actions"]


@dataclasses.dataclass(frozen=True)
class EpisodicUCB(ExplorationPolicy):
    """mean + c * std / (1 + n)^power, with n the visits to (s, a) within the episode.

    The spread is what is not known over the whole run, and it is backed up as ever; visits of an episode count where an
    action is chosen, not in a backup, which belongs to no episode. Where layouts change, a state that the run knows
    still has to be left for another one in each episode (Henaff et al. 2023, arXiv 2306.03236, with power 1/2). Visits
    are told apart by hashes, so observations have to repeat exactly.

    Args:
        c: how much the spread counts, at least 0.
        power: how fast it falls with the visits, at least 0; 0 is `UCB`.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.distributions.gaussian import GaussianReturn
        >>> z = GaussianReturn(mean=jnp.array([[0.5, 0.0]]), std=jnp.array([[1.0, 1.0]]))  # one member, two actions
        >>> policy, key = ut.EpisodicUCB(c=2.0), jax.random.key(0)
        >>> decision = policy.begun(key, ut.Decision(ut.Gaussian(), z, observation=jnp.array(7)))
        >>> first = policy.select(key, decision)
        >>> again = decision.with_memory(policy.advance(key, decision, first))
        >>> int(first), int(policy.select(key, again)), policy.scores(key, again).tolist()
        (0, 1, [1.5, 2.0])
    """

    explores_by_spread: ClassVar[bool] = True
    c: float = traced(2.0)
    power: float = traced(1.0)

    def __post_init__(self) -> None:
        settle(self)
        for name in ("c", "power"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}: use 0 or more.")

    @property
    def optimism(self) -> Float[Array, ""] | float:
        return self.c

    def begin(self, key: PRNGKeyArray, decision: Decision) -> Visits:
        return jnp.zeros((PLACES, decision.num_actions))

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        mean, spread = jnp.mean(decision.mean, axis=0), jnp.mean(decision.std, axis=0)
        if decision.observation is not None:
            spread = spread / (1.0 + decision.memory[place_of(decision.observation)]) ** self.power
        return mean + self.c * spread

    def advance(self, key: PRNGKeyArray, decision: Decision, action: Int[Array, ""]) -> Visits:
        return decision.memory.at[place_of(decision.observation), action].add(1.0)


def place_of(observation: Any) -> Int[Array, ""]:
    """The hash of an observation, below PLACES: the upper bits of a sum of its numbers' bits, each times an odd one."""
    numbers = jnp.ravel(observation)
    wide = numbers.astype(jnp.float32 if jnp.issubdtype(numbers.dtype, jnp.floating) else jnp.int32)
    bits = jax.lax.bitcast_convert_type(wide + 0, jnp.uint32)  # -0.0 becomes 0.0
    odd = np.random.default_rng(0).integers(2**31, size=bits.shape[0], dtype=np.uint32) * 2 + 1
    mixed = jnp.sum((bits ^ (bits >> 16)) * odd, dtype=jnp.uint32)
    return ((mixed ^ (mixed >> 15)) * jnp.uint32(0x2C1B3C6D) >> 20).astype(jnp.int32)  # of 32 bits, the upper 12
