"""Types that all parts share: one step of an environment, one transition, the range of returns."""

from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Array, Bool, Float, Int

from uppertail.masks import ActionMask

PyTree: TypeAlias = Any
"""A tree of arrays: tuples, NamedTuples and modules with arrays as leaves; `()` is the tree without any."""

POLICY_CHOICE = -1
"""A `Transition.next_action` that is not known: the policy chooses it when the transition is learned from."""


class TimeStep(NamedTuple):
    """The result of `reset` or `step` of an environment.

    An episode ends where `terminated` or `truncated` is true. They are kept apart, because a terminated episode earns
    nothing more, while one that is merely cut short by a time limit would have gone on.

    `action_mask` says which actions are allowed next: always None, for all, or always a mask, with an allowed action in
    it unless the episode has terminated.

    Examples:
        >>> no = jnp.zeros((), bool)
        >>> first = ut.TimeStep(observation=jnp.array(3), reward=jnp.zeros(()), terminated=no, truncated=no)
        >>> int(first.observation)
        3
    """

    observation: Array
    reward: Float[Array, "*batch"]
    terminated: Bool[Array, "*batch"]
    truncated: Bool[Array, "*batch"]
    action_mask: ActionMask = None


class Transition(NamedTuple):
    """The data of Section 4: s, a, r, s', a', and whether the episode terminated at s'.

    On-policy and replayed data differ in `next_action` alone: the action taken at s', or `POLICY_CHOICE`. `extras` are
    random arrays that the network drew when the transition was stored, such as the bootstrap mask of an ensemble.
    `next_action_mask` says which actions are allowed at s'. `cut_soon` says where an episode was cut short while
    the discount still looked beyond it, if the learner `asks_cut_soon`.
    """

    observation: Array
    action: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    terminated: Bool[Array, "*batch"]
    next_observation: Array
    next_action: Int[Array, "*batch"]
    extras: PyTree = ()
    next_action_mask: ActionMask = None
    cut_soon: Bool[Array, "*batch"] | None = None


class ReturnRange(NamedTuple):
    """The lowest and highest discounted return that a run has to tell apart; 0, the return of no step, is among them.

    `known` is false if they were only estimated, from steps of a random policy.
    """

    low: float
    high: float
    known: bool = True

    @property
    def bounds(self) -> tuple[float, float]:
        """Two standard deviations of the uniform distribution over the range, on both sides of its middle."""
        middle, aside = (self.low + self.high) / 2, (self.high - self.low or 1.0) / 3**0.5
        return middle - aside, middle + aside


class Rescaling(NamedTuple):
    """outputs = factor * outputs before + shift, so that distributions stay the same, or the order of means."""

    factor: Float[Array, " outputs"]
    shift: Float[Array, " outputs"]
