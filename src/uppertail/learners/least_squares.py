"""Least squares in closed form, toward the wide start: the learner for tables and vectors."""

import dataclasses
import math

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.learners.base import Learner, LearnerBuilder
from uppertail.learners.dense import BLOCK, FeatureLearner
from uppertail.learners.gradients import Gradients
from uppertail.learners.regression import Regression
from uppertail.learners.table import TableLearner
from uppertail.schema import settle

TABLE_SWEEPS, FEATURE_SWEEPS = 1_000, 15
"""The most sweeps after a rollout, where the user leaves them open."""

TABLE_PRIOR, FEATURE_PRIOR = 1e-6, 3e-3
"""How many transitions the wide start counts as, where the user leaves it open and there is no noise."""

TABLE_STEPS, FEATURE_STEPS = 4, 32
"""Environment steps between two solutions, where the user leaves them open."""


@dataclasses.dataclass(frozen=True)
class LeastSquares(LearnerBuilder):
    """Regresses the coordinates of the return distribution on features of all data, toward the wide start.

    theta = (sum phi phi' + lambda I)^-1 sum phi (y - y0), with y the backed-up targets, computed anew in each sweep.

    Args:
        spread_prior_count: lambda of the spread, above 0: how many transitions the wide start counts as. In a table it
            is the least, and the noise of a pair's own targets raises it. null: 1e-6 for tables, 3e-3 for vectors.
        mean_prior_count: lambda of the mean, above 0.
        greedy_mean: whether the mean is backed up with the greedy next action; else with the policy's.
        spread_power: what a spread beside a mean is raised to before it is averaged: 2 averages variances, 1 standard
            deviations; null: 2 for tables, 1 for vectors.
        sweeps: the most sweeps over all data after each rollout; null: 1,000 for tables, 15 for vectors.
        tolerance: sweeps end when no coordinate changes by more than this share of the start.
        outcomes_per_pair: for tables: room for distinct outcomes of a state and action, on average.
        transitions: for vectors: how many are kept.

    Examples:
        >>> import uppertail as ut
        >>> ut.LeastSquares(spread_prior_count=0.01).spread_prior_count
        0.01
    """

    spread_prior_count: float | None = None
    mean_prior_count: float = 1e-3
    greedy_mean: bool = True
    spread_power: float | None = None
    sweeps: int | None = None
    tolerance: float = 1e-4
    outcomes_per_pair: int = 4
    transitions: int = 16_384

    def __post_init__(self) -> None:
        settle(self)
        for name in ("spread_prior_count", "mean_prior_count", "spread_power"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name} is {value}: use a finite number above 0, for example 0.01.")
        for name, least in (("sweeps", 1), ("outcomes_per_pair", 1), ("transitions", BLOCK)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name} is {value}: use a whole number, {least} or more.")

    def rollout_steps(self, encoding: Encoding, num_envs: int) -> int:
        """A table is cheap to solve, so it is solved after every few steps."""
        steps = TABLE_STEPS if encoding.is_one_hot else FEATURE_STEPS
        return -(-steps // num_envs) * num_envs

    def build(self, agent: Agent, gradients: Gradients | None) -> Learner:
        del gradients
        if not agent.family.is_linear:
            name = type(agent.family).__name__
            raise InputError(
                f"{name} has no parameters whose weighted means are a {name} again, which least squares needs: use "
                "Gaussian, Categorical or PointMass, or --learner GradientDescent."
            )
        if not agent.encoding.has_features:
            raise InputError(
                f"The observations enter as {type(agent.encoding).__name__}, whose features are learned, but least "
                "squares needs fixed ones: use --learner GradientDescent, or wrap the environment so that it shows "
                "numbers."
            )
        regression = Regression(
            agent,
            self.spread_prior_count or (TABLE_PRIOR if agent.encoding.is_one_hot else FEATURE_PRIOR),
            self.mean_prior_count,
            self.greedy_mean,
            self.sweeps or (TABLE_SWEEPS if agent.encoding.is_one_hot else FEATURE_SWEEPS),
            self.spread_power or (2.0 if agent.encoding.is_one_hot else 1.0),
            self.tolerance,
        )
        if agent.encoding.is_one_hot:
            return TableLearner(regression, self.outcomes_per_pair)
        return FeatureLearner(regression, self.transitions)
