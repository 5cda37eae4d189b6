"""A run of all seeds at once: its parts, environments, driver and ledger, put together."""

import dataclasses
import functools
import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from uppertail.capacity import require_memory, size_of
from uppertail.compiling import jitted
from uppertail.defaults import Draft, Entry, Facts, Plan, decide, in_words, known_or_measured, plan_of
from uppertail.encodings import States
from uppertail.environments import (
    Actions,
    EnvironmentBuilder,
    GymnasiumBuilder,
    Interface,
    PackageBuilder,
    Reading,
    Say,
    widest_range,
)
from uppertail.errors import InputError
from uppertail.learners import LeastSquares, Metrics
from uppertail.learners.coordinates import Coordinates
from uppertail.learners.table import MEASURED_STD
from uppertail.learners.table_state import TableReturns
from uppertail.masks import ActionMask, masked
from uppertail.networks import Network
from uppertail.policies import Greedy
from uppertail.records import Distributions, RunRecord, describe
from uppertail.training.along import SHOWN, Along
from uppertail.training.compiled import CompiledDriver
from uppertail.training.driver import Driver, Played, State
from uppertail.training.host import HostDriver
from uppertail.training.ledger import Ledger, Moments
from uppertail.training.loop import Loop, SeedKeys, StepRecord, all_seed_keys
from uppertail.training.method import Method, asked_of_gradients, resolved, sanity_warnings
from uppertail.training.notes import (
    beyond_the_limit,
    beyond_the_peak,
    heavy_tails,
    much_in_common,
    outside_of_space,
    small_steps,
    too_many_pairs,
)
from uppertail.training.player import Player
from uppertail.training.process import SMALLER, require_device
from uppertail.training.programs import Programs, rows_of
from uppertail.training.recording import Capture, Recorder, fits_table, with_environment
from uppertail.training.results import TrainingResult
from uppertail.training.settings import Settings
from uppertail.types import ReturnRange

DISTRIBUTIONS = "distributions"  # the name of the only recording
UNIT = ReturnRange(0.0, 1.0, known=True)
GREEDY_EPISODES = 20  # of an evaluation
LONGEST_PATH = 1000  # actions of a greedy episode whose observations are shown
ROUNDED = 1e-3  # how far a learned mean may be beyond the range of returns, in ranges


