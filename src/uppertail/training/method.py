"""The parts that a run is made of, beside its environment and settings."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any, Self

import jax.numpy as jnp
import optax

from uppertail.agent import Agent
from uppertail.defaults import DISCOUNT, Plan, usual_learner
from uppertail.distributions import Gaussian, ReturnDistribution
from uppertail.encodings import Encoding, RandomFeatures, Scalar
from uppertail.errors import InputError, join_names
from uppertail.evidence import EvidenceBuilder, NoEvidence
from uppertail.learners import MOST_DISCOUNT, GradientDescent, Gradients, Learner, LearnerBuilder
from uppertail.networks import NetworkBuilder, not_by_parts
from uppertail.parts import PARTS, PARTS_OF_GRADIENTS, part_of
from uppertail.policies import UCB, ExplorationPolicy
from uppertail.replay import Replay
from uppertail.schema import TRACED, traced
from uppertail.targets import Target
from uppertail.training.settings import OF_EVERY_RUN, Settings
from uppertail.types import PyTree

OF_GRADIENTS = ("rollout_steps", "updates_per_rollout", "batch_size", "replay_size", "on_policy", "replay_start")
"""The settings of a run that `Gradients` takes by the same names."""


@dataclasses.dataclass(frozen=True)
class Method:
    """The parts that learn and explore, as `train` takes them."""

    distribution: ReturnDistribution[Any] = dataclasses.field(default_factory=Gaussian)
    policy: ExplorationPolicy = dataclasses.field(default_factory=UCB)
    learner: LearnerBuilder | None = None  # None: a rule chooses
    # the parts of gradient descent; None with all other learners
    network: NetworkBuilder | None = None
    replay: Replay | None = None
    target: Target | None = None
    evidence: EvidenceBuilder | None = None
    open_settings: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    """Settings of parts of gradient descent that are open: they change the part that is chosen."""

    @property
    def parts(self) -> dict[str, Any]:
        """Its parts by name."""
        return {name: part for name, part in vars(self).items() if name in PARTS}

    @classmethod
    def of(cls, **parts: Any) -> Self:
        """The method of these parts or names; None stands for the default, and one of another kind is refused."""
        given = {name: part_of(name, part) for name, part in parts.items() if part is not None}
        for name, part in given.items():
            if not isinstance(part, contract := PARTS[name].load()):
                raise InputError(f"{name} is {part!r}: give an object of class {contract.__name__}, or leave it out.")
        return cls(**given)

    @property
    def chosen_learner(self) -> LearnerBuilder:
        """The learner, which a rule has chosen where it was open."""
        if self.learner is None:
            raise InputError("No learner is chosen before a run begins: give one, for example LeastSquares.")
        return self.learner

    def encoding(self, encoding: Encoding) -> Encoding:
        """How observations enter the learner, after `resolved`."""
        return self.evidence.encoding(encoding) if self.evidence else encoding

    def learns(
        self,
        encoding: Encoding,
        settings: Settings,
        bounds: tuple[float, float] | None = None,
        has_masks: bool = False,
        sizes: tuple[int, ...] | None = None,
    ) -> Learner:
        """The learner of a run, after `resolved`, with a distribution that is fitted to the environment's returns.

        `bounds` are those of the means that it bootstraps from; None: it has none. `has_masks`: whether the
        environment says which actions are allowed. `sizes` are those of `Actions`.

        Raises:
            InputError: actions have `sizes`, and the learner learns each by itself.
        """
        if sizes and not self.chosen_learner.uses_gradients:
            learner = type(self.chosen_learner).__name__
            raise not_by_parts(sizes, f"{learner} learns each by itself: use --learner GradientDescent")
        network, replay, target, evidence = self.network, self.replay, self.target, self.evidence
        members = network.members if network else None
        own = settings.discount_per_step, members, settings.loss_samples
        agent = Agent(self.distribution, self.policy, encoding, *own, has_masks=has_masks)
        if evidence and evidence.greedy_mean:
            agent = dataclasses.replace(agent, greedy_mean=True, bounds=bounds)
        gradients = None
        if network and replay and target and evidence:
            own = {name: getattr(settings, name) for name in OF_GRADIENTS}
            optimizer = optimizer_of(settings)
            gradients = Gradients(network, replay, target, optimizer, evidence=evidence, sizes=sizes, **own)
        return self.chosen_learner.build(agent, gradients)


def asked_of_gradients(method: Method, settings: Settings) -> list[str]:
    """The parts and settings of gradient descent that are given."""
    usual = dataclasses.asdict(Settings())
    own = [name for name in usual if name not in OF_EVERY_RUN and getattr(settings, name) != usual[name]]
    given = {name for name, part in method.parts.items() if part is not None} | method.open_settings.keys()
    return [*(name for name in PARTS_OF_GRADIENTS if name in given), *own]


def changed(name: str, part: Any, settings: Mapping[str, Any]) -> Any:
    """A part with some settings changed; InputError if its class has no such setting."""
    known = {field.name for field in dataclasses.fields(part)} if settings else {}
    if missing := [setting for setting in settings if setting not in known]:
        owners = [kind for kind, each in PARTS[name].classes.items() if missing[0] in each.__dataclass_fields__]
        raise InputError(
            f"{type(part).__name__}, the {name} that is usual here, has no setting {missing[0]!r}. It belongs to "
            f"{join_names(owners)}: name that class, too, with --{name}."
        )
    return dataclasses.replace(part, **settings) if settings else part


def resolved(
    method: Method, settings: Settings, encoding: Encoding, plan: Plan | None = None
) -> tuple[Method, Settings]:
    """The method and settings of a run, with all filled in that is open: as an earlier plan has it, or by defaults."""
    asked = asked_of_gradients(method, settings)
    learner = method.learner or usual_learner(method.distribution, method.policy, encoding, asked).value
    if plan is not None:
        learner, settings = plan.filled(learner, "learner."), plan.filled(settings, "")
        method = dataclasses.replace(
            method, **{name: getattr(method, name) or plan.part(name, asked) for name in PARTS_OF_GRADIENTS}
        )
    evidence = method.evidence or learner.evidence(method.network, encoding) if learner.uses_gradients else None
    evidence = evidence and changed("evidence", evidence, method.open_settings.get("evidence", {}))
    own, envs = evidence.usual(encoding) if evidence else {}, settings.num_envs
    steps = own.get("rollout_steps", learner.rollout_steps(encoding))
    discount = DISCOUNT if settings.discount is None else settings.discount
    steps = settings.rollout_steps or math.ceil(steps / envs) * envs
    settings = dataclasses.replace(settings, rollout_steps=steps, discount=discount)
    method = dataclasses.replace(method, learner=learner, evidence=evidence)
    if learner.uses_gradients:
        if plan is None and (useless := [name for name in asked if name in learner.unused]):
            raise InputError(f"{useless[0]} means nothing to {type(learner).__name__}: leave it out.")
        ours = {**GradientDescent().usual(encoding), **learner.usual(encoding), **own}
        filled: dict[str, Any] = {name: getattr(method, name) or ours.get(name) for name in PARTS_OF_GRADIENTS}
        filled |= {name: changed(name, filled[name], each) for name, each in method.open_settings.items()}
        if evidence and evidence.by_row:
            ours["updates_per_rollout"] *= max(settings.rollout_steps or 1, 1)  # so many for each action
        if plan is not None and plan.get("learning_rate") is not None:
            ours.pop("learning_rate_decay", None)  # without one its step size was constant
        steps = {name: each for name, each in ours.items() if name not in filled and getattr(settings, name) is None}
        filled["network"] = learner.network(filled["network"], encoding)
        if filled["network"].members and evidence and not isinstance(evidence, NoEvidence):
            raise InputError(
                f"evidence is {type(evidence).__name__}, which stands beside a network without members, but "
                f"{type(filled['network']).__name__} has some: leave evidence out, or use another network."
            )
        family = evidence.family(method.distribution) if evidence else method.distribution
        family = family.for_images() if encoding.image_shape else family
        return dataclasses.replace(method, **filled, distribution=family), dataclasses.replace(settings, **steps)
    if asked:
        raise InputError(
            f"{asked[0]} is a part or setting of gradient descent, which {type(learner).__name__} does not use: leave "
            "it out, or use --learner GradientDescent."
        )
    return dataclasses.replace(method, distribution=learner.family(method.distribution)), settings


def sanity_warnings(method: Method, encoding: Encoding, discount: float = 0.0) -> Iterator[str]:
    """A sentence for each thing that keeps a method from learning or exploring, given its network's encoding."""
    if discount >= 1 and not method.chosen_learner.uses_gradients:
        yield (
            f"The discount is {discount:g}, at which walking in circles costs nothing, so {MOST_DISCOUNT} is used to "
            "learn (--discount 0.999, for example, says what delay costs)."
        )
    family, policy = type(method.distribution).__name__, type(method.policy).__name__
    if method.policy.explores_by_spread and not method.distribution.has_spread:
        yield (
            f"{policy} explores by the spread of the return, and {family} has none: it always takes the greedy action; "
            "use --policy EpsilonGreedy, or a distribution with a spread."
        )
    if method.policy.posterior and getattr(method.distribution, "start", None) == 0:
        yield (
            f"{policy} values what was never seen by the spread of the start, and {family} has none, so it hardly "
            "explores: use an optimistic --distribution.start, for example 2.63, or a distribution with a spread."
        )
    if isinstance(encoding, Scalar) and not getattr(method.network, "bias", True):
        yield (
            "A network without biases can hardly tell scalar states apart: use --network.bias true, or --env.encoding "
            "one_hot."
        )
    features = isinstance(encoding, RandomFeatures) and encoding != RandomFeatures(encoding.vector)
    if features and method.encoding(encoding) != encoding:
        yield (
            "--env.num_features, length_scale and feature_norm are for random features, and numbers enter as they are "
            "here: leave them out, or use --evidence NoEvidence."
        )


