"""A run of all seeds at once: its parts, environments, driver and ledger, put together."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from uppertail.capacity import require_memory, size_of
from uppertail.environments import EnvironmentBuilder, HostBuilder, Interface, Reading, steps_in_python
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.records import describe
from uppertail.training import process
from uppertail.training.assembly import loop_of, world_of
from uppertail.training.drivers.base import Played, State
from uppertail.training.drivers.plane import Plane
from uppertail.training.drivers.recorder import MOMENTS, NUMBERS, Recorder, table_shape
from uppertail.training.ledger import Ledger, StartReturn
from uppertail.training.loop import Loop, RunState
from uppertail.training.method import Method, resolved
from uppertail.training.process import SMALLER, require_working_jax
from uppertail.training.seeds import all_seed_keys
from uppertail.training.settings import Settings
from uppertail.training.start import start_moments
from uppertail.training.traps import traps
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
            process.run_inline()  # too late once `require_working` has started JAX
        require_working_jax()
        require_record(record, record_over)
        self.builder = builder
        seeds = np.arange(settings.seed, settings.seed + settings.seeds)
        self.keys = all_seed_keys(jnp.asarray(seeds))
        self.world = world_of(builder, self.keys, seeds.tolist(), settings)
        try:
            self._table = table_shape(self.world.observations, self.world.num_actions) if record else None
            room = NUMBERS // (2 * MOMENTS * settings.seeds)
            self._plane = Plane.of(self.world.observations, record_over, room) if record else None
            self._encoding = self.world.observations.encoding(builder.preferences)
            self._asked_method, self.settings = resolved(method, settings, self._encoding)
            self._encoding = self._asked_method.chosen_learner.encoding(self._encoding)
            self.ledger = Ledger(self.settings, builder.success_return)
            self._fit(self._return_range((before or {}).get("measured_returns")))
            self.notes = [*filter(None, [builder.note]), *traps(self.method, self._encoding)]
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
        self.__dict__.pop("_start", None)  # it was compiled for the earlier distribution
        self.loop = loop_of(self.method, self._encoding, self.settings, self._table)
        return self.loop

    @property
    def interface(self) -> Interface:
        """How a program talks to what was learned."""
        if isinstance(self.builder, HostBuilder):
            return self.builder.interface
        first = self.world.start_observations()[0]
        read = functools.partial(_reshaped, shape=first.shape, dtype=first.dtype)
        return Interface(Reading(read, self.world.observations, first.shape), self.world.num_actions)

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

    def recorder(self) -> Recorder | None:
        """Records return distributions while the run trains, if this was asked for."""
        if not self.records:
            return None
        world = self.world
        starts = world.start_observations()
        return Recorder(
            self.loop,
            self.driver.groups,
            self.template,
            world.environments,
            starts,
            world.num_actions,
            self.ledger.seconds,
            self._plane,
        )

    @functools.cached_property
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

    def _return_range(self, measured: list[float] | None) -> ReturnRange:
        if measured:
            low, high = measured
            return ReturnRange(low, high, known=False)
        return self.world.return_range(self.settings.discount)

    def start_returns(self, state: State) -> StartReturn:
        """Mean and sd of the return where each seed's run starts."""
        networks = self.driver.gather(state, lambda run: run.learned.network)
        return self._start(networks)

    @functools.cached_property
    def _start(self) -> Callable[[Network], StartReturn]:
        return start_moments(
            self.loop.agent, self.template.learned.network, self.world.start_observations(), self.ledger.seconds
        )


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
