"""Replay buffers: what is kept of the past, and what of it is learned from."""

from uppertail.replay.base import Replay, Sample
from uppertail.replay.distinct import Distinct
from uppertail.replay.prioritized import Prioritized
from uppertail.replay.uniform import Uniform

__all__ = ["Distinct", "Prioritized", "Replay", "Sample", "Uniform"]
