"""Targets: which network, or which memory, the learner bootstraps from."""

from uppertail.targets.base import Target
from uppertail.targets.graph import Graph
from uppertail.targets.online import Online
from uppertail.targets.periodic import Periodic
from uppertail.targets.running_mean import RunningMean

__all__ = ["Graph", "Online", "Periodic", "RunningMean", "Target"]
