"""Environments from Gymnasium. The only folder that imports it."""

from uppertail.environments.gymnasium.frozen_lake import FrozenLake
from uppertail.environments.gymnasium.gym import FromGymnasium, Gym, builder_of
from uppertail.environments.gymnasium.tables import from_table

__all__ = ["FromGymnasium", "FrozenLake", "Gym", "builder_of", "from_table"]
