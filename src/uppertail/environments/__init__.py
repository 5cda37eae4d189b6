"""Environments: tables of finite MDPs, and the builders that make them."""

from uppertail.environments.actions import LEVELS, Actions
from uppertail.environments.base import (
    EVALUATION,
    Environment,
    EnvironmentBuilder,
    Frame,
    VectorBuilder,
    WatchedEnvironment,
    require_tables_fit,
    widest_range,
)
from uppertail.environments.chain import Chain
from uppertail.environments.continuing import RiverSwim, SixArms
from uppertail.environments.deep_sea import DeepSea
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium.bsuite import Bsuite
from uppertail.environments.gymnasium.builder import GymnasiumBuilder
from uppertail.environments.gymnasium.from_gymnasium import FromGymnasium, builder_of
from uppertail.environments.gymnasium.gym import FrozenLake, Gym
from uppertail.environments.gymnasium.vector import HostEnvironments, HostStep, step_host
from uppertail.environments.gymnax.gymnax import Gymnax
from uppertail.environments.gymnax.xminigrid import XMiniGrid
from uppertail.environments.interface import Interface
from uppertail.environments.packages import EnvironmentFailedError, PackageBuilder, begin_all
from uppertail.environments.random_policy import (
    WIDER,
    Patience,
    RandomPlay,
    Say,
    Steps,
    discounted_returns,
    measured_range,
    random_steps,
    table_steps,
)
from uppertail.environments.repeated import build_repeated
from uppertail.environments.rich import RichChain, RichLock, RichMDP, RichSea
from uppertail.environments.spaces import Reading
from uppertail.environments.toy import RiskyArm, Toy
