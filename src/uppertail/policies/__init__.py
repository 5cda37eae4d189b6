"""Exploration policies."""

from uppertail.policies.base import Decision, ExplorationPolicy, Greedy
from uppertail.policies.episodic_ucb import EpisodicUCB
from uppertail.policies.epsilon_greedy import EpsilonGreedy
from uppertail.policies.posterior_sampling import PosteriorSampling
from uppertail.policies.thompson import MemberThompson, Thompson
from uppertail.policies.ucb import UCB, DoubleUCB
