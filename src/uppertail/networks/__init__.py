"""Networks: what an observation goes through to become the parameters of return distributions."""

from uppertail.networks.base import Network, NetworkBuilder, RowLoss
from uppertail.networks.ensemble import Ensemble, EnsembleNetwork
from uppertail.networks.per_action import PerAction, PerActionNetwork

__all__ = ["Ensemble", "EnsembleNetwork", "Network", "NetworkBuilder", "PerAction", "PerActionNetwork", "RowLoss"]
