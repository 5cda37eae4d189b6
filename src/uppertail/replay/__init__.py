"""Replay buffers: which transitions are kept, and which of them are learned from."""

from uppertail.replay.base import Replay, Sample, Uniform
from uppertail.replay.best_episodes import BestEpisodes
from uppertail.replay.prioritized import Prioritized
