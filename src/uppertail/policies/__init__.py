"""Exploration policies."""

from uppertail.policies.base import Decision, EpsilonGreedy, ExplorationPolicy, Greedy
from uppertail.policies.episodic import Softmax
from uppertail.policies.sampling import MemberThompson, PosteriorSampling, Thompson
from uppertail.policies.ucb import UCB, DoubleUCB
