"""Exploration policies: one rule, one file."""

from uppertail.policies.base import Decision, ExplorationPolicy
from uppertail.policies.double_ucb import DoubleUCB
from uppertail.policies.epsilon_greedy import EpsilonGreedy, Greedy
from uppertail.policies.member_thompson import MemberThompson
from uppertail.policies.posterior_sampling import PosteriorSampling
from uppertail.policies.thompson import Thompson
from uppertail.policies.ucb import UCB
