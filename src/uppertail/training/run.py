"""Drives a run from Python, chunk after chunk, for all seeds at once."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from uppertail.distributions import ReturnDistribution
from uppertail.environments import EnvironmentBuilder
from uppertail.errors import InputError
from uppertail.networks import PerActionNetwork
from uppertail.policies import ExplorationPolicy, Greedy
from uppertail.records import RunRecord
from uppertail.training import threads
from uppertail.training.assembly import driver_of, loop_of, steps_in_python
from uppertail.training.checkpoints import Checkpoints
from uppertail.training.described import described
from uppertail.training.driver import Played, State
from uppertail.training.interrupt import interruptible
from uppertail.training.ledger import Ledger, StartReturn
from uppertail.training.loop import RunState
from uppertail.training.memory import memory_errors
from uppertail.training.results import (
    Progress,
    Stop,
    TrainingDivergedError,
    TrainingFailedError,
    TrainingResult,
    hardware,
)
from uppertail.training.saving import Saver
from uppertail.training.seeds import seed_keys
from uppertail.training.settings import Settings
from uppertail.types import ReturnRange

GREEDY_EPISODES = 20

OnChunk = Callable[[Progress], object]
"""Called with the progress after each compiled chunk; a `Stop` that it returns stops the run, all else is ignored."""


class Run:
    """One call of `train`: what makes the steps, and what drives it. The caller locks the checkpoints' folder.

    Args:
        builder: builds the environments.
        distribution: the family of return distributions, fitted to their returns here.
        policy: the exploration policy.
        settings: how long, on how much data, with how many seeds.
        before: what was asked of a run that this one goes on with, or plays for: what was measured then holds.
    """

    def __init__(
        self,
        builder: EnvironmentBuilder,
        distribution: ReturnDistribution[Any],
        policy: ExplorationPolicy,
        settings: Settings,
        before: Mapping[str, Any] | None = None,
    ) -> None:
        if steps_in_python(builder):
            threads.run_inline()
        self.ledger = Ledger(settings, builder.success_return)
        self.builder, self.settings = builder, settings
        seeds = np.arange(settings.seed, settings.seed + settings.seeds)
        self.keys = jax.jit(jax.vmap(seed_keys))(jnp.asarray(seeds))
        self.driver = driver_of(builder, self.keys, seeds.tolist(), settings, self.ledger.seconds)
        try:
            if measured := (before or {}).get("measured_returns"):
                self.returns = ReturnRange(*measured, known=False)
            else:
                self.returns = self.driver.return_range(settings.discount)
            self.family = distribution.fit(self.returns)
            self.loop = self.driver.loop = loop_of(self.family, policy, self.driver.encoding, settings)
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
        with memory_errors(), interruptible() as asked_to_stop:
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
        """What was asked of the run: environment, distribution as fitted and to what, policy, settings."""
        return {
            "environment": described(self.builder),
            "distribution": described(self.family),
            "policy": described(self.loop.agent.policy),
            "settings": dataclasses.asdict(self.settings),
            "measured_returns": None if self.returns.known else [self.returns.low, self.returns.high],
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
