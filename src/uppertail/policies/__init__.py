"""Exploration policies: one rule, one file."""

from uppertail.policies.base import ExplorationPolicy, Memoryless, highest
from uppertail.policies.episode_ucb import EpisodeUCB
from uppertail.policies.epsilon_greedy import EpsilonGreedy, Greedy
from uppertail.policies.thompson import Thompson
from uppertail.policies.ucb import UCB

__all__ = ["UCB", "EpisodeUCB", "EpsilonGreedy", "ExplorationPolicy", "Greedy", "Memoryless", "Thompson", "highest"]
