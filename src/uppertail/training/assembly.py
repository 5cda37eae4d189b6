"""Assembles the parts of a run: its driver, its loop, its optimizer."""

import dataclasses
import math

import optax

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.environments import EnvironmentBuilder, HostBuilder, steps_in_python
from uppertail.errors import InputError
from uppertail.learners import Gradients
from uppertail.schema import TRACED, traced
from uppertail.training.drivers.base import Driver
from uppertail.training.drivers.compiled import CompiledDriver
from uppertail.training.drivers.host import HostDriver
from uppertail.training.loop import Loop
from uppertail.training.method import Method
from uppertail.training.seeds import SeedKeys
from uppertail.training.settings import Settings
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class Adam:
    """Adam on clipped gradients, by optax; unlike optax's own objects, it can be pickled.

    Args:
        learning_rate: step size.
        learning_rate_end: step size after `updates`, to which it falls linearly; None: it stays as it is.
        updates: updates of a whole run, where the step size falls.
        gradient_clip: largest size of any one entry of the gradient.
        mean_decay: decay rate of the mean of the gradient.
        square_decay: decay rate of the mean of its square.
        epsilon: added to the root of the mean square.
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


def driver_of(builder: EnvironmentBuilder, keys: SeedKeys, seeds: list[int], settings: Settings) -> Driver:
    """The driver of the environments of all seeds, compiled or stepped by Python.

    Raises:
        InputError: they cannot be made.
    """
    if steps_in_python(builder):
        return HostDriver(builder, keys, seeds, settings.num_envs)
    if settings.num_envs > 1:
        never = ", or use --env.compile never" if isinstance(builder, HostBuilder) else ""
        raise InputError(
            f"num_envs is {settings.num_envs}, but this environment is compiled, where more seeds side by side do the "
            f"same: leave it out{never}."
        )
    return CompiledDriver(builder, keys)


def loop_of(method: Method, encoding: Encoding, settings: Settings, counted: tuple[int, int] | None = None) -> Loop:
    """The loop of a run.

    Args:
        method: the parts, with the distribution fitted to the environment's returns.
        encoding: how observations enter the network.
        settings: how long, on how much data.
        counted: number of states and of actions whose visits are counted; None: they are not counted.
    """
    network, steps = method.network, settings.steps_per_rollout
    members = network.members if network else method.chosen_learner.members
    agent = Agent(method.distribution, method.policy, encoding, settings.discount, members, settings.loss_samples)
    learner = method.chosen_learner.build(agent, _gradients(method, settings))
    return Loop(learner, steps, settings.episodes, settings.steps, counted)


def _gradients(method: Method, settings: Settings) -> Gradients | None:
    """The parts and settings of gradient descent; None where the learner is another."""
    if method.network is None or method.replay is None or method.target is None:
        return None
    return Gradients(
        method.network,
        method.replay,
        method.target,
        optimizer_of(settings),
        settings.steps_per_rollout,
        settings.updates_per_rollout,
        settings.batch_size,
        settings.replay_size,
        settings.on_policy,
        settings.replay_start,
    )


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
