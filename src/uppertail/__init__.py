"""Exploration with the return distribution. Public names are imported when they are first used."""

import importlib
from typing import TYPE_CHECKING, Any

from uppertail.parts import PARTS

if TYPE_CHECKING:
    from uppertail import loggers
    from uppertail.cli.trained import load
    from uppertail.contrib import Dropout, Variational
    from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass, Quantile, ReturnDistribution
    from uppertail.encodings import Numbers, ObservationSpace, Pixels, States
    from uppertail.environments import (
        CartpoleSwingup,
        Chain,
        DeepSea,
        Environment,
        EnvironmentBuilder,
        FiniteMDP,
        FromGymnasium,
        FrozenLake,
        Gym,
        Gymnax,
        HostBuilder,
        RichChain,
        RichLock,
        RichSea,
        RiskyArm,
        Toy,
        TreasureChain,
        VectorBuilder,
        XMiniGrid,
    )
    from uppertail.errors import InputError
    from uppertail.learners import GradientDescent, LearnerBuilder, LeastSquares
    from uppertail.networks import EncodedNetwork, Ensemble, Network, NetworkBuilder, PerAction
    from uppertail.policies import (
        UCB,
        Decision,
        DoubleUCB,
        EpsilonGreedy,
        ExplorationPolicy,
        Greedy,
        MemberThompson,
        Thompson,
    )
    from uppertail.replay import Prioritized, Replay, Sample, Uniform
    from uppertail.targets import Online, Periodic, RunningMean, Target
    from uppertail.training.checkpoints import Checkpoints
    from uppertail.training.player import ActionReturns
    from uppertail.training.progress import Progress, Stop
    from uppertail.training.results import (
        TrainingDivergedError,
        TrainingFailedError,
        TrainingInterrupted,
        TrainingResult,
    )
    from uppertail.training.settings import Settings
    from uppertail.training.train import train
    from uppertail.types import TimeStep

_HOMES = {
    "uppertail.environments": ("Environment", "FiniteMDP", "FromGymnasium", "HostBuilder", "VectorBuilder"),
    "uppertail.encodings": ("Numbers", "ObservationSpace", "Pixels", "States"),
    "uppertail.types": ("TimeStep",),
    "uppertail.errors": ("InputError",),
    "uppertail.networks": ("EncodedNetwork", "Network"),
    "uppertail.policies": ("Decision", "Greedy"),
    "uppertail.replay": ("Sample",),
    "uppertail.training.settings": ("Settings",),
    "uppertail.training.player": ("ActionReturns",),
    "uppertail.training.checkpoints": ("Checkpoints",),
    "uppertail.training.progress": ("Progress", "Stop"),
    "uppertail.training.results": (
        "TrainingDivergedError",
        "TrainingFailedError",
        "TrainingInterrupted",
        "TrainingResult",
    ),
    "uppertail.training.train": ("train",),
    "uppertail.cli.trained": ("load",),
}
"""Where public names are, beside the parts' contracts and built-in kinds."""

_HOME_OF = {
    **{name: home for home, names in _HOMES.items() for name in names},
    **{part.contract.rpartition(".")[2]: part.contract.rpartition(".")[0] for part in PARTS.values()},
    **{name: module for part in PARTS.values() for name, module in part.kinds.items()},
}

__all__ = [
    "UCB",
    "ActionReturns",
    "CartpoleSwingup",
    "Categorical",
    "Chain",
    "Checkpoints",
    "Decision",
    "DeepSea",
    "DoubleUCB",
    "Dropout",
    "EncodedNetwork",
    "Ensemble",
    "Environment",
    "EnvironmentBuilder",
    "EpsilonGreedy",
    "ExplorationPolicy",
    "FiniteMDP",
    "FromGymnasium",
    "FrozenLake",
    "Gaussian",
    "GaussianMixture",
    "GradientDescent",
    "Greedy",
    "Gym",
    "Gymnax",
    "HostBuilder",
    "InputError",
    "LearnerBuilder",
    "LeastSquares",
    "MemberThompson",
    "Network",
    "NetworkBuilder",
    "Numbers",
    "ObservationSpace",
    "Online",
    "PerAction",
    "Periodic",
    "Pixels",
    "PointMass",
    "Prioritized",
    "Progress",
    "Quantile",
    "Replay",
    "ReturnDistribution",
    "RichChain",
    "RichLock",
    "RichSea",
    "RiskyArm",
    "RunningMean",
    "Sample",
    "Settings",
    "States",
    "Stop",
    "Target",
    "Thompson",
    "TimeStep",
    "Toy",
    "TrainingDivergedError",
    "TrainingFailedError",
    "TrainingInterrupted",
    "TrainingResult",
    "TreasureChain",
    "Uniform",
    "Variational",
    "VectorBuilder",
    "XMiniGrid",
    "load",
    "loggers",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "loggers":  # a package of names of its own
        return importlib.import_module("uppertail.loggers")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'uppertail' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOME_OF})
