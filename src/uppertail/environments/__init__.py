"""Environments: tables of finite MDPs, and the builders that make them."""

from uppertail.environments.base import Environment, EnvironmentBuilder, VectorBuilder, require_tables_fit
from uppertail.environments.cartpole_swingup import CartpoleSwingup
from uppertail.environments.chain import Chain, TreasureChain
from uppertail.environments.deep_sea import DeepSea
from uppertail.environments.failures import EnvironmentFailedError, begin_all, step_host
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium import FrozenLake, Given, Gym, builder_of
from uppertail.environments.gymnax import Gymnax, XMiniGrid
from uppertail.environments.host import HostBuilder, HostEnvironment, HostStep
from uppertail.environments.interface import Interface
from uppertail.environments.measured import measure_returns, returns_of
from uppertail.environments.rich import RichChain, RichMDP, RichSea
from uppertail.environments.risky_arm import RiskyArm
from uppertail.environments.toy import Toy
from uppertail.environments.watched import Frame, WatchableBuilder, WatchedEnvironment, WatchedStep

__all__ = [
    "CartpoleSwingup",
    "Chain",
    "DeepSea",
    "Environment",
    "EnvironmentBuilder",
    "EnvironmentFailedError",
    "FiniteMDP",
    "Frame",
    "FrozenLake",
    "Given",
    "Gym",
    "Gymnax",
    "HostBuilder",
    "HostEnvironment",
    "HostStep",
    "Interface",
    "RichChain",
    "RichMDP",
    "RichSea",
    "RiskyArm",
    "Toy",
    "TreasureChain",
    "VectorBuilder",
    "WatchableBuilder",
    "WatchedEnvironment",
    "WatchedStep",
    "XMiniGrid",
    "begin_all",
    "builder_of",
    "measure_returns",
    "require_tables_fit",
    "returns_of",
    "step_host",
]
