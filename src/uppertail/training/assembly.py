"""What a run is made of, from its settings: what makes the steps, and what is done with them."""

import math
from typing import Any, TypeGuard

import optax

from uppertail.agent import Agent
from uppertail.distributions import ReturnDistribution
from uppertail.encodings import Encoding
from uppertail.environments import EnvironmentBuilder, HostBuilder
from uppertail.errors import InputError
from uppertail.policies import ExplorationPolicy
from uppertail.training.compiled import CompiledDriver
from uppertail.training.driver import Driver, Stopwatch
from uppertail.training.host import HostDriver
from uppertail.training.loop import Loop
from uppertail.training.seeds import SeedKeys
from uppertail.training.settings import Settings

CHUNK_STEPS = 1024
HOST_CHUNK_STEPS = 512
"""Environment steps of each seed between two calls of the callback: compiled, and where Python makes them."""


def steps_in_python(builder: EnvironmentBuilder) -> TypeGuard[HostBuilder]:
    """Whether Python steps a builder's environments."""
    return isinstance(builder, HostBuilder) and not builder.compiles


def driver_of(
    builder: EnvironmentBuilder, keys: SeedKeys, seeds: list[int], settings: Settings, seconds: Stopwatch
) -> Driver:
    """What makes the steps: a compiled program, or Python where there is no program of the environment."""
    if steps_in_python(builder):
        iterations = _iterations_per_chunk(settings, HOST_CHUNK_STEPS)
        return HostDriver(builder, keys, seeds, settings.num_envs, iterations, seconds)
    if settings.num_envs > 1:
        raise InputError(
            f"num_envs is {settings.num_envs}, but this environment is compiled, where more seeds side by side do the "
            "same: leave it out" + (", or use --env.compile never." if isinstance(builder, HostBuilder) else ".")
        )
    return CompiledDriver(builder, keys, _iterations_per_chunk(settings, CHUNK_STEPS), seconds)


def loop_of(family: ReturnDistribution[Any], policy: ExplorationPolicy, encoding: Encoding, settings: Settings) -> Loop:
    """What is done with the steps."""
    optimizer = optax.chain(optax.clip(settings.gradient_clip), optax.adam(learning_rate(settings)))
    agent = Agent(
        family=family,
        policy=policy,
        encoding=encoding,
        discount=settings.discount,
        optimizer=optimizer,
        hidden_sizes=(settings.width,) * settings.hidden_layers,
        bias=settings.bias,
        loss_samples=settings.loss_samples,
    )
    return Loop(
        agent=agent,
        rollout_steps=settings.rollout_steps,
        updates_per_rollout=settings.updates_per_rollout,
        batch_size=settings.batch_size,
        replay_size=settings.replay_size,
        episodes=settings.episodes,
        steps=settings.steps,
        on_policy=settings.on_policy,
        replay_start=settings.replay_start,
    )


def learning_rate(settings: Settings) -> float | optax.Schedule:
    """The step size, or its course over the updates of a run."""
    if settings.learning_rate_end is None or settings.steps is None:
        return settings.learning_rate
    updates = math.ceil(settings.steps / settings.rollout_steps) * settings.updates_per_rollout
    return optax.linear_schedule(settings.learning_rate, settings.learning_rate_end, updates)


def _iterations_per_chunk(settings: Settings, steps: int) -> int:
    """About so many steps; the chunks of a run with a limit of steps are equal and end close to it."""
    most = max(1, steps // settings.rollout_steps)
    if settings.steps is None:
        return most
    iterations = math.ceil(settings.steps / settings.rollout_steps)
    return math.ceil(iterations / math.ceil(iterations / most))
