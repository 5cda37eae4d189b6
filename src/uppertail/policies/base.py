"""The contract of an exploration policy, what it sees when it decides, and the two undirected policies."""

import abc
import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.errors import Explained, InputError
from uppertail.masks import ActionMask, masked
from uppertail.schema import settle, traced
from uppertail.types import PyTree

BEGIN, ADVANCE = 2, 3  # folded into a decision's key to draw the memory before and after it; `select` splits the key


class Posterior(NamedTuple):
    """What a policy asks of the posterior of the values."""

    draws: int  # how many draws
    c: float  # standard deviations above its mean at which the start is valued
    scale: float  # what standard errors are multiplied by


@dataclasses.dataclass(frozen=True)
class Decision:
    """What a policy sees in one state.

    In a backup, which chooses the next action of a replayed transition, all but `family`, `z`, `action_mask` and the
    memory of a run's first step is None: a policy does without.

    Args:
        family: the family of return distributions.
        z: its parameters; every array has leading axes [members, actions], with one member for a single network.
        observation: the state, as the environment shows it.
        evidence: the share of the wide start that is left for each action, from 1 (nothing learned) to 0; only for
            policies with `needs_evidence`.
        drawn: the value of each action in a few draws from the posterior; only for policies with `posterior`.
        memory: what the policy keeps.
        action_mask: which actions are allowed; None: all. `select` takes no other one, whatever the scores.

    Examples:
        >>> from uppertail.distributions.gaussian import GaussianReturn
        >>> z = GaussianReturn(mean=jnp.array([[1.0, 0.0]]), std=jnp.array([[0.0, 2.0]]))  # one member, two actions
        >>> decision = ut.Decision(ut.Gaussian(), z, observation=jnp.array(3))
        >>> decision.num_actions, decision.mean.tolist(), decision.std.tolist()
        (2, [[1.0, 0.0]], [[0.0, 2.0]])
    """

    family: ReturnDistribution[Any]
    z: PyTree
    observation: Any = None
    evidence: Float[Array, " actions"] | None = None
    drawn: Float[Array, "draws actions"] | None = None
    memory: PyTree = ()
    action_mask: ActionMask = None

    @property
    def num_members(self) -> int:
        """How many members the network has; 1 for a single network."""
        return jax.tree.leaves(self.z)[0].shape[0]

    @property
    def num_actions(self) -> int:
        """How many actions there are."""
        return jax.tree.leaves(self.z)[0].shape[1]

    @property
    def mean(self) -> Float[Array, "members actions"]:
        """The mean return of each action, by each member."""
        return jax.vmap(jax.vmap(self.family.mean))(self.z)

    @property
    def std(self) -> Float[Array, "members actions"]:
        """The standard deviation of the return of each action, by each member."""
        return jax.vmap(jax.vmap(self.family.std))(self.z)

    def draws(self, key: PRNGKeyArray, count: int) -> Float[Array, "draws members actions"]:
        """Draws from the return of each action; all members with the same randomness."""
        keys = jax.random.split(key, (count, self.num_actions))
        of_member = jax.vmap(self.family.sample)
        return jax.vmap(jax.vmap(of_member, in_axes=(None, 0)), in_axes=(0, None))(keys, self.z)

    def with_memory(self, memory: PyTree) -> "Decision":
        """The same with another memory."""
        return dataclasses.replace(self, memory=memory)


class ExplorationPolicy(metaclass=Explained):
    """Scores the actions of one state; the highest score wins. A policy is a frozen dataclass.

    It may keep a memory, a tree of arrays, for each environment of each seed: `init` makes it for a run, `begin` renews
    it for an episode, in full or in part, `scores` reads it as `decision.memory`, and `advance` updates it; `begin` and
    `advance` return the same shapes. In a backup, and in each episode of an evaluation, a policy remembers nothing of
    the run: its memory is what `begin` makes of that of `init`.

    Attributes:
        needs_members: whether the policy makes sense only for a network with several members.
        needs_evidence: whether it reads `decision.evidence`, which LeastSquares and `--evidence` give.
        explores_by_spread: whether it leaves the greedy action only because the return is spread.

    Examples:
        >>> from uppertail.distributions.gaussian import GaussianReturn
        >>> class Curious(ut.ExplorationPolicy):
        ...     def scores(self, key, decision):
        ...         return jnp.mean(decision.std, axis=0)
        >>> z = GaussianReturn(mean=jnp.array([[1.0, 0.0]]), std=jnp.array([[0.0, 2.0]]))  # one member, two actions
        >>> int(Curious().select(jax.random.key(0), ut.Decision(ut.Gaussian(), z)))
        1
    """

    needs_members: ClassVar[bool] = False
    needs_evidence: ClassVar[bool] = False
    explores_by_spread: ClassVar[bool] = False

    @property
    def optimism(self) -> Float[Array, ""] | float:
        """About how many standard deviations above the mean it values an action."""
        return 1.0

    @property
    def posterior(self) -> Posterior | None:
        """The draws that it reads as `decision.drawn`, which LeastSquares makes for tables; None: it reads none."""
        return None

    @property
    def evaluated(self) -> "ExplorationPolicy":
        """The policy that plays for it in an evaluation; by default, itself."""
        return self

    @abc.abstractmethod
    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        """One number per action: the highest is chosen, and ties are broken at random."""

    def init(self, decision: Decision) -> PyTree:
        """The memory before the first episode of a run; nothing by default."""
        return ()

    def begin(self, key: PRNGKeyArray, decision: Decision) -> PyTree:
        """The memory as an episode begins in this state; unchanged by default."""
        return decision.memory

    def advance(self, key: PRNGKeyArray, decision: Decision, action: Int[Array, ""]) -> PyTree:
        """The memory after an action was chosen; unchanged by default."""
        return decision.memory

    def select(self, key: PRNGKeyArray, decision: Decision) -> Int[Array, ""]:
        """The action in one state."""
        score_key, tie_key = jax.random.split(key)
        scores = self.scores(score_key, decision)
        if jnp.shape(scores) != (count := decision.num_actions,):
            raise InputError(
                f"{type(self).__name__}.scores gives an array of shape {jnp.shape(scores)} in a state of {count} "
                f"actions: give one number for each action, of shape ({count},)."
            )
        return highest(tie_key, scores, decision.action_mask)

    def begun(self, key: PRNGKeyArray, decision: Decision) -> Decision:
        """The decision as the first of an episode: with the memory that it begins with."""
        return decision.with_memory(self.begin(jax.random.fold_in(key, BEGIN), decision))

    def first_action(self, key: PRNGKeyArray, decision: Decision) -> Int[Array, ""]:
        """The action at a run's first step; also that of a backup, where the distributions are all that is known."""
        return self.select(key, self.begun(key, decision.with_memory(self.init(decision))))


