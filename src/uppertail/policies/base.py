"""The contract of an exploration policy."""

import abc
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.types import PyTree

BEGIN = 2
"""Folded into a decision's key to draw the memory that an episode begins with; `select` may split the key itself."""


class ExplorationPolicy(abc.ABC):
    """Chooses an action from the return distributions of one state. A policy is a frozen dataclass.

    A policy may keep something for an episode, its memory: a tree of arrays that `begin` makes, that `select` reads
    and that `advance` carries on. Most keep nothing, and write nothing about it: those are `Memoryless`.

    Args of the methods:
        key: randomness of this call.
        members: how many members the network has; 1 for a single network.
        num_actions: number of discrete actions.
        memory: what the policy keeps for this episode.
        family: the family that `z` belongs to.
        z: its parameters; every array has leading axes [members, actions].

    Attributes:
        needs_members: whether the policy makes sense only for a network with several members.
        explores_by_spread: whether it leaves the greedy action only because the return is spread.

    Examples:
        >>> import dataclasses
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> family, key = ut.Gaussian(), jax.random.key(0)
        >>> outputs = jnp.array([[[1.0, -9.0], [0.0, 1.0]]])  # 1 for sure; 0 on average, widely spread
        >>> z = jax.vmap(jax.vmap(family.from_outputs))(outputs)
        >>> @dataclasses.dataclass(frozen=True)
        ... class Stubborn(ut.ExplorationPolicy):
        ...     '''One action, drawn at random, until the episode ends.'''
        ...
        ...     def begin(self, key, members, num_actions):
        ...         return jax.random.randint(key, (), 0, num_actions)
        ...
        ...     def select(self, key, memory, family, z):
        ...         return memory
        >>> policy = Stubborn()
        >>> action = policy.begin(key, members=1, num_actions=2)
        >>> bool(policy.select(key, policy.advance(key, action, action), family, z) == action)
        True
    """

    needs_members: ClassVar[bool] = False
    explores_by_spread: ClassVar[bool] = False

    def begin(self, key: PRNGKeyArray, members: int, num_actions: int) -> PyTree:
        """The memory at the start of an episode; nothing by default."""
        del key, members, num_actions
        return ()

    @abc.abstractmethod
    def select(self, key: PRNGKeyArray, memory: PyTree, family: ReturnDistribution[Any], z: PyTree) -> Int[Array, ""]:
        """The action in one state."""

    def advance(self, key: PRNGKeyArray, memory: PyTree, action: Int[Array, ""]) -> PyTree:
        """The memory after an action was selected; as it was by default."""
        del key, action
        return memory

    def next_action(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: PyTree) -> Int[Array, ""]:
        """a' of a replayed transition, chosen as the first action of an episode is.

        Args:
            key: randomness of this call.
            family: the family that `z` belongs to.
            z: the distributions of one member at s', each array with a leading axis of actions.
        """
        alone = jax.tree.map(lambda leaf: leaf[None], z)
        memory = self.begin(jax.random.fold_in(key, BEGIN), 1, jax.tree.leaves(z)[0].shape[0])
        return self.select(key, memory, family, alone)


class Memoryless(ExplorationPolicy):
    """A policy that keeps nothing: it takes the action with the highest score, and draws anew for each decision.

    An ensemble is scored by the mean over its members, all with the same randomness.

    Examples:
        >>> import dataclasses
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> family, key = ut.Gaussian(), jax.random.key(0)
        >>> outputs = jnp.array([[[1.0, -9.0], [0.0, 1.0]]])  # 1 for sure; 0 on average, widely spread
        >>> z = jax.vmap(jax.vmap(family.from_outputs))(outputs)
        >>> @dataclasses.dataclass(frozen=True)
        ... class Curious(ut.Memoryless):
        ...     def scores(self, key, family, z):
        ...         return jax.vmap(family.std)(z)
        >>> int(Curious().select(key, (), family, z))
        1
    """

    @abc.abstractmethod
    def scores(self, key: PRNGKeyArray, family: ReturnDistribution[Any], z: PyTree) -> Float[Array, " actions"]:
        """One number per action, in units of return: the highest is chosen.

        Args:
            key: randomness of this decision.
            family: the family that `z` belongs to.
            z: the distributions of one member, each array with a leading axis of actions.
        """

    def select(self, key: PRNGKeyArray, memory: PyTree, family: ReturnDistribution[Any], z: PyTree) -> Int[Array, ""]:
        del memory
        score_key, tie_key = jax.random.split(key)
        of_each = jax.vmap(lambda member: self.scores(score_key, family, member))(z)
        return highest(tie_key, jnp.mean(of_each, axis=0))


def highest(key: PRNGKeyArray, scores: Float[Array, " actions"]) -> Int[Array, ""]:
    """The action with the highest score; ties are broken at random.

    It never tests `scores == max(scores)`: a compiler may compute the scores twice and round them differently, so that
    none is equal.
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
