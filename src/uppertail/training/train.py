"""Drives compiled chunks of a run from Python, for all seeds at once."""

import dataclasses
import functools
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from uppertail.agent import Agent, Metrics
from uppertail.distributions import Gaussian, ReturnDistribution
from uppertail.environments import Environment, EnvironmentBuilder
from uppertail.locks import locked
from uppertail.networks import PerActionNetwork
from uppertail.policies import UCB, ExplorationPolicy
from uppertail.records import RunRecord
from uppertail.training.checkpoints import Checkpoints
from uppertail.training.compiled import Loop, RunState, StepRecord
from uppertail.training.interrupt import interruptible
from uppertail.training.ledger import Ledger
from uppertail.training.results import Progress, Stop, TrainingDivergedError, TrainingResult, hardware
from uppertail.training.saving import Saver
from uppertail.training.seeds import seed_keys
from uppertail.training.settings import Settings
from uppertail.types import ReturnRange

CHUNK_STEPS = 1024
GREEDY_EPISODES = 20

OnChunk = Callable[[Progress], object]
"""Called with the progress after each compiled chunk; a `Stop` that it returns stops the run, all else is ignored."""


def train(
    environment: EnvironmentBuilder,
    distribution: ReturnDistribution[Any] | None = None,
    policy: ExplorationPolicy | None = None,
    settings: Settings | None = None,
    on_chunk: OnChunk = lambda progress: None,
    checkpoints: Checkpoints | None = None,
) -> TrainingResult:
    """Trains every seed in one compiled program; seed k follows the run of seed k alone.

    Args:
        environment: builds the environment of each seed.
        distribution: the family of return distributions; Gaussian if left out.
        policy: the exploration policy; UCB if left out.
        settings: how long, on how much data, with how many seeds.
        on_chunk: called with the progress after each compiled chunk; a `Stop` that it returns stops the run.
        checkpoints: where the run's state is saved; the same call again goes on from there.

    Raises:
        InputError: the distribution cannot represent the environment's returns, or the checkpoints cannot be used.
        TrainingDivergedError: a loss became NaN or infinite.
    """
    run = Run(environment, distribution or Gaussian(), policy or UCB(), settings or Settings())
    if checkpoints is None:
        return run.drive(on_chunk)
    checkpoints.make_folder()
    with locked(Path(checkpoints.folder)):
        return run.drive(on_chunk, checkpoints)


