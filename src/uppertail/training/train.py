"""Drives a run from Python, chunk after chunk, for all seeds at once."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from uppertail.agent import Agent
from uppertail.distributions import Gaussian, ReturnDistribution
from uppertail.encodings import Encoding
from uppertail.environments import EnvironmentBuilder, HostBuilder, builder_of
from uppertail.errors import InputError
from uppertail.locks import locked
from uppertail.networks import PerActionNetwork
from uppertail.policies import UCB, ExplorationPolicy, Greedy
from uppertail.records import RunRecord
from uppertail.training import threads
from uppertail.training.checkpoints import Checkpoints
from uppertail.training.compiled import CompiledDriver
from uppertail.training.driver import Driver, Played, State, Stopwatch
from uppertail.training.host import HostDriver
from uppertail.training.interrupt import interruptible
from uppertail.training.ledger import Ledger, StartReturn
from uppertail.training.loop import Loop, RunState
from uppertail.training.results import (
    Progress,
    Stop,
    TrainingDivergedError,
    TrainingFailedError,
    TrainingResult,
    hardware,
)
from uppertail.training.saving import Saver
from uppertail.training.seeds import SeedKeys, seed_keys
from uppertail.training.settings import Settings

CHUNK_STEPS = 1024
HOST_CHUNK_STEPS = 512
"""Environment steps of each seed between two calls of the callback: compiled, and where Python makes them."""

GREEDY_EPISODES = 20

OnChunk = Callable[[Progress], object]
"""Called with the progress after each compiled chunk; a `Stop` that it returns stops the run, all else is ignored."""


def train(
    environment: EnvironmentBuilder | object,
    distribution: ReturnDistribution[Any] | None = None,
    policy: ExplorationPolicy | None = None,
    settings: Settings | None = None,
    on_chunk: OnChunk = lambda progress: None,
    checkpoints: Checkpoints | None = None,
) -> TrainingResult:
    """Trains all seeds side by side; seed k follows the run of seed k alone.

    Args:
        environment: a builder such as Chain or Gym, a Gymnasium environment, or a function that makes one.
        distribution: the family of return distributions; Gaussian if left out.
        policy: the exploration policy; UCB if left out.
        settings: how long, on how much data, with how many seeds.
        on_chunk: called with the progress after each chunk of steps; a `Stop` that it returns stops the run.
        checkpoints: where the run's state is saved; the same call again goes on from there.

    Raises:
        InputError: the distribution cannot represent the environment's returns, or the checkpoints cannot be used.
        TrainingDivergedError: a loss became NaN or infinite.
        TrainingFailedError: an environment could not go on.
    """
    builder = builder_of(environment)
    if isinstance(builder, HostBuilder) and builder.note:
        warnings.warn(builder.note, stacklevel=2)
    run = Run(builder, distribution or Gaussian(), policy or UCB(), settings or Settings())
    if checkpoints is None:
        return run.drive(on_chunk)
    checkpoints.make_folder()
    with locked(Path(checkpoints.folder)):
        return run.drive(on_chunk, checkpoints)


class Run:
    """One call of `train`: what makes the steps, and what drives it. The caller locks the checkpoints' folder."""

    def __init__(
        self,
        builder: EnvironmentBuilder,
        distribution: ReturnDistribution[Any],
        policy: ExplorationPolicy,
        settings: Settings,
    ) -> None:
        if _steps_in_python(builder):
            threads.run_inline()
        self.ledger = Ledger(settings, builder.success_return)
        self.builder, self.settings = builder, settings
        seeds = np.arange(settings.seed, settings.seed + settings.seeds)
        self.keys = jax.jit(jax.vmap(seed_keys))(jnp.asarray(seeds))
        self.driver = _driver(builder, self.keys, seeds.tolist(), settings, self.ledger.seconds)
        try:
            self.family = distribution.fit(self.driver.return_range(settings.discount))
            self.loop = self.driver.loop = _loop(self.family, policy, self.driver.encoding, settings)
        except InputError:
            self.driver.close()
            raise

    def drive(self, on_chunk: OnChunk, checkpoints: Checkpoints | None = None) -> TrainingResult:
        """Chunk after chunk until every seed has reached a limit, someone asks to stop, or something goes wrong.

        Args:
            on_chunk: called with the progress after each chunk; a `Stop` that it returns stops the run.
            checkpoints: where the run's state is saved; if there are some, the run goes on from the last.

        Raises:
            InputError: a checkpoint cannot be written, or there are some and none can be used.
            TrainingDivergedError: a loss became NaN or infinite.
            TrainingFailedError: an environment could not go on.
        """
        try:
            return self._drive(on_chunk, checkpoints)
        finally:
            self.driver.close()

    def _drive(self, on_chunk: OnChunk, checkpoints: Checkpoints | None) -> TrainingResult:
        ledger, driver, saver = self.ledger, self.driver, (self.saver(checkpoints) if checkpoints else None)
        with interruptible() as asked_to_stop:
            state = (saver.restore() if saver else None) or driver.start()
            over = ledger.over
            while not over:
                steps_before = ledger.step
                state, records, metrics = driver.advance(state, ledger.finished)
                ledger.failed = None if driver.failure is None else str(driver.failure)
                answer = on_chunk(ledger.extend(records, metrics, self._at_start(state)))
                if isinstance(answer, Stop) and not ledger.over:
                    ledger.stopped = answer.reason
                over = ledger.over or asked_to_stop.is_set()
                if saver:
                    saver.after_chunk(state, steps_before, over)
            learned = driver.gathered(state, jax.vmap(self.loop.learned))
            record = self._record(learned, interrupted=not ledger.over or ledger.failed is not None)
        result = TrainingResult(record, self.loop.agent, learned, driver.environments)
        if ledger.diverged:
            raise TrainingDivergedError(*ledger.diverged, result)
        if ledger.failed:
            raise TrainingFailedError(ledger.failed, result)
        return result

    def play(self, networks: PerActionNetwork, policy: ExplorationPolicy, episodes: int) -> Played:
        """Episodes of every seed with learned networks held still.

        Args:
            networks: the networks, every array with a leading axis of seeds.
            policy: what chooses the actions.
            episodes: how many of each seed.
        """
        return self.driver.play(networks, policy, self.keys.evaluation, episodes)

    @functools.cached_property
    def template(self) -> RunState:
        """Shapes and types of the state of all seeds."""
        return self.driver.template()

    def saver(self, checkpoints: Checkpoints) -> Saver:
        """What saves this run's state, and restores it."""
        return Saver(checkpoints, self.asked(), self.driver, self.ledger, self.template)

    @functools.cached_property
    def _start_moments(self) -> Any:
        """Mean and sd of the return at the start state, of the action with the highest mean, for each seed."""
        agent = self.loop.agent

        def moments(network: PerActionNetwork, observation: Array) -> tuple[Array, Array]:
            z = agent.returns(network, observation)
            mean, std = jax.vmap(agent.family.mean)(z), jax.vmap(agent.family.std)(z)
            return mean[jnp.argmax(mean)], std[jnp.argmax(mean)]

        arguments = (self.template.agent.network, self.driver.start_observations())
        return self.driver.compiled(jax.vmap(moments), *arguments), arguments[1]

    def _at_start(self, state: State) -> StartReturn:
        moments, observations = self._start_moments
        networks = self.driver.gathered(state, lambda run: run.agent.network)
        return StartReturn(*map(np.asarray, moments(networks, observations)))

    def asked(self) -> dict[str, Any]:
        """What was asked of the run: environment, distribution as fitted, policy, settings."""
        return {
            "environment": described(self.builder),
            "distribution": described(self.family),
            "policy": described(self.loop.agent.policy),
            "settings": dataclasses.asdict(self.settings),
        }

    def _greedy_returns(self, networks: PerActionNetwork) -> list[float]:
        """Mean return of greedy episodes of each seed; NaN if an environment fails in them."""
        try:
            return self.play(networks, Greedy(), GREEDY_EPISODES).returns.mean(axis=1).tolist()
        except InputError as error:  # one cannot be made again, or fails
            self.ledger.failed = self.ledger.failed or str(error)
            return [math.nan] * self.settings.seeds

    def _record(self, networks: PerActionNetwork, interrupted: bool) -> RunRecord:
        greedy_returns, ledger = self._greedy_returns(networks), self.ledger
        return RunRecord(
            **self.asked(),
            success_return=self.builder.success_return,
            floor_episodes=self.builder.floor_episodes,
            episodes=ledger.episodes,
            env_steps=ledger.env_steps,
            greedy_returns=greedy_returns,
            outside_share=ledger.outside_share,
            wall_seconds=ledger.seconds.wall,
            compile_seconds=ledger.seconds.compile,
            training_seconds=ledger.seconds.training,
            interrupted=interrupted,
            diverged=None if ledger.diverged is None else dict(zip(("seed", "step"), ledger.diverged, strict=True)),
            failed=ledger.failed,
            hardware=hardware(),
            stopped=ledger.stopped,
        )


