"""Environments: tables of finite MDPs, and the builders that make them."""

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
from uppertail.environments.cartpole_swingup import CartpoleSwingup
from uppertail.environments.chain import Chain, TreasureChain
from uppertail.environments.deep_sea import DeepSea
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium import (
    Bsuite,
    FromGymnasium,
    FrozenLake,
    Gym,
    GymnasiumBuilder,
    HostEnvironments,
    HostStep,
    builder_of,
    step_host,
)
from uppertail.environments.gymnax import Gymnax, XMiniGrid
from uppertail.environments.measured import measure_returns
from uppertail.environments.packages import EnvironmentFailedError, begin_all
from uppertail.environments.rich import RichChain, RichMDP, RichSea
from uppertail.environments.rich_lock import RichLock
from uppertail.environments.spaces import Interface, Reading
from uppertail.environments.toy import RiskyArm, Toy
