"""The parts that a run is made of, beside its environment and settings."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Self

from uppertail.agent import Agent
from uppertail.distributions import Gaussian, ReturnDistribution
from uppertail.encodings import Encoding, Scalar
from uppertail.errors import InputError
from uppertail.learners import GradientDescent, Learner, LearnerBuilder, LeastSquares
from uppertail.networks import NetworkBuilder
from uppertail.parts import PARTS
from uppertail.policies import UCB, ExplorationPolicy
from uppertail.replay import Replay
from uppertail.targets import Target
from uppertail.training.gradients import DEFAULTS, gradients_of, with_short_forms
from uppertail.training.settings import Settings

OF_EVERY_RUN = ("seeds", "seed", "episodes", "steps", "until", "num_envs", "discount", "rollout_steps")
"""The settings of a run that mean something to every learner; the others belong to gradient descent."""


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
        """The method of these parts; None stands for the default, and one of another kind is refused."""
        given = {name: part for name, part in parts.items() if part is not None}
        for name, part in given.items():
            if not isinstance(part, contract := PARTS[name].load()):
                raise InputError(f"{name} is {part!r}: give an object of class {contract.__name__}, or leave it out.")
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

    def learns(self, encoding: Encoding, settings: Settings) -> Learner:
        """The learner of a run, after `resolved`, with a distribution that is fitted to the environment's returns."""
        network, replay, target = self.network, self.replay, self.target
        members = network.members if network else self.chosen_learner.members
        agent = Agent(self.distribution, self.policy, encoding, settings.discount, members, settings.loss_samples)
        gradients = gradients_of(network, replay, target, settings) if network and replay and target else None
        return self.chosen_learner.build(agent, gradients)


def resolved(method: Method, settings: Settings, encoding: Encoding) -> tuple[Method, Settings]:
    """The method and settings of a run, with its learner chosen and what belongs to it filled in.

    Least squares learns wherever it can: from states and vectors, with a family whose parameters can be averaged. A
    part or setting of gradient descent that is given asks for gradient descent.
    """
    usual = dataclasses.asdict(Settings())
    own = [name for name in usual if name not in OF_EVERY_RUN and getattr(settings, name) != usual[name]]
    asked = [*(name for name in DEFAULTS if getattr(method, name) is not None), *own]
    learner = method.learner
    if learner is None:
        can = method.distribution.is_linear and encoding.has_features and not method.policy.needs_members
        learner = LeastSquares() if can and not asked else GradientDescent()
    envs = settings.num_envs
    rollout_steps = settings.rollout_steps or math.ceil(learner.rollout_steps(encoding) / envs) * envs
    settings = dataclasses.replace(settings, rollout_steps=rollout_steps)
    method = dataclasses.replace(method, learner=learner)
    if learner.uses_gradients:
        filled = {name: getattr(method, name) or default() for name, default in DEFAULTS.items()}
        filled["network"], settings = with_short_forms(filled["network"], settings)
        return dataclasses.replace(method, **filled), settings
    if asked:
        raise InputError(
            f"{asked[0]} is a part or setting of gradient descent, which {type(learner).__name__} does without: leave "
            "it out, or use --learner GradientDescent."
        )
    return method, settings


def sanity_warnings(method: Method, encoding: Encoding) -> Iterator[str]:
    """A sentence for each thing that keeps a method from learning or exploring, given its network's encoding."""
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
