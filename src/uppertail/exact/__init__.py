"""The exact distribution of the return of a fixed policy in a finite MDP, computed from its table."""

from uppertail.exact.discrete import ExactReturn
from uppertail.exact.markov import optimal_policy, uniform_policy
from uppertail.exact.returns import exact_returns
