"""Exploration policies: one rule, one file."""

from uppertail.policies.base import BEGIN, ExplorationPolicy, Memoryless, highest
from uppertail.policies.double_ucb import DoubleUCB
from uppertail.policies.episode_ucb import EpisodeUCB
from uppertail.policies.epsilon_greedy import EpsilonGreedy, Greedy
from uppertail.policies.member_thompson import MemberThompson
from uppertail.policies.member_ucb import MemberUCB
from uppertail.policies.thompson import Thompson
from uppertail.policies.ucb import UCB

__all__ = [
    "BEGIN",
    "UCB",
    "DoubleUCB",
    "EpisodeUCB",
    "EpsilonGreedy",
    "ExplorationPolicy",
    "Greedy",
    "MemberThompson",
    "MemberUCB",
    "Memoryless",
    "Thompson",
    "highest",
]
