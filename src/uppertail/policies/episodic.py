"""The base of policies that count the visits of an episode, and a softmax."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.hashing import hash_of_numbers
from uppertail.policies.base import Decision, ExplorationPolicy
from uppertail.schema import settle, traced

PLACES = 4096
"""Places for an episode's observations in the hash table of visits: one more of 200 meets another in 5% of cases."""

LOWEST, HIGHEST = 1e-6, 1e3
"""The lowest temperature and the highest power of a softmax: beyond them, 32-bit floats overflow."""

Visits = Float[Array, "places actions"]


class CountsVisits(ExplorationPolicy):
    """A policy whose memory is how often each action was taken in each place of this episode.

    Observations are told apart by hashes, so they have to repeat exactly. A backup belongs to no episode.
    """

    def begin(self, key: PRNGKeyArray, decision: Decision) -> Visits:
        return jnp.zeros((PLACES, decision.num_actions))

    def advance(self, key: PRNGKeyArray, decision: Decision, action: Int[Array, ""]) -> Visits:
        return decision.memory.at[visit_place(decision.observation), action].add(1.0)

    def visits(self, decision: Decision) -> Float[Array, " actions"]:
        """The visits to each action of this observation within the episode; 0 in a backup."""
        if decision.observation is None:
            return jnp.zeros(decision.num_actions)
        return decision.memory[visit_place(decision.observation)]


@dataclasses.dataclass(frozen=True)
class Softmax(CountsVisits):
    """Draws an action with a probability proportional to exp(mean / temperature) / (1 + n)^power.

    n is the number of visits to (s, a) within the episode, with s the whole observation. With power 0 it is Boltzmann
    exploration; with power 1 an episode leaves what it has already tried, and does not go round in circles.

    Args:
        temperature: a difference of means that makes one action e times as probable as another, above 0; in units of
            the distribution's `scale` (by default the range of returns), and of return where it has none.
        power: how fast the probability of an action falls with its visits, at least 0.

    Examples:
        >>> from uppertail.distributions.point_mass import PointMassReturn
        >>> z = PointMassReturn(mean=jnp.log(jnp.array([[3.0, 1.0]])))  # one member, two actions
        >>> policy, key = ut.Softmax(), jax.random.key(0)
        >>> decision = policy.begun(key, ut.Decision(ut.PointMass(), z, observation=jnp.array(7)))
        >>> once = decision.with_memory(policy.advance(key, decision, jnp.array(0)))
        >>> [round(float(jnp.exp(policy.log_probabilities(each))[0]), 2) for each in (decision, once)]
        [0.75, 0.6]
    """

    temperature: float = traced(1.0)
    power: float = traced(1.0)

    def __post_init__(self) -> None:
        settle(self)
        if not LOWEST <= self.temperature <= 1 / LOWEST:
            raise InputError(f"temperature is {self.temperature}: use a number from {LOWEST} to {1 / LOWEST:g}.")
        if not 0 <= self.power <= HIGHEST:
            raise InputError(f"power is {self.power}: use a number from 0 to {HIGHEST:g}.")

    def log_probabilities(self, decision: Decision) -> Float[Array, " actions"]:
        """The logarithm of the probability of each action."""
        preferences = jnp.mean(decision.mean, axis=0) / (decision.family.unit * self.temperature)
        return jax.nn.log_softmax(preferences - self.power * jnp.log1p(self.visits(decision)))

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return self.log_probabilities(decision) + jax.random.gumbel(key, (decision.num_actions,))


def visit_place(observation: Any) -> Int[Array, ""]:
    """The place of an observation, below PLACES."""
    return (hash_of_numbers(observation) >> 20).astype(jnp.int32)  # of 32 bits, the upper 12
