"""Drives a run from Python, chunk after chunk, for all seeds at once."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from uppertail.capacity import require_memory, size_of
from uppertail.environments import EnvironmentBuilder, HostBuilder
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy, Greedy
from uppertail.records import RunRecord
from uppertail.records.described import describe
from uppertail.training.assembly import loop_of, steps_in_python, world_of
from uppertail.training.checkpoints.folder import Checkpoints
from uppertail.training.checkpoints.saver import Saver
from uppertail.training.drivers.base import Played, State
from uppertail.training.drivers.recorder import Recorder, table_shape
from uppertail.training.ledger import Ledger, StartReturn
from uppertail.training.loop import Loop, RunState
from uppertail.training.method import Method, with_short_forms
from uppertail.training.process import threads
from uppertail.training.process.hardware import hardware
from uppertail.training.process.interrupt import interruptible
from uppertail.training.process.jax_settings import require_working
from uppertail.training.process.memory import memory_errors
from uppertail.training.results import (
    Progress,
    Stop,
    TrainingDivergedError,
    TrainingFailedError,
    TrainingResult,
)
from uppertail.training.seeds import seed_keys
from uppertail.training.settings import Settings
from uppertail.training.traps import traps
from uppertail.types import ReturnRange

GREEDY_EPISODES = 20

SMALLER = "use fewer seeds, a smaller width or replay_size, or, where there are very many states, --env.encoding scalar"
"""The remedy if the state of all seeds does not fit into memory."""
DISTRIBUTIONS = "distributions"
"""The name of the only recording."""

OnChunk = Callable[[Progress], object]
"""Called with the progress after each compiled chunk; a `Stop` that it returns stops the run, all else is ignored."""


def _note(builder: EnvironmentBuilder) -> list[str]:
    return [builder.note] if isinstance(builder, HostBuilder) and builder.note else []


class Run:
    """One call of `train`, chunk after chunk. The caller locks the checkpoints' folder.

    Args:
        builder: builds the environments.
        method: the parts that learn and explore; the distribution is fitted to the environments' returns here.
        settings: how long, on how much data, with how many seeds.
        before: the settings of the earlier run that this one continues or plays; its measured returns are used again.
        record: distributions, to record return distributions while it trains; None: nothing.

    Attributes:
        notes: notes for the user, in sentences.

    Raises:
        InputError: an argument cannot be met.
    """

    def __init__(
        self,
        builder: EnvironmentBuilder,
        method: Method,
        settings: Settings,
        before: Mapping[str, Any] | None = None,
        record: str | None = None,
    ) -> None:
        if steps_in_python(builder):
            threads.run_inline()  # too late once `require_working` has started JAX
        require_working()
        require_record(record)
        method, self.settings = with_short_forms(method, settings)
        self.builder = builder
        self.ledger = Ledger(self.settings, builder.success_return)
        seeds = np.arange(settings.seed, settings.seed + settings.seeds)
        self.keys = jax.jit(jax.vmap(seed_keys))(jnp.asarray(seeds))
        self.world = world_of(builder, self.keys, seeds.tolist(), self.settings)
        try:
            self._table = table_shape(self.world.observations, self.world.num_actions) if record else None
            self._asked_method, self._encoding = method, self.world.observations.encoding(builder.preferences)
            self._fit(self._return_range((before or {}).get("measured_returns")))
            self.notes = [*_note(builder), *traps(self.method, self._encoding)]
            self.driver = self.world.driver(self.loop, self.ledger.seconds)
            if not self.returns.known and self.returns.low == self.returns.high:
                self.driver.reconsider = lambda low, high: self._fit(ReturnRange(low, high, known=False))
            require_memory(size_of(self.template), "The networks and replay buffers of all seeds need", SMALLER)
        except InputError:
            self.world.close()
            raise
        self.records = record is not None

    def _fit(self, returns: ReturnRange) -> Loop:
        """Fits the distribution to the range of returns, and makes the loop.

        If a random policy saw no reward but 0, the range is guessed to be 1, and fitted again to the first other
        reward. Only zeros were learned until then, and they are the same in every unit.

        Raises:
            InputError: the distribution cannot represent these returns.
        """
        self.returns = returns
        self.method = self._asked_method.fitted(returns)
        self.__dict__.pop("_start_moments", None)  # it was compiled for the earlier distribution
        self.loop = loop_of(self.method, self._encoding, self.settings, self._table)
        return self.loop

    def drive(self, on_chunk: OnChunk, checkpoints: Checkpoints | None = None) -> TrainingResult:
        """Trains chunk after chunk until every seed has reached a limit, the user stops it, or it fails.

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
            self.close()

    def _drive(self, on_chunk: OnChunk, checkpoints: Checkpoints | None) -> TrainingResult:
        ledger, driver, saver = self.ledger, self.driver, (self.saver(checkpoints) if checkpoints else None)
        with memory_errors(), interruptible() as asked_to_stop:
            driver.recorder = recorder = self._recorder() if self.records else None
            state = saver.restore() if saver else None
            if state is None:
                state = driver.start()
                _record(recorder, ledger, state)
            over = ledger.over
            while not over:
                steps_before = ledger.step
                if recorder:
                    recorder.iteration = ledger.step // self.settings.rollout_steps
                state, records, metrics = driver.advance(state, ledger.finished)
                ledger.failed = None if driver.failure is None else str(driver.failure)
                answer = on_chunk(ledger.extend(records, metrics, self.start_returns(state)))
                if isinstance(answer, Stop) and not ledger.over:
                    ledger.stopped = answer.reason
                over = ledger.over or asked_to_stop.is_set()
                if over:
                    _record(recorder, ledger, state)
                if saver:
                    saver.after_chunk(state, steps_before, over)
            networks = driver.gather(state, jax.vmap(self.loop.result))
            record = self._record(networks, interrupted=not ledger.over or ledger.failed is not None)
        recorded = recorder.distributions(ledger.env_steps) if recorder else None
        result = TrainingResult(record, self.loop.agent, networks, self.world.environments, recorded)
        if ledger.diverged:
            raise TrainingDivergedError(*ledger.diverged, result)
        if ledger.failed:
            raise TrainingFailedError(ledger.failed, result)
        return result

    def close(self) -> None:
        """Ends threads, and frees the resources of the environments."""
        self.driver.close()
        self.world.close()

    def play(self, networks: Network, policy: ExplorationPolicy, episodes: int) -> Played:
        """Plays episodes of every seed with learned networks, without further learning.

        Args:
            networks: the networks, every array with a leading axis of seeds.
            policy: chooses the actions.
            episodes: how many of each seed.
        """
        return self.driver.play(networks, policy, self.keys.evaluation, episodes)

    def _recorder(self) -> Recorder:
        return Recorder(
            self.loop,
            self.driver.groups,
            self.template,
            self.world.environments,
            self.world.start_observations(),
            self.world.num_actions,
            self.ledger.seconds,
        )

    @functools.cached_property
    def template(self) -> RunState:
        """Shapes and types of the state of all seeds."""
        return self.driver.template()

    def saver(self, checkpoints: Checkpoints) -> Saver:
        """The saver of this run's state."""
        return Saver(checkpoints, self.asked, self.parts, self.world, self.driver, self.ledger, self.template)

    @property
    def parts(self) -> dict[str, Any]:
        """The parts of the run and its settings, by the names that `asked` has."""
        return {"environment": self.builder, **self.method.parts, "settings": self.settings}

    def asked(self) -> dict[str, Any]:
        """The parts and settings of the run: the distribution as it is fitted, and the returns it was fitted to."""
        described_parts = {name: describe(part) for name, part in self.parts.items()}
        described_parts["settings"].pop("name")
        measured = None if self.returns.known else [self.returns.low, self.returns.high]
        return {**described_parts, "measured_returns": measured}

    def _return_range(self, measured: list[float] | None) -> ReturnRange:
        if measured:
            low, high = measured
            return ReturnRange(low, high, known=False)
        return self.world.return_range(self.settings.discount)

    @functools.cached_property
    def _start_moments(self) -> Any:
        """Mean and sd of the return at the start state, of the action with the highest mean, for each seed."""
        agent = self.loop.agent

        def moments(network: Network, observation: Array) -> tuple[Array, Array]:
            z = agent.returns_by_member(network, observation)
            mean, std = (
                jnp.mean(jax.vmap(jax.vmap(each))(z), axis=0) for each in (agent.family.mean, agent.family.std)
            )
            return mean[jnp.argmax(mean)], std[jnp.argmax(mean)]

        arguments = (self.template.agent.network, self.world.start_observations())
        return self.ledger.seconds.compiled(jax.vmap(moments), *arguments), arguments[1]

    def start_returns(self, state: State) -> StartReturn:
        """Mean and sd of the return where each seed's run starts."""
        moments, observations = self._start_moments
        networks = self.driver.gather(state, lambda run: run.agent.network)
        return StartReturn(*map(np.asarray, moments(networks, observations)))

    def _greedy_returns(self, networks: Network) -> list[float]:
        """Mean return of greedy episodes of each seed; NaN if an environment fails in them."""
        try:
            return self.play(networks, Greedy(), GREEDY_EPISODES).returns.mean(axis=1).tolist()
        except InputError as error:  # an environment cannot be made again, or fails
            self.ledger.failed = self.ledger.failed or str(error)
            return [math.nan] * self.settings.seeds

    def _record(self, networks: Network, interrupted: bool) -> RunRecord:
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


def require_record(record: str | None) -> None:
    """Refuses an unknown recording.

    Raises:
        InputError: there is no such recording.
    """
    if record not in (None, DISTRIBUTIONS):
        raise InputError(f"record is {record!r}: use {DISTRIBUTIONS}, or leave it out.")


def _record(recorder: Recorder | None, ledger: Ledger, state: State) -> None:
    """Records the run at its beginning, and at its end."""
    if recorder:
        recorder.iteration = ledger.step // ledger.settings.rollout_steps
        recorder.take_all(state)
