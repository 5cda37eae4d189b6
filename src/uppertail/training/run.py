"""A run of all seeds at once: its parts, environments, driver and ledger, put together."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from uppertail.capacity import require_memory, size_of
from uppertail.environments import EnvironmentBuilder, FiniteMDP, HostBuilder, Interface, Reading, steps_in_python
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.records import describe
from uppertail.training.assembly import driver_of, loop_of
from uppertail.training.drivers.base import State
from uppertail.training.drivers.plane import Plane
from uppertail.training.drivers.recorder import MOMENTS, NUMBERS, Capture, Recorder, table_shape
from uppertail.training.ledger import Ledger, StartReturn
from uppertail.training.loop import Loop, RunState
from uppertail.training.method import Method, resolved, sanity_warnings
from uppertail.training.process import SMALLER, require_working_jax, run_inline
from uppertail.training.seeds import all_seed_keys
from uppertail.training.settings import Settings
from uppertail.types import ReturnRange

DISTRIBUTIONS = "distributions"
"""The name of the only recording."""


class Run:
    """What one call of `train` needs; `drive` drives it. The caller locks the checkpoints' folder.

    Args:
        builder: builds the environments.
        method: the parts that learn and explore; the distribution is fitted to the environments' returns here.
        settings: how long, on how much data, with how many seeds.
        before: the settings of the earlier run that this one continues or plays; its measured returns are used again.
        record: distributions, to record return distributions while it trains; None: nothing.
        record_over: two numbers of a vector over which their width is recorded; None: the first two.

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
        record_over: tuple[int, int] | None = None,
    ) -> None:
        if steps_in_python(builder):
            run_inline()  # too late once `require_working` has started JAX
        require_working_jax()
        require_record(record, record_over)
        self.builder = builder
        seeds = np.arange(settings.seed, settings.seed + settings.seeds)
        self.keys = all_seed_keys(jnp.asarray(seeds))
        self.driver = driver_of(builder, self.keys, seeds.tolist(), settings)
        try:
            self._prepare(method, settings, (before or {}).get("measured_returns"), record is not None, record_over)
        except InputError:
            self.driver.close()
            raise

    def _prepare(
        self,
        method: Method,
        settings: Settings,
        measured: list[float] | None,
        records: bool,
        over: tuple[int, int] | None,
    ) -> None:
        """Chooses what is open, fits the distribution, and hands the driver what to do.

        Raises:
            InputError: an argument cannot be met.
        """
        driver, pairs = self.driver, settings.seeds * self.driver.num_actions
        self._table = table_shape(driver.observations, driver.num_actions) if records else None
        plane = Plane.of(driver.observations, over, NUMBERS // (2 * MOMENTS * settings.seeds)) if records else None
        encoding = driver.observations.encoding(self.builder.preferences)
        self._asked_method, self.settings = resolved(method, settings, encoding)
        self._encoding = self._asked_method.chosen_learner.encoding(encoding)
        self.ledger, self.recorder = Ledger(self.settings, self.builder.success_return), None
        self._fit(ReturnRange(*measured, known=False) if measured else driver.return_range(self.settings.discount))
        self.notes = [*filter(None, [self.builder.note]), *sanity_warnings(self.method, self._encoding)]
        guessed = not self.returns.known and self.returns.low == self.returns.high
        driver.use(self.loop, self.ledger.seconds, self._refit if guessed else None)
        require_memory(size_of(self.template), "The networks and replay buffers of all seeds need", SMALLER)
        if records:
            tables, first = driver.environments, driver.start_observations()
            self.recorder = Recorder(driver.groups, tables, first, self.ledger.seconds)
            self._capture = lambda: Capture.of(self.loop, isinstance(tables, FiniteMDP), pairs, plane)

    def _fit(self, returns: ReturnRange) -> None:
        """Fits the distribution to the range of returns, and makes the loop.

        Raises:
            InputError: the distribution cannot represent these returns.
        """
        self.returns, self.method = returns, self._asked_method.fitted(returns)
        self.loop = loop_of(self.method, self._encoding, self.settings, self._table)
        self._start: Callable[..., Any] | None = None  # it is compiled for a distribution

    def _refit(self, low: float, high: float) -> Loop:
        """Fits the distribution to the first rewards that are not 0.

        If a random policy saw no other, the range was guessed to be 1. Only zeros were learned until then, and they are
        the same in every unit.
        """
        self._fit(ReturnRange(low, high, known=False))
        self.compile_recording()
        return self.loop

    def compile_recording(self) -> None:
        """Compiles what is recorded, if anything is."""
        if self.recorder:
            self.recorder.use(self._capture(), self.template)

    @property
    def interface(self) -> Interface:
        """How a program talks to what was learned."""
        if isinstance(self.builder, HostBuilder):
            return self.builder.interface
        first = self.driver.start_observations()[0]
        read = functools.partial(_reshaped, shape=first.shape, dtype=first.dtype)
        return Interface(Reading(read, self.driver.observations, first.shape), self.driver.num_actions)

    def close(self) -> None:
        """Ends threads, and frees the resources of the environments."""
        self.driver.close()

    @property
    def template(self) -> RunState:
        """Shapes and types of the state of all seeds."""
        return self.driver.template()

    @property
    def parts(self) -> dict[str, Any]:
        """The parts of the run and its settings, by the names that `asked` has."""
        return {"environment": self.builder, **self.method.parts, "settings": self.settings}

    def asked(self) -> dict[str, Any]:
        """The parts and settings of the run: the distribution as it is fitted, and the returns it was fitted to."""
        described_parts = {name: part and describe(part) for name, part in self.parts.items()}
        described_parts["settings"].pop("name")
        measured = None if self.returns.known else [self.returns.low, self.returns.high]
        return {**described_parts, "measured_returns": measured}

    def start_returns(self, state: State) -> StartReturn:
        """Mean and standard deviation of the return where each seed's run starts."""
        networks = self.driver.gather(state, lambda run: run.learned.network)
        arguments = networks, self.driver.start_observations()
        if self._start is None:
            self._start = self.ledger.seconds.compiled(_start_moments, self.loop.agent.family, *arguments)
        return StartReturn(*map(np.asarray, self._start(*arguments)))


def _start_moments(family: Any, network: Network, observation: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the return of the action with the highest mean."""
    z = network.returns(family, observation)
    mean, std = (jnp.mean(jax.vmap(jax.vmap(each))(z), axis=0) for each in (family.mean, family.std))
    return mean[jnp.argmax(mean)], std[jnp.argmax(mean)]


def _reshaped(observation: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.asarray(observation, dtype).reshape(shape)


def require_record(record: str | None, over: tuple[int, int] | None) -> None:
    """Refuses an unknown recording, and numbers without one.

    Raises:
        InputError: there is no such recording.
    """
    if over is not None and record is None:
        raise InputError(f"record_over is {list(over)}, but nothing is recorded: use --record {DISTRIBUTIONS}, too.")
    if record not in (None, DISTRIBUTIONS):
        raise InputError(f"record is {record!r}: use {DISTRIBUTIONS}, or leave it out.")
