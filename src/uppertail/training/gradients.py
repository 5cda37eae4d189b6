"""The parts and settings of a run that belong to gradient descent."""

import dataclasses
import math

import optax

from uppertail.errors import InputError
from uppertail.learners import Gradients
from uppertail.networks import NetworkBuilder, PerAction
from uppertail.replay import Replay, Uniform
from uppertail.schema import TRACED, traced
from uppertail.targets import Online, Target
from uppertail.training.settings import Settings
from uppertail.types import PyTree

DEFAULTS = {"network": PerAction, "replay": Uniform, "target": Online}
"""The parts of gradient descent, with their defaults."""

SHORT_FORMS = ("width", "hidden_layers", "bias")  # settings of the network that `Settings` also has


@dataclasses.dataclass(frozen=True)
class Adam:
    """Optax's Adam on clipped gradients; unlike optax's own objects, it can be pickled, and shares compiled programs.

    The step size falls linearly to `learning_rate_end` within `updates`; None: it stays as it is.
    """

    learning_rate: float = dataclasses.field(metadata=TRACED)
    learning_rate_end: float | None = traced(None)
    updates: int = 0
    gradient_clip: float = traced(1.0)
    mean_decay: float = traced(0.0)
    square_decay: float = traced(0.9)
    epsilon: float = traced(1e-4)

    @property
    def rate(self) -> optax.ScalarOrSchedule:
        """The step size, or its course over the updates of a run."""
        if self.learning_rate_end is None:
            return self.learning_rate
        return optax.linear_schedule(self.learning_rate, self.learning_rate_end, self.updates)

    def init(self, params: PyTree) -> optax.OptState:
        """The state before the first update."""
        return self._transformation.init(params)

    def update(self, updates: PyTree, state: optax.OptState, params: PyTree = None) -> tuple[PyTree, optax.OptState]:
        """The step that follows from a gradient, and the next state."""
        return self._transformation.update(updates, state, params)

    @property
    def _transformation(self) -> optax.GradientTransformation:
        adam = optax.adam(self.rate, b1=self.mean_decay, b2=self.square_decay, eps=self.epsilon)
        return optax.chain(optax.clip(self.gradient_clip), adam)


def with_short_forms(network: NetworkBuilder, settings: Settings) -> tuple[NetworkBuilder, Settings]:
    """The network with the settings' width, depth and biases, and the settings with the network's.

    A setting that the network does not have, or that is given twice, is refused.
    """
    fields = {field.name: field.default for field in dataclasses.fields(network)}  # pyright: ignore[reportArgumentType]
    asked = {name: value for name in SHORT_FORMS if (value := getattr(settings, name)) is not None}
    for name, value in asked.items():
        if name not in fields:
            kind = type(network).__name__
            raise InputError(f"{name} is {value}, but the network {kind} has no such setting: leave it out.")
        if (own := getattr(network, name)) not in (fields[name], value):
            raise InputError(f"{name} is {value}, but network.{name} is {own}: give it once.")
    network = dataclasses.replace(network, **asked)  # pyright: ignore[reportArgumentType]
    return network, dataclasses.replace(settings, **{name: getattr(network, name, None) for name in SHORT_FORMS})


def optimizer_of(settings: Settings) -> Adam:
    """The optimizer of a run."""
    rollouts = 0 if settings.steps is None else math.ceil(settings.steps / settings.steps_per_rollout)
    return Adam(
        settings.learning_rate,
        settings.learning_rate_end,
        rollouts * settings.updates_per_rollout,
        settings.gradient_clip,
        *settings.adam_betas,
        settings.adam_epsilon,
    )


def gradients_of(network: NetworkBuilder, replay: Replay, target: Target, settings: Settings) -> Gradients:
    """The parts and settings as the learner takes them."""
    return Gradients(
        network,
        replay,
        target,
        optimizer_of(settings),
        settings.steps_per_rollout,
        settings.updates_per_rollout,
        settings.batch_size,
        settings.replay_size,
        settings.on_policy,
        settings.replay_start,
    )
