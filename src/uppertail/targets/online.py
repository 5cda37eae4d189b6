"""The network that learns bootstraps, too."""

import dataclasses

from uppertail.networks import Network
from uppertail.targets.base import AnyNetwork, Target
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class Online(Target):
    """The current network, as in the paper: what was learned travels back at once."""

    def init(self, online: Network, z: PyTree) -> tuple[()]:
        del online, z
        return ()

    def network(self, state: tuple[()], online: AnyNetwork) -> AnyNetwork:
        del state
        return online
