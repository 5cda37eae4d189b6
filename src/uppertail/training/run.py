"""A run of all seeds at once: its parts, environments, driver and ledger, put together."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from uppertail.capacity import require_memory, size_of
from uppertail.encodings import Numbers, RandomFeatures, States
from uppertail.environments import (
    Choice,
    EnvironmentBuilder,
    GymnasiumBuilder,
    Interface,
    Reading,
    VectorBuilder,
    choose_features,
    measure_returns,
    widest_range,
)
from uppertail.errors import InputError
from uppertail.learners import Metrics, NearestNeighbors
from uppertail.networks import Network
from uppertail.records import Distributions, RunRecord, describe
from uppertail.training.compiled import CompiledDriver
from uppertail.training.driver import Driver, State
from uppertail.training.host import HostDriver
from uppertail.training.ledger import Ledger, Moments
from uppertail.training.loop import Loop, SeedKeys, StepRecord, all_seed_keys
from uppertail.training.method import Method, resolved, sanity_warnings
from uppertail.training.process import SMALLER, require_device
from uppertail.training.programs import Programs
from uppertail.training.recording import Capture, Recorder, fits_table, with_environment
from uppertail.training.results import TrainingResult
from uppertail.training.settings import Settings
from uppertail.types import ReturnRange

DISTRIBUTIONS = "distributions"  # the name of the only recording


class Run:
    """What one call of `train` needs; `drive` drives it. The caller locks the checkpoints' folder.

    The arguments are those of `train`; the distribution is fitted to the environments' returns here. `before` has the
    settings of the earlier run that this one continues or plays: what it measured is used again. `notes` are
    sentences for the user.
    """

    def __init__(
        self,
        builder: EnvironmentBuilder,
        method: Method,
        settings: Settings,
        before: Mapping[str, Any] | None = None,
        record: str | None = None,
        record_over: tuple[int, int] | None = None,
    ) -> None:
        if not builder.compiles:
            # many programs of microseconds run in the thread that calls them; too late once JAX has started
            jax.config.update("jax_cpu_enable_async_dispatch", False)
        require_device()
        if record_over is not None and record is None:
            raise InputError(
                f"record_over is {list(record_over)}, but nothing is recorded: use --record {DISTRIBUTIONS}, too."
            )
        if record not in (None, DISTRIBUTIONS):
            raise InputError(f"record is {record!r}: use {DISTRIBUTIONS}, or leave it out.")
        self.builder = builder
        seeds = np.arange(settings.seed, settings.seed + settings.seeds)
        self.keys = all_seed_keys(jnp.asarray(seeds))
        self.programs = Programs()
        self._open = functools.partial(
            driver_of, keys=self.keys, programs=self.programs, seeds=seeds.tolist(), settings=settings
        )
        self.driver = self._open(builder)
        try:
            choice = self._choose(method, settings, before or {})
            self.recorder = Recorder(self.driver, settings.seeds, record_over) if record else None
            self._prepare(method, settings, before or {}, choice)
        except InputError:
            self.driver.close()
            raise

    def _choose(self, method: Method, settings: Settings, before: Mapping[str, Any]) -> Choice | None:
        """Chooses what is open of how a vector enters, and opens the environments again if actions are repeated."""
        builder, seen = self.builder, self.driver.observations
        encoding = seen.encoding(builder.preferences)
        by_gradients = resolved(method, settings, encoding)[0].chosen_learner.uses_gradients
        if not isinstance(builder, VectorBuilder) or not isinstance(seen, Numbers) or by_gradients:
            return None
        name = type(method.learner).__name__ if method.learner else before.get("learner", {}).get("name")
        nearest = name == NearestNeighbors.__name__ if name or not isinstance(encoding, RandomFeatures) else None
        choice = choose_features(builder, settings.discount, before.get("environment"), nearest)
        self.builder = choice.builder
        if self.builder.repeats != builder.repeats:
            self.driver.close()
            self.driver = self._open(self.builder)
        return choice

    def _prepare(self, method: Method, settings: Settings, before: Mapping[str, Any], choice: Choice | None) -> None:
        """Fits the distribution, and tells the driver what to do."""
        driver, builder = self.driver, self.builder
        encoding = driver.observations.encoding(builder.preferences)
        self._asked_method, self.settings = resolved(method, settings, encoding, choice is not None and choice.nearest)
        self._encoding = self._asked_method.encoding(encoding)
        self.ledger = Ledger(self.settings, builder.success_return, self.programs, builder.repeats)
        measured = before.get("measured_returns")
        discount = settings.discount**builder.repeats
        self._fit(ReturnRange(*measured, known=False) if measured else returns_of(builder, driver, discount))
        self.notes = [
            *filter(None, [builder.note, *(choice.notes if choice else ())]),
            *sanity_warnings(self.method, self._encoding),
        ]
        guessed = not self.returns.known and self.returns.low == self.returns.high
        driver.use(self.loop, self._refit if guessed else None)
        require_memory(size_of(driver.template), "The networks and replay buffers of all seeds need", SMALLER)

    def _fit(self, returns: ReturnRange) -> None:
        """Fits the distribution to the range of returns, and makes the loop."""
        self.returns, seen, repeats = returns, self.driver.observations, self.builder.repeats
        most = None if self.settings.steps is None else math.ceil(self.settings.steps / repeats)
        discount = self.settings.discount**repeats  # of an action, as is the limit
        settings = dataclasses.replace(self.settings, steps=most, discount=discount)
        self.method = dataclasses.replace(self._asked_method, distribution=self._asked_method.distribution.fit(returns))
        learner = self.method.learns(self._encoding, settings)
        counted = (seen.count, self.driver.num_actions) if self.recorder and isinstance(seen, States) else None
        self.loop = Loop(learner, settings.steps_per_rollout, settings.episodes, settings.steps, counted)
        self._start_moments = self.programs.compiled_later(_start_moments, self.loop.agent.family)
        if self.recorder:
            self.recorder.use(self.loop, self.programs, repeats)

    def _refit(self, low: float, high: float) -> Loop:
        """Fits the distribution to the first rewards that are not 0, if a random policy saw none.

        The range was guessed to be 1. Only zeros were learned until then, and they are the same in every unit.
        """
        self._fit(ReturnRange(low, high, known=False))
        return self.loop

    def result(self, record: RunRecord, networks: Network, distributions: Distributions | None) -> TrainingResult:
        """What a user gets of the run."""
        driver = self.driver
        if isinstance(self.builder, GymnasiumBuilder):
            interface = self.builder.interface
        else:
            first = driver.first[0]
            read = functools.partial(_reshaped, shape=first.shape, dtype=first.dtype)
            interface = Interface(Reading(read, driver.observations, first.shape), driver.num_actions)
        return TrainingResult(record, self.loop.agent, networks, interface, driver.environments, distributions)

    def asked(self) -> dict[str, Any]:
        """The parts and settings of the run: the distribution as it is fitted, and the returns it was fitted to."""
        parts = {"environment": self.builder, **vars(self.method), "settings": self.settings}
        described = {name: part and describe(part) for name, part in parts.items()}
        described["settings"].pop("name")
        return {**described, "measured_returns": None if self.returns.known else [self.returns.low, self.returns.high]}

    def advance(self, state: State) -> tuple[State, StepRecord, Metrics]:
        """A chunk, which is recorded at the moments in it; it ends early where an environment fails."""
        driver, ledger, done = self.driver, self.ledger, list[tuple[StepRecord, Metrics]]()
        if self.recorder is None:
            return driver.advance(state, ledger.finished)
        iteration = ledger.iteration
        for count in self.recorder.pieces(iteration, driver.iterations):
            state, records, metrics = driver.advance(state, ledger.finished, count)
            done.append((records, metrics))
            if driver.failure:
                break
            iteration += count
            self.recorder.take(state, iteration)
        return state, *jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *done)

    def record(self, state: State) -> None:
        """Records the beginning or the end of the run, if anything is recorded."""
        if self.recorder:
            self.recorder.take(state, self.ledger.iteration, always=True)

    def at_the_end(self, networks: Network, episodes: list[int], steps: int) -> Distributions:
        """The distributions of a run that recorded none: one moment, after each seed's episodes and so many steps."""
        tables, first = self.driver.environments, self.driver.first
        fits = fits_table(tables)
        capture = Capture(self.loop, fits, all_states=fits, count=tables.num_states if fits else 1)
        found = jax.jit(jax.vmap(capture.of_network))((None, first), networks)
        when = {"step": np.full((1, len(episodes)), steps), "episode": np.array([episodes])}
        recorded = Distributions.of_arrays({name: np.asarray(array)[None] for name, array in found.items()} | when)
        return with_environment(recorded, tables, self.builder)

    def start_returns(self, state: State) -> Moments:
        """Mean and standard deviation of the return where each seed's run starts."""
        networks = self.driver.gather(state, lambda run: run.learned.network)
        mean, std = self._start_moments(networks, self.driver.first)
        return np.asarray(mean), np.asarray(std)

    def close(self) -> None:
        self.driver.close()


