"""What a run is made of: its environments, what is done with their steps."""

import math

import optax

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.environments import EnvironmentBuilder, HostBuilder
from uppertail.errors import InputError
from uppertail.training.drivers.base import World
from uppertail.training.drivers.compiled import CompiledWorld
from uppertail.training.drivers.host_world import HostWorld
from uppertail.training.loop import Loop
from uppertail.training.method import Method
from uppertail.training.process import threads
from uppertail.training.seeds import SeedKeys
from uppertail.training.settings import Settings


def world_of(builder: EnvironmentBuilder, keys: SeedKeys, seeds: list[int], settings: Settings) -> World:
    """The environments of all seeds: compiled, or stepped by Python. Nothing else asks which.

    Raises:
        InputError: they cannot be made.
    """
    if not isinstance(builder, HostBuilder):
        _require_one_environment(settings, "leave it out.")
        return CompiledWorld(builder, keys, known_returns=None)
    if builder.compiles:
        _require_one_environment(settings, "leave it out, or use --env.compile never.")
        return CompiledWorld(builder, keys, builder.known_returns)
    threads.run_inline()
    return HostWorld(builder, keys, seeds, settings.num_envs)


def _require_one_environment(settings: Settings, remedy: str) -> None:
    if settings.num_envs > 1:
        raise InputError(
            f"num_envs is {settings.num_envs}, but this environment is compiled, where more seeds side by side do the "
            f"same: {remedy}"
        )


def loop_of(method: Method, encoding: Encoding, settings: Settings, counted: tuple[int, int] | None = None) -> Loop:
    """What is done with the steps.

    Args:
        method: the parts, with the distribution fitted to the environment's returns.
        encoding: how observations enter the network.
        settings: how long, on how much data.
        counted: number of states and of actions whose data are counted; None: they are not.
    """
    b1, b2 = settings.adam_betas
    adam = optax.adam(learning_rate(settings), b1=b1, b2=b2, eps=settings.adam_epsilon)
    agent = Agent(
        family=method.distribution,
        policy=method.policy,
        network=method.network,
        target=method.target,
        encoding=encoding,
        discount=settings.discount,
        optimizer=optax.chain(optax.clip(settings.gradient_clip), adam),
        loss_samples=settings.loss_samples,
    )
    return Loop(
        agent=agent,
        replay=method.replay,
        rollout_steps=settings.rollout_steps,
        updates_per_rollout=settings.updates_per_rollout,
        batch_size=settings.batch_size,
        replay_size=settings.replay_size,
        episodes=settings.episodes,
        steps=settings.steps,
        on_policy=settings.on_policy,
        replay_start=settings.replay_start,
        counted=counted,
    )


def learning_rate(settings: Settings) -> float | optax.Schedule:
    """The step size, or its course over the updates of a run."""
    if settings.learning_rate_end is None or settings.steps is None:
        return settings.learning_rate
    updates = math.ceil(settings.steps / settings.rollout_steps) * settings.updates_per_rollout
    return optax.linear_schedule(settings.learning_rate, settings.learning_rate_end, updates)
