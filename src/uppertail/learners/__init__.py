"""How a run's data become return distributions: least squares in closed form, or gradient steps of a network."""

from uppertail.learners.base import Learner, LearnerBuilder, LearnerState, Metrics
from uppertail.learners.gradient_descent import GradientDescent
from uppertail.learners.gradients import Gradients, OnPolicy, Optimizer
from uppertail.learners.least_squares import LeastSquares

__all__ = [
    "GradientDescent",
    "Gradients",
    "Learner",
    "LearnerBuilder",
    "LearnerState",
    "LeastSquares",
    "Metrics",
    "OnPolicy",
    "Optimizer",
]
