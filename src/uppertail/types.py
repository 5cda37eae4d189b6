"""What travels between the floors: one step of an environment, one transition, the range of its returns."""

from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Array, Bool, Float, Int

PyTree: TypeAlias = Any
"""A tree of arrays: tuples, NamedTuples and modules with arrays as leaves; `()` is the tree without any."""

POLICY_CHOICE = -1
"""A `Transition.next_action` that is not known: the policy chooses it when the transition is learned from."""


class TimeStep(NamedTuple):
    """What an environment shows after `reset` or `step`.

    An episode ends where `terminated` or `truncated` is true. They are kept apart, because a terminated episode earns
    nothing more, while one that is merely cut short by a time limit would have gone on.
    """

    observation: Array
    reward: Float[Array, "*batch"]
    terminated: Bool[Array, "*batch"]
    truncated: Bool[Array, "*batch"]


class Transition(NamedTuple):
    """The data of Section 4: s, a, r, s', a', and whether the episode terminated at s'.

    On-policy and replayed data differ in `next_action` alone: the action taken at s', or `POLICY_CHOICE`. `extra` is
    what the network has drawn for this transition when it was stored, such as the bootstrap mask of an ensemble.
    """

    observation: Array
    action: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    terminated: Bool[Array, "*batch"]
    next_observation: Array
    next_action: Int[Array, "*batch"]
    extra: PyTree = ()


class ReturnRange(NamedTuple):
    """Between which discounted returns a run has to tell apart; 0, the return at an episode's end, included.

    `known` is false where they were only estimated, from episodes of a random policy.
    """

    low: float
    high: float
    known: bool = True