def returns_of(builder: EnvironmentBuilder, driver: Driver, discount: float) -> ReturnRange:
    """The range of returns over all seeds: given by the user, named by the environments, or measured."""
    if known := builder.known_returns:
        return known
    named = None if driver.environments is None else widest_range(driver.environments, discount)
    return named or measure_returns(builder, discount)


def driver_of(
    builder: EnvironmentBuilder, keys: SeedKeys, programs: Programs, seeds: list[int], settings: Settings
) -> Driver:
    """The driver of the environments of all seeds, compiled or stepped by Python."""
    if isinstance(builder, GymnasiumBuilder) and not builder.compiles:
        return HostDriver(builder, keys, programs, seeds, settings.num_envs)
    if settings.num_envs > 1:
        never = ", or use --env.compile never" if isinstance(builder, GymnasiumBuilder) else ""
        raise InputError(
            f"num_envs is {settings.num_envs}, but this environment is compiled, where more seeds side by side do the "
            f"same: leave it out{never}."
        )
    return CompiledDriver(builder, keys, programs)


def _start_moments(family: Any, network: Network, observation: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the return of the action with the highest mean."""
    z = network.returns(family, observation)
    mean, std = (jnp.mean(jax.vmap(jax.vmap(each))(z), axis=0) for each in (family.mean, family.std))
    return mean[jnp.argmax(mean)], std[jnp.argmax(mean)]


def _reshaped(observation: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.asarray(observation, dtype).reshape(shape)
