"""Environments from Gymnasium. The only folder that imports it."""

from uppertail.environments.gymnasium.frozen_lake import FrozenLake
from uppertail.environments.gymnasium.given import Given, builder_of
from uppertail.environments.gymnasium.gym import Gym
from uppertail.environments.gymnasium.tables import from_table

__all__ = ["FrozenLake", "Given", "Gym", "builder_of", "from_table"]
