"""Targets: which network gives the bootstrap."""

from uppertail.targets.base import Online, Target
from uppertail.targets.copies import Periodic, RunningMean

__all__ = ["Online", "Periodic", "RunningMean", "Target"]
