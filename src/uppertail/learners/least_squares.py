"""Least squares in closed form, toward the wide start: the learner for tables and vectors."""

import dataclasses
import math
from typing import Any

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.learners.base import Learner, LearnerBuilder
from uppertail.learners.dense import FeatureLearner
from uppertail.learners.regression import Regression
from uppertail.learners.table import TableLearner
from uppertail.schema import settle

TABLE_STEPS, FEATURE_STEPS = 4, 32
"""Environment steps between two solutions, where the user leaves them open."""


@dataclasses.dataclass(frozen=True)
class LeastSquares(LearnerBuilder):
    """Regresses the coordinates of the return distribution on features of all data, toward the wide start.

    theta = (sum phi phi' + lambda I)^-1 sum phi (y - y0), with y the backed-up targets, computed anew in each sweep.

    Args:
        spread_prior_count: lambda of the spread, above 0: how many transitions the wide start counts as.
        mean_prior_count: the same for the mean.
        greedy_mean: whether the mean is backed up with the greedy next action; else with the policy's.
        spread_power: what a spread beside a mean is raised to before it is averaged: 2 averages variances, 1 standard
            deviations; null: 2 for tables, 1 for vectors.
        sweeps: the most sweeps over all data after each rollout.
        tolerance: sweeps end when no coordinate changes by more than this share of the start.
        outcomes_per_pair: for tables: room for distinct outcomes of a state and action, on average.
        transitions: for vectors: how many are kept.
    """

    spread_prior_count: float = 1e-6
    mean_prior_count: float = 0.01
    greedy_mean: bool = True
    spread_power: float | None = None
    sweeps: int = 100
    tolerance: float = 1e-4
    outcomes_per_pair: int = 4
    transitions: int = 16_384

    def __post_init__(self) -> None:
        settle(self)
        for name in ("spread_prior_count", "mean_prior_count"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}: use a number above 0, for example 0.1.")
        for name in ("sweeps", "outcomes_per_pair"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: use a whole number, 1 or more.")

    def rollout_steps(self, encoding: Encoding, num_envs: int) -> int:
        """A table is cheap to solve, so it is solved after every few steps."""
        steps = TABLE_STEPS if encoding.is_one_hot else FEATURE_STEPS
        return -(-steps // num_envs) * num_envs

    def build(self, agent: Agent, gradients: Any) -> Learner:
        del gradients
        if not agent.family.is_linear:
            name = type(agent.family).__name__
            raise InputError(
                f"{name} has no parameters whose weighted means are a {name} again, which least squares needs: use "
                "Gaussian, Categorical or PointMass, or --learner GradientDescent."
            )
        regression = Regression(
            agent,
            self.spread_prior_count,
            self.mean_prior_count,
            self.greedy_mean,
            self.sweeps,
            self.spread_power or (2.0 if agent.encoding.is_one_hot else 1.0),
            self.tolerance,
        )
        if agent.encoding.is_one_hot:
            return TableLearner(regression, self.outcomes_per_pair)
        return FeatureLearner(regression, self.transitions)
