"""Replay buffers: which transitions are kept, and which of them are learned from."""

from uppertail.replay.base import Replay, Sample
from uppertail.replay.prioritized import Prioritized
from uppertail.replay.uniform import Uniform

__all__ = ["Prioritized", "Replay", "Sample", "Uniform"]
