"""Targets: which network gives the bootstrap."""

from uppertail.targets.base import Target
from uppertail.targets.online import Online
from uppertail.targets.periodic import Periodic
from uppertail.targets.running_mean import RunningMean

__all__ = ["Online", "Periodic", "RunningMean", "Target"]
