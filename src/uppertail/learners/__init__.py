"""How a run's data become return distributions: least squares in closed form, or gradient steps of a network."""

from uppertail.learners.base import Gradients, Learner, LearnerBuilder, LearnerState, Metrics
from uppertail.learners.gradient_descent import GradientDescent
from uppertail.learners.imitation import Imitation
from uppertail.learners.least_squares import MOST_DISCOUNT, LeastSquares
