"""The parts that a run is made of, and their built-in kinds: a new one is one file and one name here.

Modules load lazily, so that `--help` and `import uppertail` are fast.
"""

import importlib
from typing import Any, NamedTuple

from uppertail.errors import join_names


class Part(NamedTuple):
    """One part of a run.

    Args:
        contract: import path of the class that all of its kinds implement.
        meaning: what it is, for help.
        default: the kind that is used by default.
        kinds: the module of each built-in kind.
        optional: whether a run may be without it; then it is left out unless it, or one of its settings, is named.
    """

    contract: str
    meaning: str
    default: str
    kinds: dict[str, str]
    optional: bool = False

    @property
    def choices(self) -> str:
        """The built-in kinds, for a sentence."""
        return join_names([*self.kinds])

    @property
    def classes(self) -> dict[str, Any]:
        """The class of each built-in kind, by its name."""
        return {name: getattr(importlib.import_module(module), name) for name, module in self.kinds.items()}

    def load(self) -> Any:
        """The contract's class."""
        module, _, name = self.contract.rpartition(".")
        return getattr(importlib.import_module(module), name)

    def path_of(self, name: str) -> str:
        """Import path of a kind; the name itself if it is not that of a built-in one."""
        return f"{self.kinds[name]}.{name}" if name in self.kinds else name


def _in(module: str, names: str) -> dict[str, str]:
    """The module of each of these kinds."""
    return dict.fromkeys(names.split(), module)


PARTS = {
    "env": Part(
        "uppertail.environments.EnvironmentBuilder",
        "the environment",
        "Chain",
        _in(
            "uppertail.environments",
            "Chain TreasureChain DeepSea RichChain RichSea RichLock Toy RiskyArm CartpoleSwingup FrozenLake Gym Gymnax "
            "XMiniGrid Bsuite",
        ),
    ),
    "distribution": Part(
        "uppertail.distributions.ReturnDistribution",
        "the family of return distributions that is learned",
        "Gaussian",
        _in("uppertail.distributions", "Gaussian Categorical GaussianMixture PointMass Quantile"),
    ),
    "policy": Part(
        "uppertail.policies.ExplorationPolicy",
        "how actions are chosen",
        "UCB",
        _in("uppertail.policies", "UCB PosteriorSampling Thompson MemberThompson DoubleUCB EpisodicUCB EpsilonGreedy"),
    ),
    "learner": Part(
        "uppertail.learners.LearnerBuilder",
        "how return distributions are learned (null: LeastSquares where it can, else GradientDescent)",
        "LeastSquares",
        _in("uppertail.learners", "LeastSquares GradientDescent"),
        optional=True,
    ),
    "network": Part(
        "uppertail.networks.NetworkBuilder",
        "the network of GradientDescent",
        "PerAction",
        _in("uppertail.networks", "PerAction Ensemble") | _in("uppertail.contrib", "Dropout Variational"),
        optional=True,
    ),
    "replay": Part(
        "uppertail.replay.Replay",
        "the replay buffer of GradientDescent",
        "Uniform",
        _in("uppertail.replay", "Uniform Prioritized"),
        optional=True,
    ),
    "target": Part(
        "uppertail.targets.Target",
        "the network that GradientDescent bootstraps from",
        "Online",
        _in("uppertail.targets", "Online RunningMean Periodic"),
        optional=True,
    ),
}
"""Each part by the name of its option."""
