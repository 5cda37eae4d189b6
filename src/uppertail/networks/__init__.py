"""Networks: they turn an observation into the parameters of return distributions."""

from uppertail.networks.base import Network, NetworkBuilder
from uppertail.networks.dropout import Dropout, DropoutNetwork
from uppertail.networks.encoded import EncodedNetwork
from uppertail.networks.ensemble import Ensemble, EnsembleNetwork
from uppertail.networks.linear import LinearReturns
from uppertail.networks.per_action import PerAction, PerActionNetwork
from uppertail.networks.variational import Variational, VariationalNetwork

__all__ = [
    "Dropout",
    "DropoutNetwork",
    "EncodedNetwork",
    "Ensemble",
    "EnsembleNetwork",
    "LinearReturns",
    "Network",
    "NetworkBuilder",
    "PerAction",
    "PerActionNetwork",
    "Variational",
    "VariationalNetwork",
]
