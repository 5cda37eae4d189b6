"""Networks: they turn an observation into the parameters of return distributions."""

from uppertail.networks.base import Network, NetworkBuilder, RowLoss
from uppertail.networks.bayesian_last import BayesianLast, BayesianLastNetwork
from uppertail.networks.dropout import Dropout, DropoutNetwork
from uppertail.networks.encoded import EncodedNetwork
from uppertail.networks.ensemble import Ensemble, EnsembleNetwork
from uppertail.networks.per_action import PerAction, PerActionNetwork
from uppertail.networks.variational import Variational, VariationalNetwork

__all__ = [
    "BayesianLast",
    "BayesianLastNetwork",
    "Dropout",
    "DropoutNetwork",
    "EncodedNetwork",
    "Ensemble",
    "EnsembleNetwork",
    "Network",
    "NetworkBuilder",
    "PerAction",
    "PerActionNetwork",
    "RowLoss",
    "Variational",
    "VariationalNetwork",
]
