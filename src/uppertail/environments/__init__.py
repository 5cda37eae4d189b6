"""Environments: tables of finite MDPs, and the builders that make them."""

from uppertail.environments.base import Environment, EnvironmentBuilder
from uppertail.environments.chain import Chain
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium import FrozenLake
from uppertail.environments.toy import Toy

__all__ = ["Chain", "Environment", "EnvironmentBuilder", "FiniteMDP", "FrozenLake", "Toy"]
