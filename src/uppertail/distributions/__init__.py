"""Return distributions: one family, one file."""

from uppertail.distributions.base import Rescaling, ReturnDistribution, Spread, spread
from uppertail.distributions.categorical import Categorical
from uppertail.distributions.gaussian import Gaussian
from uppertail.distributions.gaussian_mixture import GaussianMixture
from uppertail.distributions.point_mass import PointMass
from uppertail.distributions.quantile import Quantile
