"""Assembles the parts of a run: its environments, its loop, its optimizer."""

import math

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.environments import EnvironmentBuilder, HostBuilder, steps_in_python
from uppertail.errors import InputError
from uppertail.learners import Gradients
from uppertail.training.drivers.base import World
from uppertail.training.drivers.compiled import CompiledWorld
from uppertail.training.drivers.host_world import HostWorld
from uppertail.training.loop import Loop
from uppertail.training.method import Method
from uppertail.training.optimizer import Adam
from uppertail.training.seeds import SeedKeys
from uppertail.training.settings import Settings


def world_of(builder: EnvironmentBuilder, keys: SeedKeys, seeds: list[int], settings: Settings) -> World:
    """The environments of all seeds, compiled or stepped by Python.

    Raises:
        InputError: they cannot be made.
    """
    if steps_in_python(builder):
        return HostWorld(builder, keys, seeds, settings.num_envs)
    if settings.num_envs > 1:
        never = ", or use --env.compile never" if isinstance(builder, HostBuilder) else ""
        raise InputError(
            f"num_envs is {settings.num_envs}, but this environment is compiled, where more seeds side by side do the "
            f"same: leave it out{never}."
        )
    return CompiledWorld(builder, keys)


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
