"""The contract of an exploration policy."""

import abc
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution


class ExplorationPolicy(abc.ABC):
    """Chooses an action from the return distributions of one state. A policy is a frozen dataclass.

    Args of both methods:
        key: randomness of this decision.
        family: the family that `z` belongs to.
        z: its parameters, each with a leading axis of actions.
    """

    @abc.abstractmethod
    def scores(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: Any) -> Float[Array, " actions"]:
        """One number per action, in units of return: the highest is chosen."""

    def select(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: Any) -> Int[Array, ""]:
        """The action with the highest score; ties are broken at random."""
        score_key, tie_key = jax.random.split(key)
        return highest(tie_key, self.scores(score_key, family, z))


def highest(key: PRNGKeyArray, scores: Float[Array, " actions"]) -> Int[Array, ""]:
    """The action with the highest score; ties are broken at random.

    It never asks for `scores == max(scores)`: a compiler may compute the scores twice, round them differently, and find
    none that is equal.
    """
    actions = jnp.arange(scores.shape[0], dtype=jnp.int32)
    candidates = scores, jax.random.uniform(key, scores.shape), actions
    return jax.lax.reduce(candidates, (-jnp.inf, -1.0, 0), _better, (0,))[2]


def _better(one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
    """Of two candidates (score, tie break, action) the one with the higher score, or the higher tie break."""
    (score, tie_break, action), (other_score, other_tie_break, other_action) = one, other
    goes_first = (tie_break > other_tie_break) | ((tie_break == other_tie_break) & (action < other_action))
    wins = (score > other_score) | ((score == other_score) & goes_first)
    return tuple(jnp.where(wins, ours, theirs) for ours, theirs in zip(one, other, strict=True))
