"""Exploration with the return distribution. Public names are imported when they are first used.

Examples in docstrings begin after `import jax`, `import jax.numpy as jnp` and `import uppertail as ut`.
"""

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `as` makes a name public; `_HOME_OF` is read from these lines
    from uppertail import loggers as loggers
    from uppertail.cli.trained import load as load
    from uppertail.contrib import Dropout as Dropout
    from uppertail.contrib import Variational as Variational
    from uppertail.distributions import Categorical as Categorical
    from uppertail.distributions import Gaussian as Gaussian
    from uppertail.distributions import GaussianMixture as GaussianMixture
    from uppertail.distributions import PointMass as PointMass
    from uppertail.distributions import Quantile as Quantile
    from uppertail.distributions import ReturnDistribution as ReturnDistribution
    from uppertail.encodings import Numbers as Numbers
    from uppertail.encodings import ObservationSpace as ObservationSpace
    from uppertail.encodings import Pixels as Pixels
    from uppertail.encodings import States as States
    from uppertail.environments import Bsuite as Bsuite
    from uppertail.environments import Chain as Chain
    from uppertail.environments import DeepSea as DeepSea
    from uppertail.environments import Environment as Environment
    from uppertail.environments import EnvironmentBuilder as EnvironmentBuilder
    from uppertail.environments import FiniteMDP as FiniteMDP
    from uppertail.environments import FromGymnasium as FromGymnasium
    from uppertail.environments import FrozenLake as FrozenLake
    from uppertail.environments import Gym as Gym
    from uppertail.environments import Gymnax as Gymnax
    from uppertail.environments import RichChain as RichChain
    from uppertail.environments import RichLock as RichLock
    from uppertail.environments import RichSea as RichSea
    from uppertail.environments import RiskyArm as RiskyArm
    from uppertail.environments import RiverSwim as RiverSwim
    from uppertail.environments import SixArms as SixArms
    from uppertail.environments import Toy as Toy
    from uppertail.environments import VectorBuilder as VectorBuilder
    from uppertail.environments import XMiniGrid as XMiniGrid
    from uppertail.errors import InputError as InputError
    from uppertail.evidence import Counts as Counts
    from uppertail.evidence import Evidence as Evidence
    from uppertail.evidence import EvidenceBuilder as EvidenceBuilder
    from uppertail.evidence import KernelCounts as KernelCounts
    from uppertail.evidence import NoEvidence as NoEvidence
    from uppertail.evidence import PixelCounts as PixelCounts
    from uppertail.learners import GradientDescent as GradientDescent
    from uppertail.learners import Imitation as Imitation
    from uppertail.learners import LearnerBuilder as LearnerBuilder
    from uppertail.learners import LeastSquares as LeastSquares
    from uppertail.networks import EncodedNetwork as EncodedNetwork
    from uppertail.networks import Ensemble as Ensemble
    from uppertail.networks import Network as Network
    from uppertail.networks import NetworkBuilder as NetworkBuilder
    from uppertail.networks import PerAction as PerAction
    from uppertail.networks import Twin as Twin
    from uppertail.policies import UCB as UCB
    from uppertail.policies import Decision as Decision
    from uppertail.policies import DoubleUCB as DoubleUCB
    from uppertail.policies import EpsilonGreedy as EpsilonGreedy
    from uppertail.policies import ExplorationPolicy as ExplorationPolicy
    from uppertail.policies import Greedy as Greedy
    from uppertail.policies import MemberThompson as MemberThompson
    from uppertail.policies import PosteriorSampling as PosteriorSampling
    from uppertail.policies import Softmax as Softmax
    from uppertail.policies import Thompson as Thompson
    from uppertail.replay import BestEpisodes as BestEpisodes
    from uppertail.replay import Prioritized as Prioritized
    from uppertail.replay import Replay as Replay
    from uppertail.replay import Sample as Sample
    from uppertail.replay import Uniform as Uniform
    from uppertail.targets import Online as Online
    from uppertail.targets import Periodic as Periodic
    from uppertail.targets import RunningMean as RunningMean
    from uppertail.targets import Target as Target
    from uppertail.training.checkpoints import Checkpoints as Checkpoints
    from uppertail.training.ledger import Progress as Progress
    from uppertail.training.ledger import Stop as Stop
    from uppertail.training.player import ActionReturns as ActionReturns
    from uppertail.training.results import TrainingDivergedError as TrainingDivergedError
    from uppertail.training.results import TrainingFailedError as TrainingFailedError
    from uppertail.training.results import TrainingInterrupted as TrainingInterrupted
    from uppertail.training.results import TrainingResult as TrainingResult
    from uppertail.training.settings import Settings as Settings
    from uppertail.training.train import train as train
    from uppertail.types import TimeStep as TimeStep

_LINES = re.findall(r"^    from (\S+) import (\w+) as ", Path(__file__).read_text(encoding="utf-8"), re.MULTILINE)
_HOME_OF = {name: module for module, name in _LINES}
"""The module of each public name."""

__all__ = list(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'uppertail' has no attribute {name!r}")
    if name == "loggers":
        return importlib.import_module("uppertail.loggers")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
