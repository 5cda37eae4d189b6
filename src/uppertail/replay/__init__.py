"""Replay buffers: which transitions are kept, and which of them are learned from."""

from uppertail.replay.base import Replay, Sample, Uniform
from uppertail.replay.prioritized import Prioritized

__all__ = ["Prioritized", "Replay", "Sample", "Uniform"]
