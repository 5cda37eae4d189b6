"""The parts that a run is made of, beside its environment and settings."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Self

from uppertail.distributions import Gaussian, ReturnDistribution
from uppertail.encodings import Encoding, Scalar
from uppertail.errors import InputError
from uppertail.learners import GradientDescent, LearnerBuilder, LeastSquares
from uppertail.networks import NetworkBuilder, PerAction
from uppertail.policies import UCB, ExplorationPolicy
from uppertail.replay import Replay, Uniform
from uppertail.targets import Online, Target
from uppertail.training.settings import Settings
from uppertail.types import ReturnRange

OF_GRADIENTS = {"network": PerAction, "replay": Uniform, "target": Online}
"""The parts of gradient descent, with their defaults."""

GRADIENT_SETTINGS = (
    "learning_rate",
    "learning_rate_end",
    "gradient_clip",
    "adam_betas",
    "adam_epsilon",
    "width",
    "hidden_layers",
    "bias",
    "batch_size",
    "replay_size",
    "updates_per_rollout",
    "on_policy",
    "replay_start",
    "loss_samples",
)
"""The settings of a run that belong to gradient descent."""

SHORT_FORMS = ("width", "hidden_layers", "bias")
"""Settings of the network that `Settings` also has."""

KINDS: dict[str, type] = {
    "distribution": ReturnDistribution,
    "policy": ExplorationPolicy,
    "learner": LearnerBuilder,
    "network": NetworkBuilder,
    "replay": Replay,
    "target": Target,
}
"""The contract of each part."""


@dataclasses.dataclass(frozen=True)
class Method:
    """The parts that learn and explore.

    Args:
        distribution: the family of return distributions.
        policy: the exploration policy.
        learner: how return distributions are learned; None: `resolved` chooses. The parts below are those of
            GradientDescent, and None for all other learners.
        network: builds the network.
        replay: the replay buffer.
        target: which network gives the bootstrap.
    """

    distribution: ReturnDistribution[Any] = dataclasses.field(default_factory=Gaussian)
    policy: ExplorationPolicy = dataclasses.field(default_factory=UCB)
    learner: LearnerBuilder | None = None
    network: NetworkBuilder | None = None
    replay: Replay | None = None
    target: Target | None = None

    @classmethod
    def of(cls, **parts: Any) -> Self:
        """The method of these parts; None stands for the default.

        Raises:
            InputError: one is of another kind.
        """
        given = {name: part for name, part in parts.items() if part is not None}
        for name, part in given.items():
            if not isinstance(part, KINDS[name]):
                kind = KINDS[name].__name__
                raise InputError(f"{name} is {part!r}: give an object of class {kind}, or leave it out.")
        return cls(**given)

    @property
    def parts(self) -> dict[str, Any]:
        """The parts by their names."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def chosen_learner(self) -> LearnerBuilder:
        """The learner, which `resolved` has chosen where it was open."""
        if self.learner is None:
            raise InputError("The learner is open until a run has chosen it: give one, for example LeastSquares.")
        return self.learner

    def fitted(self, returns: ReturnRange) -> Self:
        """The method with its distribution fitted to these returns.

        Raises:
            InputError: the distribution cannot represent them.
        """
        return dataclasses.replace(self, distribution=self.distribution.fit(returns))


def resolved(method: Method, settings: Settings, encoding: Encoding) -> tuple[Method, Settings]:
    """The method and settings of a run, with its learner chosen and what belongs to it filled in.

    Least squares learns wherever it can: from states and vectors, with a family whose parameters can be averaged. A
    part or setting of gradient descent that is given asks for gradient descent.

    Raises:
        InputError: a part or setting is given that means nothing to the learner.
    """
    parts = [name for name in OF_GRADIENTS if getattr(method, name) is not None]
    asked = [*parts, *(name for name in GRADIENT_SETTINGS if getattr(settings, name) != getattr(Settings(), name))]
    learner = method.learner
    if learner is None:
        can = method.distribution.is_linear and encoding.has_features and not method.policy.needs_members
        learner = LeastSquares() if can and not asked else GradientDescent()
    envs = settings.num_envs
    rollout_steps = settings.rollout_steps or math.ceil(learner.rollout_steps(encoding) / envs) * envs
    settings = dataclasses.replace(settings, rollout_steps=rollout_steps)
    method = dataclasses.replace(method, learner=learner)
    if learner.uses_gradients:
        filled = {name: getattr(method, name) or default() for name, default in OF_GRADIENTS.items()}
        return with_short_forms(dataclasses.replace(method, **filled), settings)
    if asked:
        raise InputError(
            f"{asked[0]} is a part or setting of gradient descent, which {type(learner).__name__} does without: leave "
            "it out, or use --learner GradientDescent."
        )
    return method, settings


def with_short_forms(method: Method, settings: Settings) -> tuple[Method, Settings]:
    """The method whose network has the settings' width, depth and biases, and the settings with the network's.

    Raises:
        InputError: the network has no such setting, or another value was given for it.
    """
    network, kind = method.network, type(method.network).__name__
    assert network is not None
    fields = {field.name: field.default for field in dataclasses.fields(network)}  # pyright: ignore[reportArgumentType]
    asked = {name: value for name in SHORT_FORMS if (value := getattr(settings, name)) is not None}
    for name, value in asked.items():
        if name not in fields:
            raise InputError(f"{name} is {value}, but the network {kind} has no such setting: leave it out.")
        if (own := getattr(network, name)) not in (fields[name], value):
            raise InputError(f"{name} is {value}, but network.{name} is {own}: give it once.")
    network = dataclasses.replace(network, **asked)  # pyright: ignore[reportArgumentType]
    settled = {name: getattr(network, name, None) for name in SHORT_FORMS}
    return dataclasses.replace(method, network=network), dataclasses.replace(settings, **settled)


def sanity_warnings(method: Method, encoding: Encoding) -> Iterator[str]:
    """A sentence for each thing that keeps this method from learning or exploring.

    Args:
        method: the parts of a run.
        encoding: how observations enter its network.
    """
    family, policy = type(method.distribution).__name__, type(method.policy).__name__
    if method.policy.explores_by_spread and not method.distribution.has_spread:
        yield (
            f"{policy} explores by the spread of the return, and {family} has none: it always takes the greedy action; "
            "use --policy EpsilonGreedy, or a distribution with a spread."
        )
    if isinstance(encoding, Scalar) and getattr(method.network, "bias", None) is False:
        yield (
            "A network without biases can hardly tell scalar states apart: use --bias true, or --env.encoding one_hot."
        )