def _steps_in_python(builder: EnvironmentBuilder) -> TypeGuard[HostBuilder]:
    return isinstance(builder, HostBuilder) and not builder.compiles


def _driver(
    builder: EnvironmentBuilder, keys: SeedKeys, seeds: list[int], settings: Settings, seconds: Stopwatch
) -> Driver:
    """What makes the steps: a compiled program, or Python where there is no program of the environment."""
    if _steps_in_python(builder):
        iterations = _iterations_per_chunk(settings, HOST_CHUNK_STEPS)
        return HostDriver(builder, keys, seeds, settings.num_envs, iterations, seconds)
    if settings.num_envs > 1:
        raise InputError(
            f"num_envs is {settings.num_envs}, but this environment is compiled, where more seeds side by side do the "
            "same: leave it out" + (", or use --env.compile never." if isinstance(builder, HostBuilder) else ".")
        )
    return CompiledDriver(builder, keys, _iterations_per_chunk(settings, CHUNK_STEPS), seconds)


def _loop(family: ReturnDistribution[Any], policy: ExplorationPolicy, encoding: Encoding, settings: Settings) -> Loop:
    optimizer = optax.chain(optax.clip(settings.gradient_clip), optax.adam(_learning_rate(settings)))
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


def _learning_rate(settings: Settings) -> float | optax.Schedule:
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


def described(part: Any) -> dict[str, Any]:
    """Class name and settings of a part, as summary.json shows them."""
    shown = [field.name for field in dataclasses.fields(part) if field.repr]
    return {"name": type(part).__name__, **{name: _plain(getattr(part, name)) for name in shown}}


def _plain(value: Any) -> Any:
    """A setting, with tuples as the lists that JSON makes of them."""
    return list(value) if isinstance(value, tuple) else value
