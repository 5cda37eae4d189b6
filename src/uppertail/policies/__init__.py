"""Exploration policies: one rule, one file."""

from uppertail.policies.base import ExplorationPolicy
from uppertail.policies.epsilon_greedy import EpsilonGreedy, Greedy
from uppertail.policies.thompson import Thompson
from uppertail.policies.ucb import UCB

__all__ = ["UCB", "EpsilonGreedy", "ExplorationPolicy", "Greedy", "Thompson"]
