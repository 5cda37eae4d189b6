"""The exact twin: the same method with tables instead of networks, the limit of what a network can learn."""

from uppertail.twin.result import TwinResult
from uppertail.twin.run import twin

__all__ = ["TwinResult", "twin"]