class Run:
    """What one call of `train` needs; `drive` drives it. The caller locks the checkpoints' folder.

    The arguments are those of `train`; the distribution is fitted to the environments' returns here. `before` is the
    plan of the earlier run that this one continues, plays or repeats: nothing is chosen again. `notes` are sentences
    for the user; `say` is called with a line if something takes long.
    """

    def __init__(
        self,
        builder: EnvironmentBuilder,
        method: Method,
        settings: Settings,
        before: Plan | None = None,
        record: str | None = None,
        record_over: tuple[int, int] | None = None,
        say: Say = warnings.warn,
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
        self.met_chance = False  # `has_met_chance`, once the run is over
        self.best_mean = -math.inf  # `best_mean_of`, once the run is over
        self.greedy: Played | None = None  # the episodes of the last evaluation
        seeds = np.arange(settings.seed, settings.seed + settings.seeds)
        self.keys = all_seed_keys(jnp.asarray(seeds))
        self.programs = Programs()
        self._open = functools.partial(
            driver_of, keys=self.keys, programs=self.programs, seeds=seeds.tolist(), settings=settings
        )
        self.driver = self._open(builder)
        try:
            self._asked = {"env": builder, **method.parts, "settings": settings}
            facts, method, settings = self._choose(method, settings, before, say)
            self.driver.begin()
            left_out = self.builder.preferences.vectors.left_out or ()
            self.recorder = Recorder(self.driver, settings.seeds, record_over, left_out) if record else None
            self._prepare(method, settings, before, facts)
        except BaseException:  # Ctrl-C, too
            self.driver.close()
            raise

    def _choose(
        self, method: Method, settings: Settings, before: Plan | None, say: Say
    ) -> tuple[Facts, Method, Settings]:
        """Chooses what the user left open, and opens the environments again if actions are repeated."""
        builder, asked = self.builder, tuple(asked_of_gradients(method, settings))
        parts = method.distribution, method.policy, method.learner, asked, method.network, method.evidence
        draft = Draft(builder, self.driver.observations, *parts, settings.discount)
        by_table = draft.encoding.is_one_hot and not draft.likely_learner.uses_gradients
        is_read = before is not None and "env.encoding" in before
        hashed, numbers = (None, None) if is_read else (draft.of_hashes, draft.of_numbers)
        observed = draft.vectors is not None or by_table or hashed is not None or numbers is not None
        seen = builder if hashed is None else hashed.builder  # steps keep hashes of images, not images
        facts = Facts(seen, observed, self._known_returns, self.driver.table, say)
        draft, self._chosen, self.notes = decide(facts, draft, before)
        self.builder = draft.builder
        is_open = self.builder.compiles and self.builder.repeats == builder.repeats  # others open when they begin
        if not is_open or draft.space != self.driver.observations:
            self.driver.close()
            self.driver = self._open(self.builder)
        method = dataclasses.replace(method, policy=draft.policy, learner=draft.learner, evidence=draft.evidence)
        return facts.of(self.builder), method, dataclasses.replace(settings, discount=draft.discount)

    def _known_returns(self, discount: float) -> ReturnRange | None:
        """The range of returns over all seeds with a discount per step, if the user or the environments name it."""
        if (known := self.builder.known_returns) or self.driver.environments is None:
            return known
        return widest_range(self.driver.environments, discount**self.builder.repeats)

    def _prepare(self, method: Method, settings: Settings, before: Plan | None, facts: Facts) -> None:
        """Fits the distribution, and tells the driver what to do."""
        driver, builder = self.driver, self.builder
        encoding = driver.observations.encoding(builder.preferences)
        self._asked_method, self.settings = resolved(method, settings, encoding, before)
        self._encoding = self._asked_method.encoding(encoding)
        self.ledger = Ledger(self.settings, builder.criterion, self.programs, builder.repeats, builder.steps_of)
        if before is not None and before.returns is not None and builder.known_returns in (None, before.returns):
            self._chosen["returns"] = before.entries["returns"]
            self._fit(before.returns)
        else:
            returns = known_or_measured(facts, self.settings.discount_per_step, self._range_grows)
            source = "measured" if returns.is_measured else "given" if builder.known_returns else "default"
            self._chosen["returns"] = Entry(None, source, returns.reason)
            self._fit(returns.value)
        self.notes = [
            *filter(None, [builder.note, *self.notes]),
            *sanity_warnings(self.method, encoding, self.settings.discount_per_step),
            *self._of_what_is_chosen(),
            *([] if before is not None else self._of_what_was_seen(facts)),
        ]
        steps = facts.steps_so_far
        self.random = None if steps is None else steps.played(facts.builder.repeats)
        guessed = not self.returns.known and self.returns.low == self.returns.high
        driver.use(self.loop, self._refit if guessed else None)
        require_memory(size_of(driver.template), "The networks and replay buffers of all seeds need", SMALLER)

    @property
    def looks_far(self) -> str | None:
        """A sentence if the discount looks far beyond the time limit where there is chance."""
        return beyond_the_limit(self.builder, self.settings.discount_per_step, self.has_chance)

    def _of_what_is_chosen(self) -> list[str]:
        """Sentences for the user about settings that do not go together."""
        return [*filter(None, (self.looks_far, small_steps(self._asked_method.chosen_learner.uses_gradients)))]

    def _of_what_was_seen(self, facts: Facts) -> list[str]:
        """Sentences for the user about what steps of a random policy showed, as far as any were made."""
        by_gradients, seen = self._asked_method.chosen_learner.uses_gradients, self.driver.observations
        found = (
            None if by_gradients else too_many_pairs(facts, seen, self._listed, self.settings.steps),
            much_in_common(facts, by_gradients),
            outside_of_space(facts, seen),
            beyond_the_peak(np.asarray(self.driver.first), seen),
            heavy_tails(facts, self._encoding),
            facts.builder.merged,
        )
        return [*filter(None, found)]

    def _fit(self, returns: ReturnRange) -> None:
        """Fits the distribution to the range of returns, and makes the loop."""
        self.returns, seen, repeats = returns, self.driver.observations, self.builder.repeats
        most = None if self.settings.steps is None else math.ceil(self.settings.steps / repeats)
        discount = self.settings.discount_per_step**repeats  # of an action, as is the limit
        settings = dataclasses.replace(self.settings, steps=most, discount=discount)
        distribution = self._asked_method.distribution.fit(returns)
        if self.has_chance and not returns.known:
            distribution = distribution.starting_at(MEASURED_STD)
        self.method = dataclasses.replace(self._asked_method, distribution=distribution)
        bounds = None if returns.known or not self._range_grows else returns.bounds
        has_masks, sizes = self.driver.first_mask is not None, self._listed.sizes
        learner = self.method.learns(self._encoding, settings, bounds, has_masks, sizes)
        counted = (seen.count, self.driver.num_actions) if self.recorder and isinstance(seen, States) else None
        limits = settings.most_episodes, settings.steps
        self.loop = Loop(learner, settings.steps_per_rollout, *limits, counted, settings.evaluate_every is not None)
        self._start_moments = self.programs.compiled_later(_start_moments, self.loop.agent.family)
        self._best_mean = self.programs.compiled_later(_best_mean, self.loop.agent.family)
        if self.recorder:
            self.recorder.use(self.loop, self.programs, repeats)

    def _refit(self, low: float, high: float) -> Loop:
        """Fits the distribution to the first rewards that are not 0, if a random policy saw none."""
        self._fit(ReturnRange(low, high, known=False))
        return self.loop

    def _widened(self, state: State) -> State:
        """The state with the distribution fitted to a wider range, if a return was beyond the measured one.

        In a table a learned mean counts, too: it looks beyond the time limit, as the bound has to. A network learns
        means within the range, so there episodes that were cut short soon count as if they had gone on. It is asked
        where whole chunks end, so that a run that was stopped elsewhere goes on as if it had not been.
        """
        (low, high, known), ledger = self.returns, self.ledger
        whole = ledger.iteration % self.driver.iterations == 0
        if known or not whole or not self.loop.learner.can_refit or ledger.finished.any():
            return state
        looks_past = self.loop.learner.asks_cut_soon
        least, most = (ledger.going_on if looks_past else ledger.seen).tolist()
        if (best := self.best_mean_of(state)) > high + ROUNDED * (high - low):
            most = max(most, best)
        if low <= least and most <= high:
            return state
        least, most = min(low, least), max(high, most)
        span = 0.0 if self._range_grows else most - least
        self._fit(ReturnRange(least - span if least < low else low, most + span if most > high else high, known=False))
        return self.driver.refit(state, self.loop)

    def best_mean_of(self, state: State) -> float:
        """The highest mean of what was tried in a table; minus infinity: there is none, or optimism is in its mean."""
        if not isinstance(self._asked_method.chosen_learner, LeastSquares) or not self.method.distribution.has_spread:
            return -math.inf
        networks = self.driver.gather(state, lambda run: run.learned.network)
        return float(self._best_mean(networks).max())

    @property
    def has_chance(self) -> bool:
        """Whether a table is learned in which equal states and actions may lead to different outcomes."""
        learner = self._asked_method.chosen_learner
        return isinstance(learner, LeastSquares) and bool(learner.stochastic)

    @property
    def _range_grows(self) -> bool:
        """Whether the range of returns is what was seen so far, because what was learned can be kept as it grows."""
        method = self._asked_method
        fitted = dataclasses.replace(method, distribution=method.distribution.fit(UNIT))
        return method.chosen_learner.uses_gradients and fitted.learns(self._encoding, self.settings).can_refit

    def plays(self, learned: "Run") -> bool:
        """Whether what another run learned fits the observations and actions here; if so, it is played from now on.

        A network fits the same numbers. Of states, there may be fewer: each is taken for the one of the same number.
        """
        seen = learned.driver.observations
        if isinstance(seen, States):
            here, there = ((run.driver.first.shape, run.driver.num_actions) for run in (self, learned))
            fits = here == there and seen.has(self.driver.observations)
        else:
            of_each = [(run.driver.first, run.driver.template.network_at_limit) for run in (self, learned)]
            here, there = ([(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(each)] for each in of_each)
            fits = here == there
        if fits:
            self.driver.use(learned.loop, None)
        return fits

    def draws_anew(self, learned: "Run") -> bool:
        """Whether environments are others than with the seed of another run, as far as arrays or settings say so."""
        if self.settings.seed == learned.settings.seed:
            return False
        if getattr(self.builder, "reset_seed", None) == "run":
            return True
        if self.driver.environments is None:
            return False
        others = jitted(jax.vmap(self.builder.build))(learned.keys.environment)
        pairs = zip(*map(jax.tree.leaves, (self.driver.environments, others)), strict=True)
        return not all(
            np.array_equal(*pair) for pair in pairs if not jnp.issubdtype(pair[0].dtype, jax.dtypes.prng_key)
        )

    def result(self, record: RunRecord, networks: Network, distributions: Distributions | None) -> TrainingResult:
        """What a user gets of the run."""
        driver = self.driver
        if isinstance(self.builder, GymnasiumBuilder):
            interface = self.builder.interface
        else:
            shape = driver.first.shape[1:]
            read = functools.partial(_reshaped, shape=shape, dtype=driver.first.dtype)
            interface = Interface(Reading(read, driver.observations, shape), self._listed)
        return TrainingResult(
            record, self.loop.agent, networks, interface, driver.environments, distributions, self.opening
        )

    @property
    def _listed(self) -> Actions:
        """How actions are numbered."""
        return self.builder.actions if isinstance(self.builder, PackageBuilder) else Actions(self.driver.num_actions)

    def asked(self) -> dict[str, Any]:
        """The parts and settings of the run: the distribution as it is fitted, and the returns it was fitted to."""
        parts = {"environment": self.builder, **self.method.parts, "settings": self.settings}
        described = {name: part and describe(part) for name, part in parts.items()}
        described["settings"].pop("name")
        measured = None if self.returns.known else [self.returns.low, self.returns.high]
        return {**described, "measured_returns": measured, "plan": self.plan.chosen()}

    @property
    def plan(self) -> Plan:
        """Every setting of the run, where it came from, and why."""
        filled = {"env": self.builder, **self.method.parts, "settings": self.settings}
        returns = self._chosen["returns"]._replace(value=[self.returns.low, self.returns.high])
        return plan_of(self._asked, filled, {**self._chosen, "returns": returns}, self.method.open_settings)

    @property
    def opening(self) -> str:
        """What was chosen, in a line."""
        has_masks = self.loop.agent.has_masks
        return in_words(self.plan, self.driver.observations, self._listed, self.builder.criterion, has_masks)

    def advance(self, state: State) -> tuple[State, StepRecord, Metrics]:
        """A chunk, which is recorded at the moments in it; it ends early where an environment fails."""
        state = self._widened(state)
        driver, ledger, done = self.driver, self.ledger, list[tuple[StepRecord, Metrics]]()
        iteration = ledger.iteration
        chunk = self.loop.chunk(driver.iterations, iteration)
        if self.recorder is None:
            return driver.advance(state, ledger.finished, chunk)
        for count in self.recorder.pieces(iteration, chunk):
            state, records, metrics = driver.advance(state, ledger.finished, count)
            done.append((records, metrics))
            if records.ended.shape[1] < count:  # a failure, or the user stops it
                break
            iteration += count
            self.recorder.take(state, iteration)
        records, metrics = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *done)
        return state, records, metrics

    @property
    def is_evaluated(self) -> bool:
        """Whether an evaluation is due after a chunk, whole or cut short by a limit."""
        every, ledger = self.settings.evaluate_every, self.ledger
        begun = (ledger.iteration - 1) // self.driver.iterations * self.driver.iterations
        steps_before = begun * ledger.repeats * self.settings.steps_per_rollout
        return every is not None and ledger.step // every > steps_before // every and ledger.diverged is None

    def evaluated(self, state: State) -> tuple[State, Float[np.ndarray, " seeds"]]:
        """The state with the best networks after greedy episodes, and the mean return of these for each seed.

        Where a chunk was cut short the state is left as it is: a run that goes on from there is evaluated at its end.
        """
        returns = self.greedy_returns(self.networks(state))
        is_whole = self.ledger.iteration % self.driver.iterations == 0
        return self.driver.compared(state, returns) if is_whole else state, returns

    def greedy_returns(self, networks: Network) -> Float[np.ndarray, " seeds"]:
        """The mean return of greedy episodes of each seed; InputError if an environment fails, or as of `play`."""
        self.greedy = self.driver.play(networks, Greedy(), GREEDY_EPISODES)
        return self.greedy.returns.mean(axis=1)

    def networks(self, state: State) -> Network:
        """What all seeds have learned, at the limits of those that have reached theirs."""
        return self.driver.gather(state, functools.partial(self.programs.call, Loop.result, self.loop))

    def has_met_chance(self, state: State) -> bool:
        """Whether a pair of a table led to different outcomes, where a random policy saw no chance."""
        is_table = isinstance(self._asked_method.chosen_learner, LeastSquares)
        if not is_table or self.has_chance or not self.plan.is_measured("learner.stochastic"):
            return False
        outcomes = self.driver.gather(state, lambda run: run.learned.memory.outcomes)
        return outcomes.differ(ROUNDED * (self.returns.high - self.returns.low))

    def record(self, state: State) -> None:
        """Records the beginning or the end of the run, if anything is recorded."""
        if self.recorder:
            self.recorder.take(state, self.ledger.iteration, always=True)

    def at_the_end(self, networks: Network, episodes: list[int], steps: int) -> Distributions:
        """The distributions of a run that recorded none: one moment, after each seed's episodes and so many steps."""
        tables, first = self.driver.environments, self.driver.first
        fits = fits_table(tables)
        capture = Capture(self.loop, fits, all_states=fits, count=tables.num_states if fits else 1)
        found = jitted(jax.vmap(capture.of_network))((None, first), networks)
        when = {"step": np.full((1, len(episodes)), steps), "episode": np.array([episodes])}
        recorded = Distributions.of_arrays({name: np.asarray(array)[None] for name, array in found.items()} | when)
        return with_environment(recorded, tables, self.builder)

    def start_returns(self, state: State) -> Moments:
        """Mean and standard deviation of the return where each seed's run starts."""
        networks = self.driver.gather(state, lambda run: run.learned.network)
        arguments = (networks, self.driver.first, self.driver.first_mask)
        mean, std = self._start_moments(*arguments)
        return np.asarray(mean), np.asarray(std)

    def recorded(self, networks: Network) -> Distributions | None:
        """What was recorded, with the greedy path of the networks that are kept."""
        if self.recorder is None:
            return None
        return self.recorder.distributions(self.builder, self.ledger.env_steps, networks, self._along(networks))

    def _along(self, networks: Network) -> Along | None:
        """Observations of greedy episodes of each seed; None where no single environment is stepped in Python."""
        builder, agent = self.builder, self.loop.agent
        if not isinstance(builder, GymnasiumBuilder) or builder.compiles or not builder.inspected.is_single:
            return None
        programs = dict[Any, Any]()  # which all seeds share
        players = [
            Player(agent, rows_of(networks, row), builder.interface, programs) for row in range(self.settings.seeds)
        ]
        try:
            episodes = [
                builder.seen_along(
                    self.settings.seed + row, functools.partial(self._played_on, player), SHOWN, LONGEST_PATH
                )
                for row, player in enumerate(players)
            ]
            return Along.of(episodes, builder.interface.reading)
        except Exception:  # of the user's environment, which the run's record tells of, or for want of time
            return None

    def _played_on(self, player: Player, observation: Any, mask: Any) -> int:
        """The greedy action; OutOfTimeError once a signal came a while ago."""
        self.driver.stop.require_time()
        return int(player.greedy(observation, mask))

    def close(self) -> None:
        self.driver.close()


def driver_of(
    builder: EnvironmentBuilder, keys: SeedKeys, programs: Programs, seeds: list[int], settings: Settings
) -> Driver:
    """The driver of the environments of all seeds, compiled or stepped by Python."""
    if isinstance(builder, GymnasiumBuilder) and not builder.compiles:
        return HostDriver(builder, keys, programs, seeds, settings.num_envs, settings.evaluate_every is not None)
    if settings.num_envs > 1:
        never = ", or use --env.compile never" if isinstance(builder, GymnasiumBuilder) else ""
        raise InputError(
            f"num_envs is {settings.num_envs}, but this environment is compiled, where more seeds side by side do the "
            f"same: leave it out{never}."
        )
    return CompiledDriver(builder, keys, programs)


def _start_moments(family: Any, network: Network, observation: Array, mask: ActionMask) -> tuple[Array, Array]:
    """Mean and standard deviation of the return of the allowed action with the highest mean."""
    z = network.returns(family, observation)
    mean, std = (jnp.mean(jax.vmap(jax.vmap(each))(z), axis=0) for each in (family.mean, family.std))
    best = jnp.argmax(masked(mean, mask))
    return mean[best], std[best]


def _best_mean(family: Any, network: Network) -> Array:
    """The highest mean return of any state and action of a table that was tried."""
    assert isinstance(network, TableReturns)
    mean = jax.vmap(jax.vmap(Coordinates(family).mean))(network.values)
    return jnp.max(jnp.where(network.counts > 0, mean, -jnp.inf))


def _reshaped(observation: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.asarray(observation, dtype).reshape(shape)
