"""Least squares in closed form, toward the wide start: the learner for tables."""

import dataclasses
from typing import Any

from uppertail.agent import Agent
from uppertail.encodings import Encoding, RandomFeatures, Vector
from uppertail.errors import InputError
from uppertail.learners.base import Gradients, Learner, LearnerBuilder
from uppertail.learners.table import TableLearner
from uppertail.schema import settle

MOST_DISCOUNT = 0.9999
"""The discount in place of 1, at which to walk in circles would cost nothing."""


@dataclasses.dataclass(frozen=True)
class LeastSquares(LearnerBuilder):
    """Averages the coordinates of the return distribution over all data of a state and action, beside the wide start.

    z = (lambda z0 + sum of y) / (lambda + n), with the backed-up targets y of n visits, computed anew in each sweep.

    Args:
        spread_prior_count: lambda of the spread, above 0: how many transitions the wide start counts as at least; the
            noise of a pair's own targets raises it.
        mean_prior_count: lambda of the mean, above 0.
        sweeps: the most sweeps over all data after each rollout.
        tolerance: sweeps end when no coordinate changes by more than this share of the start.
        outcomes_per_pair: room for distinct outcomes of a state and action, on average; a small table has room for all
            that there can be, or for 16,384.
        stochastic: whether equal states and actions may lead to different outcomes, so that a few equal ones are no
            proof, the mean is backed up with the greedy next action, and the start is as wide as the returns; null:
            whether they did in steps of a random policy.

    Examples:
        >>> ut.LeastSquares(spread_prior_count=0.01).spread_prior_count
        0.01
    """

    spread_prior_count: float = 1e-16
    mean_prior_count: float = 1e-6
    sweeps: int = 200
    tolerance: float = 1e-4
    outcomes_per_pair: int = 4
    stochastic: bool | None = None

    def __post_init__(self) -> None:
        settle(self)
        for name in ("spread_prior_count", "mean_prior_count", "tolerance"):
            if getattr(self, name) <= 0:
                raise InputError(f"{name} is {getattr(self, name)}: use a finite number above 0, for example 0.01.")
        for name in ("sweeps", "outcomes_per_pair"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: use a whole number, 1 or more.")

    def rollout_steps(self, encoding: Encoding) -> int:
        return 4

    def family(self, family: Any) -> Any:
        return family.following_returns()

    def build(self, agent: Agent, gradients: Gradients | None) -> Learner:
        del gradients
        if not agent.family.is_linear:
            name = type(agent.family).__name__
            raise InputError(
                f"{name} has no parameters whose weighted means are a {name} again, which least squares needs: use "
                "Gaussian, Categorical, PointMass or Quantile, or --learner GradientDescent."
            )
        require_table(agent.encoding)
        ends = isinstance(agent.discount, float) and agent.discount < 1
        agent = agent if ends else dataclasses.replace(agent, discount=MOST_DISCOUNT)
        by_chance = bool(self.stochastic)
        if by_chance:  # sweeps end (docs/decisions/0037), and no hope is beyond the returns (docs/decisions/0039)
            agent = dataclasses.replace(agent, greedy_mean=True, family=agent.family.as_wide_as_returns())
        return TableLearner(agent, **{**vars(self), "stochastic": by_chance})


def require_table(encoding: Encoding) -> None:
    """Refuses observations of which each is not one of many states."""
    if isinstance(encoding, Vector | RandomFeatures):
        raise InputError(
            "Least squares learns tables, but numbers stay numbers here: leave --learner and its settings out (a "
            "network learns, beside counts of what was seen nearby), or use --learner GradientDescent and settings of "
            "its own, or make states of them with --env.features hashed or --env.radius 0.1; a run by least squares on "
            "numbers needs the version of uppertail that made it."
        )
    if not encoding.is_one_hot:
        raise InputError(
            f"Least squares learns tables, but observations enter as {type(encoding).__name__}: leave --learner out, "
            "or make states of them with --env.encoding one_hot, or hashed for an environment of Gymnasium."
        )
