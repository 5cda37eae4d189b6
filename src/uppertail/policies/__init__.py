"""Exploration policies: one rule, one file."""

from uppertail.policies.base import BEGIN, ExplorationPolicy, Memoryless, highest
from uppertail.policies.episode_ucb import EpisodeUCB
from uppertail.policies.epsilon_greedy import EpsilonGreedy, Greedy
from uppertail.policies.thompson import Thompson
from uppertail.policies.ucb import UCB

__all__ = [
    "BEGIN",
    "UCB",
    "EpisodeUCB",
    "EpsilonGreedy",
    "ExplorationPolicy",
    "Greedy",
    "Memoryless",
    "Thompson",
    "highest",
]
