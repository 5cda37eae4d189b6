"""Environments from Gymnasium. The only folder that imports it."""

from uppertail.environments.gymnasium.bsuite import Bsuite
from uppertail.environments.gymnasium.builder import GymnasiumBuilder
from uppertail.environments.gymnasium.from_gymnasium import FromGymnasium, builder_of, fingerprint
from uppertail.environments.gymnasium.gym import FrozenLake, Gym
from uppertail.environments.gymnasium.vector import HostEnvironments, HostStep, step_host
