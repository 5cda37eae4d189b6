"""The parts that a run is made of, and their built-in kinds: a new one is one file and one line here.

Nothing is imported until it is named: the command line shows help, and `import uppertail` ends, in a moment.
"""

import importlib
from typing import Any, NamedTuple


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
        *others, last = self.kinds
        return f"{', '.join(others)} or {last}" if others else last

    @property
    def classes(self) -> dict[str, Any]:
        """The class of each built-in kind, by its name."""
        return {name: getattr(importlib.import_module(module), name) for name, module in self.kinds.items()}

    def load(self) -> Any:
        """The contract's class, with every built-in kind imported, so that it can be named."""
        assert self.classes
        module, _, name = self.contract.rpartition(".")
        return getattr(importlib.import_module(module), name)

    @property
    def default_path(self) -> str:
        """Import path of the kind that is used by default."""
        return self.path_of(self.default)

    def path_of(self, name: str) -> str:
        """Import path of a kind; the name itself if it is not that of a built-in one."""
        return f"{self.kinds[name]}.{name}" if name in self.kinds else name


PARTS = {
    "env": Part(
        "uppertail.environments.EnvironmentBuilder",
        "the environment",
        "Chain",
        {
            "Chain": "uppertail.environments",
            "TreasureChain": "uppertail.environments",
            "DeepSea": "uppertail.environments",
            "RichChain": "uppertail.environments",
            "RichSea": "uppertail.environments",
            "Toy": "uppertail.environments",
            "RiskyArm": "uppertail.environments",
            "CartpoleSwingup": "uppertail.environments",
            "FrozenLake": "uppertail.environments",
            "Gym": "uppertail.environments",
            "Gymnax": "uppertail.environments",
            "XMiniGrid": "uppertail.environments",
        },
    ),
    "distribution": Part(
        "uppertail.distributions.ReturnDistribution",
        "the family of return distributions that is learned",
        "Gaussian",
        {
            "Gaussian": "uppertail.distributions",
            "Categorical": "uppertail.distributions",
            "GaussianMixture": "uppertail.distributions",
            "PointMass": "uppertail.distributions",
            "Quantile": "uppertail.distributions",
        },
    ),
    "policy": Part(
        "uppertail.policies.ExplorationPolicy",
        "how actions are chosen",
        "UCB",
        {
            "UCB": "uppertail.policies",
            "Thompson": "uppertail.policies",
            "MemberThompson": "uppertail.policies",
            "DoubleUCB": "uppertail.policies",
            "EpsilonGreedy": "uppertail.policies",
        },
    ),
    "learner": Part(
        "uppertail.learners.LearnerBuilder",
        "how return distributions are learned (null: LeastSquares where it can, else GradientDescent)",
        "LeastSquares",
        {
            "LeastSquares": "uppertail.learners",
            "GradientDescent": "uppertail.learners",
        },
        optional=True,
    ),
    "network": Part(
        "uppertail.networks.NetworkBuilder",
        "the network of GradientDescent",
        "PerAction",
        {
            "PerAction": "uppertail.networks",
            "Ensemble": "uppertail.networks",
            "Dropout": "uppertail.contrib",
            "Variational": "uppertail.contrib",
        },
        optional=True,
    ),
    "replay": Part(
        "uppertail.replay.Replay",
        "the replay buffer of GradientDescent",
        "Uniform",
        {
            "Uniform": "uppertail.replay",
            "Prioritized": "uppertail.replay",
        },
        optional=True,
    ),
    "target": Part(
        "uppertail.targets.Target",
        "the network that GradientDescent bootstraps from",
        "Online",
        {
            "Online": "uppertail.targets",
            "RunningMean": "uppertail.targets",
            "Periodic": "uppertail.targets",
        },
        optional=True,
    ),
}
"""Each part by the name of its option."""
