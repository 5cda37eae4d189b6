"""Bootstrapped DQN with prior functions (Osband et al. 2016, 2018), on a network of the same layers as the defaults."""

import dataclasses
from typing import Any, ClassVar, Self

from jaxtyping import PRNGKeyArray

import uppertail as ut
from uppertail.encodings import Encoding
from uppertail.evidence import KernelCounts, NoEvidence
from uppertail.networks.ensemble import EnsembleNetwork
from uppertail.networks.perceptrons import PerActionNetwork
from uppertail.types import Rescaling


@dataclasses.dataclass(frozen=True)
class NoCounts(NoEvidence):
    """No evidence, with all else as beside kernel counts: updates, encoding, replay alone, a range that grows."""

    by_row: ClassVar[bool] = True
    greedy_mean: ClassVar[bool] = True

    def usual(self, encoding: Encoding) -> dict[str, Any]:
        return KernelCounts().usual(encoding)

    def encoding(self, encoding: Encoding) -> Encoding:
        return KernelCounts().encoding(encoding)

    def family(self, family: Any) -> Any:
        return KernelCounts().family(family)


class BootstrappedNetwork(EnsembleNetwork):
    """Members whose learned outputs keep their values as the range grows, while priors stay as wide as the range."""

    def rescaled(self, rescaling: Rescaling) -> Self:
        (*weights, weight), (*biases, bias) = self.learned
        factor, shift = rescaling.factor[None, None], rescaling.shift[None, None]  # of actions and members
        learned = (*weights, weight * factor[None]), (*biases, bias * factor + shift)
        return dataclasses.replace(self, learned=learned)


@dataclasses.dataclass(frozen=True)
class Bootstrapped(ut.Ensemble):
    """Bootstrapped DQN: heads on one network (Osband et al. 2016), each with a prior function of its own (2018).

    The network has the layers of a critic of the defaults; the priors are heads on a random one that never learns.
    """

    can_rescale: ClassVar[bool] = True
    bias: bool | None = True
    activation: Any = "relu"
    normalization: Any = "layer"
    torso_widths: tuple[int, ...] | None = (128, 128)

    def per_action(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, outputs: int) -> PerActionNetwork:
        encoding = self.torso_on(encoding)
        sizes = encoding.num_features, outputs  # no layer between the torso and the heads
        return PerActionNetwork.init(key, encoding, sizes, num_actions, bias=True, units=self.units)

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> BootstrappedNetwork:
        network = super().init(key, encoding, num_actions, num_outputs)
        return BootstrappedNetwork(**{each.name: getattr(network, each.name) for each in dataclasses.fields(network)})
