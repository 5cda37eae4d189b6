"""Least squares in closed form, toward the wide start: the learner for tables and vectors."""

import dataclasses

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.learners.base import Gradients, Learner, LearnerBuilder
from uppertail.learners.features import FeatureLearner
from uppertail.learners.table import TableLearner
from uppertail.learners.transitions import BLOCK
from uppertail.schema import settle

MOST_DISCOUNT = 0.9999
"""The discount in place of 1, at which to walk in circles would cost nothing."""


@dataclasses.dataclass(frozen=True)
class LeastSquares(LearnerBuilder):
    """Regresses the coordinates of the return distribution on features of all data, toward the wide start.

    theta = (sum phi phi' + lambda I)^-1 sum phi (y - y0), with y the backed-up targets, computed anew in each sweep.

    Args:
        spread_prior_count: lambda of the spread, above 0: how many transitions the wide start counts as. In a table it
            is the least, and the noise of a pair's own targets raises it. null: 1e-16 for tables,
            0.1 for vectors.
        mean_prior_count: lambda of the mean, above 0; null: 1e-6 for tables, 1e-3 for vectors.
        start_width: what the initial spread of the family is multiplied by, above 0, where a spread stands beside a
            mean. null: 1 for tables. 0.22 for vectors, which makes a Gaussian start with the standard deviation of a
            uniform distribution over the range of returns: a space that cannot be searched needs less optimism.
        greedy_mean: whether the mean is backed up with the greedy next action, with mean + c sd still the
            policy's; else mean and spread are backed up with the policy's. null: true for vectors and for tables with
            chance (`stochastic`), false for other tables.
        spread_power: what a spread beside a mean is raised to before it is averaged: 2 averages variances, 1 standard
            deviations; null: 2 for tables, 1 for vectors.
        sweeps: the most sweeps over all data after each rollout; null: 200 for tables, 40 for vectors.
        tolerance: sweeps end when no coordinate changes by more than this share of the start; null: 1e-4 for
            tables, 1e-3 for vectors.
        outcomes_per_pair: for tables: room for distinct outcomes of a state and action, on average; a small table has
            room for all that there can be, or for 16,384.
        transitions: for vectors: room for them, rounded up to a multiple of 512; when it is full, half of them are
            drawn to stand for all.
        stochastic: for tables: whether equal states and actions may lead to different outcomes, so that a few equal
            ones are no proof; null: whether they did in steps of a random policy.

    Examples:
        >>> ut.LeastSquares(spread_prior_count=0.01).spread_prior_count
        0.01
    """

    spread_prior_count: float | None = None
    mean_prior_count: float | None = None
    start_width: float | None = None
    greedy_mean: bool | None = None
    spread_power: float | None = None
    sweeps: int | None = None
    tolerance: float | None = None
    outcomes_per_pair: int = 4
    transitions: int = 16_384
    stochastic: bool | None = None

    def __post_init__(self) -> None:
        settle(self)
        for name in ("spread_prior_count", "mean_prior_count", "start_width", "spread_power", "tolerance"):
            if (value := getattr(self, name)) is not None and value <= 0:
                raise InputError(f"{name} is {value}: use a finite number above 0, for example 0.01.")
        for name, least in (("sweeps", 1), ("outcomes_per_pair", 1), ("transitions", BLOCK)):
            if (value := getattr(self, name)) is not None and value < least:
                raise InputError(f"{name} is {value}: use a whole number, {least} or more.")

    def encoding(self, encoding: Encoding) -> Encoding:
        return encoding.for_least_squares()

    def filled(self, encoding: Encoding) -> "LeastSquares":
        usual = vars(TABLE if encoding.is_one_hot else VECTORS)
        usual = usual | {"greedy_mean": usual["greedy_mean"] or bool(self.stochastic)}
        return dataclasses.replace(self, **{name: usual[name] for name, value in vars(self).items() if value is None})

    def rollout_steps(self, encoding: Encoding) -> int:
        return 4 if encoding.is_one_hot else 8

    def build(self, agent: Agent, gradients: Gradients | None) -> Learner:
        del gradients
        if not agent.family.is_linear:
            name = type(agent.family).__name__
            raise InputError(
                f"{name} has no parameters whose weighted means are a {name} again, which least squares needs: use "
                "Gaussian, Categorical, PointMass or Quantile, or --learner GradientDescent."
            )
        if not agent.encoding.has_features:
            raise InputError(
                f"The observations enter as {type(agent.encoding).__name__}, whose features are learned, but least "
                "squares needs fixed ones: use --learner GradientDescent, leave --env.encoding out, or wrap the "
                "environment so that it shows numbers."
            )
        kind = TableLearner if agent.encoding.is_one_hot else FeatureLearner
        ends = isinstance(agent.discount, float) and agent.discount < 1
        agent = agent if ends else dataclasses.replace(agent, discount=MOST_DISCOUNT)
        return kind(agent, **vars(self.filled(agent.encoding)))


TABLE = LeastSquares(1e-16, 1e-6, 1.0, False, spread_power=2.0, sweeps=200, tolerance=1e-4, stochastic=False)
VECTORS = LeastSquares(0.1, 1e-3, 0.22, True, spread_power=1.0, sweeps=40, tolerance=1e-3, stochastic=False)