@dataclasses.dataclass(frozen=True)
class Greedy(ExplorationPolicy):
    """The highest mean: no exploration, for evaluation, where the first of several is taken, as by `act`.

    Examples:
        >>> from uppertail.distributions.point_mass import PointMassReturn
        >>> z = PointMassReturn(mean=jax.numpy.array([[1.0, 0.0]]))  # one member, two actions
        >>> int(ut.Greedy().select(jax.random.key(0), ut.Decision(ut.PointMass(), z)))
        0
    """

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return jnp.mean(decision.mean, axis=0)

    @property
    def evaluated(self) -> ExplorationPolicy:
        return FirstGreedy()


@dataclasses.dataclass(frozen=True)
class FirstGreedy(ExplorationPolicy):
    """The highest mean, of several the first."""

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return jnp.mean(decision.mean, axis=0)

    def select(self, key: PRNGKeyArray, decision: Decision) -> Int[Array, ""]:
        return jnp.argmax(masked(self.scores(key, decision), decision.action_mask)).astype(jnp.int32)


@dataclasses.dataclass(frozen=True)
class EpsilonGreedy(ExplorationPolicy):
    """The highest mean, or with probability epsilon an allowed action at random (which may be the greedy one).

    Args:
        epsilon: probability of a random action, in [0, 1]; 0.05 throughout in the paper.

    Examples:
        >>> from uppertail.distributions.point_mass import PointMassReturn
        >>> z = PointMassReturn(mean=jax.numpy.array([[1.0, 0.0]]))  # one member, two actions
        >>> int(ut.EpsilonGreedy(epsilon=0.0).select(jax.random.key(0), ut.Decision(ut.PointMass(), z)))
        0
    """

    epsilon: float = traced(0.05)

    def __post_init__(self) -> None:
        settle(self)
        if not 0 <= self.epsilon <= 1:
            raise InputError(f"epsilon is {self.epsilon}, but a probability lies in [0, 1]; the paper uses 0.05.")

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        explore_key, noise_key = jax.random.split(key)
        noise = jax.random.uniform(noise_key, (decision.num_actions,))
        explores = jax.random.bernoulli(explore_key, self.epsilon)
        return jnp.where(explores, noise, jnp.mean(decision.mean, axis=0))


def highest(key: PRNGKeyArray, scores: Float[Array, " actions"], mask: ActionMask = None) -> Int[Array, ""]:
    """The allowed action with the highest score; ties are broken at random.

    It never tests `scores == max(scores)`: a compiler may compute the scores twice and round them differently, so that
    none is equal.
    """
    actions = jnp.arange(scores.shape[0], dtype=jnp.int32)
    tie_breaks = jax.random.uniform(key, scores.shape)
    if mask is not None:  # even if all that are allowed score NaN or - infinity, none of the others wins
        scores, tie_breaks = masked(scores, mask & ~jnp.isnan(scores)), jnp.where(mask, tie_breaks, -2.0)
    candidates = scores, tie_breaks, actions
    return jax.lax.reduce(candidates, (-jnp.inf, -1.0, 0), _better, (0,))[2]


def _better(one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
    """Of two candidates (score, tie break, action) the one with the higher score, or the higher tie break."""
    (score, tie_break, action), (other_score, other_tie_break, other_action) = one, other
    goes_first = (tie_break > other_tie_break) | ((tie_break == other_tie_break) & (action < other_action))
    wins = (score > other_score) | ((score == other_score) & goes_first)
    return tuple(jnp.where(wins, ours, theirs) for ours, theirs in zip(one, other, strict=True))