@dataclasses.dataclass(frozen=True)
class Adam:
    """Optax's Adam on clipped gradients; unlike optax's own objects, it can be pickled, and shares compiled programs.

    The step size falls linearly to `learning_rate_end` within `updates`, or, where that is None, as
    1 / sqrt(1 + n / decay) with the updates n so far; without a decay it stays as it is.
    """

    learning_rate: float = dataclasses.field(metadata=TRACED)
    learning_rate_end: float | None = traced(None)
    updates: int = 0
    gradient_clip: float = traced(1.0)
    mean_decay: float = traced(0.0)
    square_decay: float = traced(0.9)
    epsilon: float = traced(1e-4)
    decay: int | None = None

    @property
    def rate(self) -> optax.ScalarOrSchedule:
        """The step size, or its course over the updates of a run."""
        if self.learning_rate_end is None:
            decay = self.decay
            return self.learning_rate if not decay else lambda n: self.learning_rate / jnp.sqrt(1.0 + n / decay)
        return optax.linear_schedule(self.learning_rate, self.learning_rate_end, self.updates)

    def init(self, params: PyTree) -> optax.OptState:
        return self._transformation.init(params)

    def update(self, updates: PyTree, state: optax.OptState, params: PyTree = None) -> tuple[PyTree, optax.OptState]:
        return self._transformation.update(updates, state, params)

    @property
    def _transformation(self) -> optax.GradientTransformation:
        adam = optax.adam(self.rate, b1=self.mean_decay, b2=self.square_decay, eps=self.epsilon)
        return optax.chain(optax.clip(self.gradient_clip), adam)


def optimizer_of(settings: Settings) -> Adam:
    """The optimizer of a run."""
    rollouts = 0 if settings.steps is None else math.ceil(settings.steps / settings.steps_per_rollout)
    return Adam(
        settings.learning_rate or 1e-3,
        settings.learning_rate_end,
        rollouts * (settings.updates_per_rollout or 1),
        settings.gradient_clip,
        *(settings.adam_betas or (0.0, 0.9)),
        settings.adam_epsilon or 1e-4,
        settings.learning_rate_decay,
    )
