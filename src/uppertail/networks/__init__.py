"""Networks: they turn an observation into the parameters of return distributions."""

from uppertail.networks.base import (
    EncodedNetwork,
    Network,
    NetworkBuilder,
    mean_of_parts,
    not_by_parts,
    parts_of_actions,
)
from uppertail.networks.ensemble import Ensemble, EnsembleNetwork
from uppertail.networks.perceptrons import PerAction, PerActionNetwork
from uppertail.networks.twin import Twin, TwinNetwork
