"""The headline: the randomized Chain of length 100 with three return distributions, beside epsilon-greedy."""

from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass
from uppertail.environments import Chain
from uppertail.policies import UCB, EpsilonGreedy
from uppertail.training.settings import Settings

ENVIRONMENT = Chain(length=100)
SETTINGS = Settings(seeds=5, episodes=1200)
METHODS = {
    "Gaussian, UCB": (Gaussian(), UCB()),
    "Categorical, UCB": (Categorical(), UCB()),
    "GaussianMixture, UCB": (GaussianMixture(), UCB()),
    "PointMass, epsilon-greedy": (PointMass(), EpsilonGreedy()),
}
