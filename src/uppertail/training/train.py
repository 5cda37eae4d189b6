"""Drives compiled chunks of a run from Python, for all seeds at once."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from uppertail.agent import Agent
from uppertail.distributions import Gaussian, ReturnDistribution
from uppertail.environments import Environment, EnvironmentBuilder
from uppertail.networks import PerActionNetwork
from uppertail.policies import UCB, ExplorationPolicy
from uppertail.records import Episodes, RunRecord
from uppertail.training.compiled import Loop
from uppertail.training.interrupt import interruptible
from uppertail.training.results import Progress, TrainingDivergedError, TrainingResult, hardware
from uppertail.training.seeds import seed_keys
from uppertail.training.settings import Settings
from uppertail.types import ReturnRange

CHUNK_STEPS = 1024
GREEDY_EPISODES = 20


def train(
    environment: EnvironmentBuilder,
    distribution: ReturnDistribution[Any] | None = None,
    policy: ExplorationPolicy | None = None,
    settings: Settings | None = None,
    on_chunk: Callable[[Progress], object] = lambda progress: None,
) -> TrainingResult:
    """Trains every seed in one compiled program; seed k follows the run of seed k alone.

    Args:
        environment: builds the environment of each seed.
        distribution: the family of return distributions; Gaussian if left out.
        policy: the exploration policy; UCB if left out.
        settings: how long, on how much data, with how many seeds.
        on_chunk: called with the progress after each compiled chunk.

    Raises:
        InputError: the distribution cannot represent the environment's returns.
        TrainingDivergedError: a loss became NaN or infinite.
    """
    settings = settings or Settings()
    return Run(environment, distribution or Gaussian(), policy or UCB(), settings).drive(on_chunk)


class Run:
    """One call of `train`: the compiled parts, and what the host keeps of each seed."""

    def __init__(
        self,
        builder: EnvironmentBuilder,
        distribution: ReturnDistribution[Any],
        policy: ExplorationPolicy,
        settings: Settings,
    ) -> None:
        self.started = time.perf_counter()
        self.compile_seconds = self.training_seconds = 0.0
        self.builder, self.settings = builder, settings
        self.seeds = np.arange(settings.seed, settings.seed + settings.seeds)
        environment_keys, self.run_keys, self.evaluation_keys = jax.vmap(seed_keys)(jnp.asarray(self.seeds))
        self.environments = jax.vmap(builder.build)(environment_keys)
        low, high = jax.vmap(lambda environment: environment.return_range(settings.discount))(self.environments)
        self.family = distribution.fit(ReturnRange(float(jnp.min(low)), float(jnp.max(high))))
        self.loop = _loop(self.family, policy, self.environments, settings)
        self.iterations = _iterations_per_chunk(settings)
        self.episodes = [Episodes.none() for _ in self.seeds]
        self.env_steps = 0
        self.finished = np.zeros(settings.seeds, bool)
        self.diverged: tuple[int, int] | None = None

    def drive(self, on_chunk: Callable[[Progress], object]) -> TrainingResult:
        """Chunk after chunk until every seed has reached a limit, the user asks to stop, or a loss is not finite."""
        with interruptible() as asked_to_stop:
            start = self._compile(jax.vmap(self.loop.init), self.run_keys, self.environments)
            run = start(self.run_keys, self.environments)
            chunk = jax.vmap(lambda key, environment, run: self.loop.chunk(key, environment, run, self.iterations))
            compiled_chunk = self._compile(chunk, self.run_keys, self.environments, run, donate=(2,))
            while not (self.finished.all() or asked_to_stop.is_set() or self.diverged):
                began = time.perf_counter()
                run, records, metrics = compiled_chunk(self.run_keys, self.environments, run)
                records = jax.tree.map(np.asarray, records)
                self.training_seconds += time.perf_counter() - began
                self.diverged = self._first_divergence(np.asarray(metrics.loss))
                self._extend(records)
                on_chunk(self._progress())
            record = self._record(run.learned, interrupted=asked_to_stop.is_set() and not self.finished.all())
        result = TrainingResult(record, self.loop.agent, run.learned, self.environments)
        if self.diverged:
            raise TrainingDivergedError(*self.diverged, result)
        return result

    def _compile(self, function: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = ()) -> Any:
        began = time.perf_counter()
        compiled = jax.jit(function, donate_argnums=donate).lower(*arguments).compile()
        self.compile_seconds += time.perf_counter() - began
        return compiled

    def _extend(self, records: Any) -> None:
        """Adds the episodes that ended in a chunk, and marks the seeds that have reached a limit."""
        flat = jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[0], -1), records)
        for row, seed in enumerate(self.episodes):
            if not self.finished[row]:
                grown = seed.extended(flat.ended[row], flat.ret[row], flat.length[row], self.env_steps + 1)
                self.episodes[row] = grown.until(self.settings.episodes, self.settings.steps)
        self.env_steps += flat.ended.shape[1]
        out_of_steps = self.settings.steps is not None and self.env_steps >= self.settings.steps
        self.finished = np.array([out_of_steps or self._complete(seed) for seed in self.episodes])

    def _complete(self, seed: Episodes) -> bool:
        return seed.returns.size >= self.settings.episodes

    def _steps_of(self, seed: Episodes) -> int:
        """Environment steps of one seed within its limits."""
        if self._complete(seed):
            return int(seed.end_steps[-1])
        return self.env_steps if self.settings.steps is None else min(self.env_steps, self.settings.steps)

    def _first_divergence(self, losses: Any) -> tuple[int, int] | None:
        """Seed and environment step of the first loss that is not finite, among the seeds still running."""
        bad = ~np.isfinite(losses).all(axis=-1) & ~self.finished[:, None]
        if not bad.any():
            return None
        iteration, row = np.argwhere(bad.T)[0]
        return int(self.seeds[row]), self.env_steps + int(iteration + 1) * self.settings.rollout_steps

    def _progress(self) -> Progress:
        success_return = self.builder.success_return
        steps = sum(map(self._steps_of, self.episodes))
        fractions = [seed.returns.size / self.settings.episodes for seed in self.episodes]
        by_steps = 0.0 if self.settings.steps is None else self.env_steps / self.settings.steps
        return Progress(
            episodes=[seed.returns.size for seed in self.episodes],
            solved=sum(seed.solved(success_return) is not None for seed in self.episodes),
            success_rate=float(np.mean([seed.final_success_rate(success_return) or 0.0 for seed in self.episodes])),
            fraction=min(1.0, max(min(fractions), by_steps)),
            env_steps=steps,
            steps_per_second=steps / max(self.training_seconds, 1e-9),
        )

    def _record(self, networks: PerActionNetwork, interrupted: bool) -> RunRecord:
        evaluate = jax.vmap(
            lambda key, environment, network: jnp.mean(self.loop.evaluate(key, environment, network, GREEDY_EPISODES))
        )
        arguments = (self.evaluation_keys, self.environments, networks)
        greedy_returns = self._compile(evaluate, *arguments)(*arguments)
        return RunRecord(
            environment=described(self.builder),
            distribution=described(self.family),
            policy=described(self.loop.agent.policy),
            settings=dataclasses.asdict(self.settings),
            success_return=self.builder.success_return,
            floor_episodes=self.builder.floor_episodes,
            episodes=self.episodes,
            env_steps=list(map(self._steps_of, self.episodes)),
            greedy_returns=np.asarray(greedy_returns).tolist(),
            wall_seconds=time.perf_counter() - self.started,
            compile_seconds=self.compile_seconds,
            training_seconds=self.training_seconds,
            interrupted=interrupted,
            diverged=None if self.diverged is None else {"seed": self.diverged[0], "step": self.diverged[1]},
            hardware=hardware(),
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
