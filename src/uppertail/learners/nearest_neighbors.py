"""Averages over nearest neighbors, toward the wide start: the learner for numbers, where reward is sparse."""

import dataclasses

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.encodings.random_features import RandomFeatures
from uppertail.encodings.standardized import Standardized
from uppertail.encodings.vector import Vector
from uppertail.errors import InputError
from uppertail.learners.base import Gradients, Learner, LearnerBuilder
from uppertail.learners.neighborhoods import BLOCK
from uppertail.learners.neighbors import NeighborLearner
from uppertail.learners.regression import discounted, require_linear, require_numbers
from uppertail.schema import settle


@dataclasses.dataclass(frozen=True)
class NearestNeighbors(LearnerBuilder):
    """Averages the coordinates of the return distribution over the nearest transitions of each action.

    z(s, a) = u z0 + (1 - u) sum_i w_i y_i over the nearest transitions i of a, whose distances from s are d_i, with
    u = 1 - exp(- (d_1 / reach)^2) and w_i in proportion to 1 / d_i^2; y are the backed-up targets and z0 is the wide
    start. An average never lies beyond what it is of, so sweeps converge (Gordon 1995; Ormoneit and Sen 2002), where
    regression may extrapolate. Distances are root mean squares over the numbers, in units of their standard deviations.

    Args:
        neighbors: how many transitions of an action are averaged.
        reach: the distance at which 63% of the wide start are left, at first. It shrinks by a fifth, to no less than an
            eighth, after 100 transitions in a row that were all known.
        resolution: a transition nearer than this to the nearest earlier one of the same action, if both or neither
            terminated, joins it: their rewards are averaged. One that leads more than four times as far away is another
            outcome of that place, which has the mean of up to four. It grows when there is no room for more.
        start_width: what the initial spread of the family is multiplied by, above 0, where a spread stands beside a
            mean; 0.22 makes a Gaussian start with the standard deviation of a uniform distribution over the range of
            returns.
        sweeps: the most sweeps over all transitions after each rollout.
        tolerance: sweeps end when no coordinate changes by more than this share of the start.
        transitions: room for them, rounded up to a multiple of 1,024.

    Examples:
        >>> ut.NearestNeighbors(neighbors=4).neighbors
        4
    """

    neighbors: int = 6
    reach: float = 4.0
    resolution: float = 0.035
    start_width: float = 0.22
    sweeps: int = 40
    tolerance: float = 1e-3
    transitions: int = 24_576

    def __post_init__(self) -> None:
        settle(self)
        positive = ("reach", "resolution", "start_width", "tolerance")
        require_numbers(self, positive, {"neighbors": 1, "sweeps": 1, "transitions": BLOCK})

    def encoding(self, encoding: Encoding) -> Encoding:
        vector = encoding.vector if isinstance(encoding, RandomFeatures) else encoding
        return Standardized(vector) if isinstance(vector, Vector) else vector

    def rollout_steps(self, encoding: Encoding) -> int:
        return 8

    def build(self, agent: Agent, gradients: Gradients | None) -> Learner:
        del gradients
        require_linear(agent.family, "nearest neighbors need")
        if not isinstance(agent.encoding, Standardized):
            raise InputError(
                f"The observations enter as {type(agent.encoding).__name__}, which has no distances: nearest neighbors "
                "need vectors of numbers. Leave out --learner."
            )
        return NeighborLearner(discounted(agent), greedy_mean=True, spread_power=1.0, **vars(self))
