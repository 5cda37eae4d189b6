"""Exploration with the return distribution. Public names are imported when they are first used."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uppertail import loggers
    from uppertail.cli.trained import load
    from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass, ReturnDistribution
    from uppertail.environments import (
        Chain,
        DeepSea,
        EnvironmentBuilder,
        FiniteMDP,
        FrozenLake,
        Given,
        Gym,
        HostBuilder,
        Toy,
        TreasureChain,
    )
    from uppertail.policies import UCB, EpsilonGreedy, ExplorationPolicy, Greedy, Thompson
    from uppertail.training.checkpoints import Checkpoints
    from uppertail.training.learned import Trained
    from uppertail.training.results import Progress, Stop, TrainingDivergedError, TrainingFailedError, TrainingResult
    from uppertail.training.settings import Settings
    from uppertail.training.train import train

_HOMES = {
    "uppertail.distributions": ("Categorical", "Gaussian", "GaussianMixture", "PointMass", "ReturnDistribution"),
    "uppertail.environments": (
        "Chain",
        "DeepSea",
        "EnvironmentBuilder",
        "FiniteMDP",
        "FrozenLake",
        "Given",
        "Gym",
        "HostBuilder",
        "Toy",
        "TreasureChain",
    ),
    "uppertail.policies": ("EpsilonGreedy", "ExplorationPolicy", "Greedy", "Thompson", "UCB"),
    "uppertail.training.settings": ("Settings",),
    "uppertail.training.checkpoints": ("Checkpoints",),
    "uppertail.training.results": (
        "Progress",
        "Stop",
        "TrainingDivergedError",
        "TrainingFailedError",
        "TrainingResult",
    ),
    "uppertail.training.train": ("train",),
    "uppertail.training.learned": ("Trained",),
    "uppertail.cli.trained": ("load",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "UCB",
    "Categorical",
    "Chain",
    "Checkpoints",
    "DeepSea",
    "EnvironmentBuilder",
    "EpsilonGreedy",
    "ExplorationPolicy",
    "FiniteMDP",
    "FrozenLake",
    "Gaussian",
    "GaussianMixture",
    "Given",
    "Greedy",
    "Gym",
    "HostBuilder",
    "PointMass",
    "Progress",
    "ReturnDistribution",
    "Settings",
    "Stop",
    "Thompson",
    "Toy",
    "Trained",
    "TrainingDivergedError",
    "TrainingFailedError",
    "TrainingResult",
    "TreasureChain",
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
    return sorted(__all__)