class Run:
    """One call of `train`: the compiled parts, and what drives them. The caller locks the checkpoints' folder."""

    def __init__(
        self,
        builder: EnvironmentBuilder,
        distribution: ReturnDistribution[Any],
        policy: ExplorationPolicy,
        settings: Settings,
    ) -> None:
        self.ledger = Ledger(settings, builder.success_return)
        self.builder, self.settings = builder, settings
        seeds = jnp.asarray(np.arange(settings.seed, settings.seed + settings.seeds))
        environment_keys, self.run_keys, self.evaluation_keys = jax.vmap(seed_keys)(seeds)
        self.environments = jax.vmap(builder.build)(environment_keys)
        low, high = jax.vmap(lambda environment: environment.return_range(settings.discount))(self.environments)
        self.family = distribution.fit(ReturnRange(float(jnp.min(low)), float(jnp.max(high))))
        self.loop = _loop(self.family, policy, self.environments, settings)
        self.iterations = _iterations_per_chunk(settings)

    def drive(self, on_chunk: OnChunk, checkpoints: Checkpoints | None = None) -> TrainingResult:
        """Chunk after chunk until every seed has reached a limit, someone asks to stop, or a loss is not finite.

        Args:
            on_chunk: called with the progress after each chunk; a `Stop` that it returns stops the run.
            checkpoints: where the run's state is saved; if there are some, the run goes on from the last.

        Raises:
            InputError: a checkpoint cannot be written, or there are some and none can be used.
            TrainingDivergedError: a loss became NaN or infinite.
        """
        ledger, saver = self.ledger, (self.saver(checkpoints) if checkpoints else None)
        with interruptible() as asked_to_stop:
            state = (saver.restore() if saver else None) or self.start()
            over = ledger.over
            while not over:
                steps_before = ledger.step
                state, progress = self._advance(state)
                answer = on_chunk(progress)
                if isinstance(answer, Stop) and not ledger.over:
                    ledger.stopped = answer.reason
                over = ledger.over or asked_to_stop.is_set()
                if saver:
                    saver.after_chunk(state, steps_before, over)
            record = self._record(state.learned, interrupted=not ledger.over)
        result = TrainingResult(record, self.loop.agent, state.learned, self.environments)
        if ledger.diverged:
            raise TrainingDivergedError(*ledger.diverged, result)
        return result

    @functools.cached_property
    def template(self) -> RunState:
        """Shapes and types of the state of all seeds."""
        return jax.eval_shape(jax.vmap(self.loop.init), self.run_keys, self.environments)

    @functools.cached_property
    def _chunk(self) -> Callable[..., tuple[RunState, StepRecord, Metrics]]:
        """The compiled chunk: the same program whether a run begins or goes on."""
        chunk = jax.vmap(lambda key, environment, run: self.loop.chunk(key, environment, run, self.iterations))
        return self._compile(chunk, self.run_keys, self.environments, self.template, donate=(2,))

    def start(self) -> RunState:
        """The state of all seeds before the first step."""
        arguments = (self.run_keys, self.environments)
        return self._compile(jax.vmap(self.loop.init), *arguments)(*arguments)

    def _advance(self, state: RunState) -> tuple[RunState, Progress]:
        chunk, seconds = self._chunk, self.ledger.seconds
        began = time.perf_counter()
        state, records, metrics = chunk(self.run_keys, self.environments, state)
        records, metrics = jax.tree.map(np.asarray, (records, metrics))
        seconds.training += time.perf_counter() - began
        return state, self.ledger.extend(records, metrics)

    def _compile(self, function: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = ()) -> Any:
        began = time.perf_counter()
        compiled = jax.jit(function, donate_argnums=donate).lower(*arguments).compile()
        self.ledger.seconds.compile += time.perf_counter() - began
        return compiled

    def saver(self, checkpoints: Checkpoints) -> Saver:
        """What saves this run's state, and restores it."""
        return Saver(checkpoints, self._asked(), self.environments, self.ledger, self.template)

    def _asked(self) -> dict[str, Any]:
        return {
            "environment": described(self.builder),
            "distribution": described(self.family),
            "policy": described(self.loop.agent.policy),
            "settings": dataclasses.asdict(self.settings),
        }

    def _record(self, networks: PerActionNetwork, interrupted: bool) -> RunRecord:
        evaluate = jax.vmap(
            lambda key, environment, network: jnp.mean(self.loop.evaluate(key, environment, network, GREEDY_EPISODES))
        )
        arguments = (self.evaluation_keys, self.environments, networks)
        greedy_returns = self._compile(evaluate, *arguments)(*arguments)
        ledger = self.ledger
        return RunRecord(
            **self._asked(),
            success_return=self.builder.success_return,
            floor_episodes=self.builder.floor_episodes,
            episodes=ledger.episodes,
            env_steps=ledger.env_steps,
            greedy_returns=np.asarray(greedy_returns).tolist(),
            wall_seconds=ledger.seconds.wall,
            compile_seconds=ledger.seconds.compile,
            training_seconds=ledger.seconds.training,
            interrupted=interrupted,
            diverged=None if ledger.diverged is None else dict(zip(("seed", "step"), ledger.diverged, strict=True)),
            hardware=hardware(),
            stopped=ledger.stopped,
        )


def _loop(
    family: ReturnDistribution[Any], policy: ExplorationPolicy, environments: Environment, settings: Settings
) -> Loop:
    optimizer = optax.chain(optax.clip(settings.gradient_clip), optax.adam(settings.learning_rate))
    agent = Agent(
        family=family,
        policy=policy,
        encoding=environments.encoding,
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


def _iterations_per_chunk(settings: Settings) -> int:
    """About `CHUNK_STEPS` steps; the chunks of a run with a limit of steps are equal and end close to it."""
    most = max(1, CHUNK_STEPS // settings.rollout_steps)
    if settings.steps is None:
        return most
    iterations = math.ceil(settings.steps / settings.rollout_steps)
    return math.ceil(iterations / math.ceil(iterations / most))


def described(part: Any) -> dict[str, Any]:
    """Class name and settings of a part, as summary.json shows them."""
    return {"name": type(part).__name__, **dataclasses.asdict(part)}
