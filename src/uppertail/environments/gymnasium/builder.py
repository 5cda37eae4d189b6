"""What the builders of Gymnasium environments share: settings, and facts that are read off an environment once."""

import abc
import contextlib
import copy
import dataclasses
import functools
import itertools
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Self

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv
from jaxtyping import Bool, Int, PRNGKeyArray

from uppertail.encodings import TEXT_PLACES, HashedStates, Numbers, ObservationSpace, Preferences, hash_of, hashes_of
from uppertail.environments.actions import Actions
from uppertail.environments.base import EVALUATION
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium.action_masks import mask_of
from uppertail.environments.gymnasium.adapter import Adapter, SideBySide, adapt_apart, close_quietly
from uppertail.environments.gymnasium.inspection import Inspected, inspect_environment
from uppertail.environments.gymnasium.observed import (
    TRIED_EPISODES,
    TRIED_STEPS,
    Observed,
    observed_as_hashes,
    observed_by_space,
    random_walk,
)
from uppertail.environments.gymnasium.vector import HostEnvironments, episode_seed, of_processes
from uppertail.environments.gymnasium.wrapping import Made, actions_of, make_wrapped, plain
from uppertail.environments.interface import Interface
from uppertail.environments.packages import PackageBuilder, call, described
from uppertail.environments.spaces import Reading, Watched
from uppertail.errors import InputError

Seen = tuple[Any, Bool[np.ndarray, " actions"] | None]
"""An observation, and which actions are allowed there; None: all are."""

SHOWN = 4  # numbers that a note names
THRESHOLD_EPISODES = 100  # over which Gymnasium's `reward_threshold` is a mean
NOT_INSPECTED = "left_out", "features", "action_repeat", "ends_at_limit"  # settings of what is done with observations
AT_ONCE = (
    " It was made before: if only one can be open at a time, use --seeds 1 and --num_envs 1, and no --evaluate_every."
)
MAKING_SECONDS = 2.0  # after which no more environments are made that only save time
MOST_STACKED = 1_000  # more observations would leave no memory for anything else


MERGED = (
    "Different observations of {} became the same in 32 bits: let it show smaller numbers, such as differences from a "
    "start, or use --env.encoding hashed if observations repeat."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GymnasiumBuilder(PackageBuilder):
    """Opens environments of Gymnasium, which Python steps; those that show a table can also be compiled.

    Args:
        compile: auto (an environment that exposes its transition table is compiled) or never.
        encoding: how a state enters the network, where observations are Discrete; numbers: each integer of an
            observation is a number, by default where outcomes are left to chance and near integers are alike; hashed:
            the whole observation as a one-hot, for observations that repeat exactly; by default for images that do.
        background: with hashed, pixels of an image that do not count, for example '[[0, 0, 0], [2, 5, 0]]': images that
            show the same otherwise are one state; null: every pixel counts.
        vectorization: with --num_envs, whether environments are stepped in this process (sync) or each in its own.
        wrappers: wrappers around the environment, the innermost first, for example
            '[minigrid.wrappers.FullyObsWrapper]'; with arguments: '[{class_path: PATH, init_args: {name: value}}]'.
        stack: how many of the last observations are shown together, with the actions between them, oldest first; or
            first: the first observation of the episode, and the last one; null: the last one alone, unless rewards of a
            random policy depend on earlier ones.
        levels: into how many levels each number of an action is cut, both ends among them, if actions are a Box with
            bounds: an action is then one of all combinations, of which there may be 1,024; null: 3.
        action_masks: whether only actions are taken that an environment allows, where it says so by
            `info["action_mask"]`, its method `action_masks` or the part `action_mask` of a Dict observation.
        action_names: what pictures call the actions, in order, for example '[up, down]'; null: as the environment's
            `metadata["action_names"]` says, or its documentation.
        ends_at_limit: whether a truncated episode is learned as one that terminated, since its time limit is part of
            the task; false: learning looks beyond it; null: if a random policy was paid far more there than elsewhere,
            or observations show when time runs out.
        origins: what is subtracted from numbers of observations before 32 bits would lose their digits, as places and
            numbers, for example '[[0, 1e9]]'; null: what keeps most of the numbers apart that random episodes show.
        constant_texts: the names of texts that are left out of observations; null: those that never change in random
            episodes.
        reset_options: options of every reset, as the environment's `reset` takes them, for example '{low: -0.1}'.
    """

    compile: Literal["auto", "never"] = "auto"
    encoding: Literal["one_hot", "scalar", "thermometer", "numbers", "hashed"] = "one_hot"
    background: list[list[float]] | None = None
    vectorization: Literal["sync", "async"] = "sync"
    wrappers: list[str | dict[str, Any] | type[Any]] | None = None
    stack: int | Literal["first"] | None = None
    levels: int | None = None
    action_masks: bool = True
    action_names: list[str] | None = None
    ends_at_limit: bool | None = None
    origins: tuple[tuple[int, float], ...] | None = None
    constant_texts: tuple[str, ...] | None = None
    reset_options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.wrappers, str):
            raise InputError(f"wrappers is {self.wrappers!r}: give a list, such as [{repr(self.wrappers)[1:-1]}].")
        if isinstance(self.wrappers, list | tuple | np.ndarray):  # written down as a file holds them
            object.__setattr__(self, "wrappers", [*map(plain, self.wrappers)])
        super().__post_init__()
        if self.background is not None and self.encoding != "hashed":
            raise InputError("background is for hashed observations: add encoding hashed, or leave it out.")
        if self.background is not None and len({len(pixel) for pixel in self.background}) != 1:
            raise InputError(f"background is {self.background}: give pixels of equally many channels, one or more.")
        if self.stack not in (None, "first") and not 1 <= self.stack <= MOST_STACKED:
            raise InputError(
                f"stack is {self.stack}: use 1, the last observation alone, to {MOST_STACKED:,}; or first, which "
                "adds the first of the episode."
            )

    @abc.abstractmethod
    def bare_maker(self) -> Callable[[], Made]:
        """A function that makes the environment anew, without the wrappers that are asked for."""

    def explain(self, error: BaseException) -> str | None:
        """Why the environment cannot be made, where more is known than the exception says."""

    def maker(self) -> Callable[[], Made]:
        """A function that makes the environment anew, in its wrappers."""
        settings = self.wrappers or [], self.stack or 1, self.levels, self.action_masks, self.reset_options
        return functools.partial(make_wrapped, self.bare_maker(), *settings)

    def make(self) -> Made:
        """Makes the environment anew; InputError if it cannot be made."""
        try:
            made = self.maker()()
        except (InputError, KeyboardInterrupt):
            raise
        except BaseException as error:  # the environment's own code may raise anything
            words = self.explain(error) or f"{self.label} cannot be made ({described(error)})."
            raise InputError(words + AT_ONCE * ("inspected" in vars(self))) from error
        if not isinstance(made, gymnasium.Env | VectorEnv):
            raise InputError(f"{self.label} gives {made!r}: give a function that makes a Gymnasium environment.")
        return made

    def walk(self, count: int) -> list[Any] | None:
        """So many observations of a random policy, as the environment gives them; None for a vector environment."""
        env = self.make()
        if isinstance(env, VectorEnv):
            return None
        try:
            return call(
                lambda: [*itertools.islice(random_walk(env), count)], lambda: f"{self.label}, in a random episode,"
            )
        finally:
            close_quietly(env)

    def seen_along(self, seed: int, choose: Callable[[Any, Any], int], least: int, most: int) -> list[Seen]:
        """The first observations and masks of the first episodes of this run's evaluation.

        Args:
            seed: of the run.
            choose: gives the number of an action, for an observation and the mask of allowed actions.
            least: how many observations; where the episode has fewer, those of the next ones follow.
            most: how many observations, at most.
        """
        found, fixed = list[Seen](), self.seed_of_resets(EVALUATION + seed)
        with contextlib.closing(self.make()) as env:
            for number in range(least):
                if len(found) < least:
                    begin = episode_seed(EVALUATION + seed, 0, number, fixed)
                    found += itertools.islice(self._episode(env, begin, choose), most - len(found))
        return found

    def _episode(self, env: Any, seed: int | None, choose: Callable[[Any, Any], int]) -> Iterator[Seen]:
        """The observations and masks of an episode in which actions are chosen so; the last one is not among them."""
        (observation, info), over = env.reset(seed=seed), False
        while not over:
            mask = mask_of(info, self.num_actions)
            yield copy.deepcopy(observation), mask  # many environments reuse their arrays
            action = choose(observation, mask) + int(env.action_space.start)
            for _ in range(self.repeats):
                observation, _, *ends, info = env.step(action)
                if over := any(ends):
                    break

    def seed_of_resets(self, seed: int) -> int | None:
        """The seed that every episode of this run, or of its evaluation, is reset with; None: each has its own."""
        return seed % EVALUATION if self.reset_seed == "run" else self.reset_seed

    @property
    def success_return(self) -> float:
        threshold = self._threshold
        return super().success_return if threshold is None else threshold

    @property
    def success_episodes(self) -> int:
        return super().success_episodes if self._threshold is None else THRESHOLD_EPISODES

    @property
    def known_names(self) -> dict[str, tuple[str, ...]]:
        """The names that documentation gives where the environment gives none itself."""
        return super().names

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        own = tuple(self.action_names or self.inspected.action_names)
        return {**self.known_names, **({"actions": own} if len(own) == self.interface.actions.size else {})}

    @property
    def _threshold(self) -> float | None:
        """The return that solves the environment by its own word; None: it says nothing, or the user says another."""
        return None if self.success is not None else self.inspected.reward_threshold

    @functools.cached_property
    def inspected(self) -> Inspected:
        """Facts that are read off an environment, which is made only for this."""
        env = self.make()
        try:
            seen = inspect_environment(self.label, env, self.levels, functools.partial(self._observed, env))
        finally:
            close_quietly(env)
        if self.action_names is not None and len({*self.action_names}) < len(self.action_names):
            raise InputError(f"action_names is {self.action_names}: give each action a name of its own.")
        if self.action_names is not None and len(self.action_names) != (count := seen.interface.actions.size):
            raise InputError(
                f"action_names has {len(self.action_names)} names, but there are {count} actions: name each of them."
            )
        return seen

    def _observed(self, env: Made, space: Any) -> Observed:
        """How observations of a space are read."""
        if self.encoding != "hashed":
            states = self.encoding == "one_hot" and not self._as_numbers
            given = self.origins, self.constant_texts, self.encoding == "numbers"
            return observed_by_space(self.label, env, space, states, *given)
        if given := "origins" if self.origins else "constant_texts" if self.constant_texts else "":
            raise InputError(f"{given} is given, but hashed observations are taken whole: leave one of the two out.")
        background = tuple(map(tuple, self.background or []))
        read = functools.partial(hashes_of, background=np.array(background)) if background else hash_of
        return observed_as_hashes(env, space, Reading(read, HashedStates(self.hash_size, background)))

    @property
    def _as_numbers(self) -> bool:
        """Whether observations have to stay numbers, since something is said of each."""
        return self.features != "auto" or bool(self.left_out) or self.radius is not None

    @property
    def table_error(self) -> str | None:
        """Why the table that the environment shows cannot replace it."""
        seen = self.inspected
        if seen.table is not None and self.reset_seed is not None:
            return "its episodes begin as reset_seed says"
        if seen.table is not None and self.encoding == "hashed":
            return "its observations are hashed"
        if seen.table is not None and self.repeats > 1:
            return "its actions are repeated"
        return seen.table_error

    @property
    def compiles(self) -> bool:
        return self.compile == "auto" and self.inspected.table is not None and self.table_error is None

    @property
    def note(self) -> str | None:
        lines: list[str] = []
        if self.compile == "auto" and self.table_error:
            lines.append(f"{self.label} is stepped in Python: {self.table_error}.")
        lines += (
            f"The text {name!r} of {self.label} is left out: it never changed in {TRIED_EPISODES} random episodes of "
            f"at most {TRIED_STEPS} steps (--env.constant_texts '[]' keeps it)."
            for name in self.inspected.observed.left_out
        )
        lines += (
            f"Two texts {repr(name) + ' ' if name else ''}of {self.label} share one of {TEXT_PLACES} places, so they "
            "look the same: if observations repeat, --env.encoding hashed tells them apart."
            for name in self.inspected.observed.sharing
        )
        lines += (
            f"{name} scales by what each copy of {self.label} saw itself, so an evaluation has other numbers: leave it "
            "out, since numbers and returns are scaled here, or scale by fixed numbers (--env.wrappers, "
            "gymnasium.wrappers.TransformObservation)."
            for name in self.inspected.normalizing
        )
        if origins := self.interface.reading.origins:
            shown = ", ".join(f"{number:.17g} from number {place}" for place, number in origins[:SHOWN])
            more = ", ..." * (len(origins) > SHOWN)
            lines.append(
                "Far from 0, 32 bits lose digits, and a network hardly sees what differs, so these are subtracted from "
                f"observations first: {shown}{more}."
            )
        named, count = len(self.inspected.action_names), self.interface.actions.size
        if self.action_names is None and named not in (0, count):
            lines.append(
                f'metadata["action_names"] of {self.label} is not used: there are {count} actions, and it names '
                f"{named}. Name them by --env.action_names."
            )
        if self.inspected.observed.merges:
            lines.append(MERGED.format(self.label))
        return " ".join(lines) or None

    @property
    def merged(self) -> str | None:
        read = self.interface.reading.array
        later = isinstance(read, Watched) and read.merged and not self.inspected.observed.merges
        return MERGED.format(self.label) if later else None

    @property
    def preferences(self) -> Preferences:
        states = "one_hot" if self.encoding in ("hashed", "numbers") else self.encoding
        return dataclasses.replace(super().preferences, states=states)

    @property
    def interface(self) -> Interface:
        """How observations are read, and actions numbered."""
        return self.inspected.interface

    @property
    def as_read(self) -> dict[str, Any]:
        """The settings that say what is subtracted from observations, and which texts are left out."""
        return {"origins": self.interface.reading.origins, "constant_texts": self.inspected.observed.left_out}

    def with_settings(self, **settings: Any) -> Self:
        changed = super().with_settings(**settings)
        if "inspected" in vars(self) and self._is_seen_as(changed, settings):
            vars(changed)["inspected"] = self.inspected
        return changed

    def _is_seen_as(self, changed: Self, settings: dict[str, Any]) -> bool:
        """Whether an inspection would find with the changed settings what it found, so that none is needed."""
        if self._as_numbers != changed._as_numbers and (self._as_numbers or not isinstance(self.observations, Numbers)):
            return False  # several integers may have become one state
        found = self.as_read
        return all(
            name in NOT_INSPECTED or (name in found and value == found[name]) for name, value in settings.items()
        )

    @property
    def observations(self) -> ObservationSpace:
        """The space of its observations."""
        return self.interface.reading.space

    @property
    def actions(self) -> Actions:
        return self.interface.actions

    @property
    def num_actions(self) -> int:
        """Number of discrete actions."""
        return self.actions.size

    @property
    def can_repeat(self) -> bool:
        return self.inspected.is_single

    @property
    def rows(self) -> int:
        return self.inspected.rows

    @property
    def time_limit(self) -> int | None:
        """Actions after which an episode is truncated; None: not known."""
        limit = self.inspected.time_limit
        return None if limit is None else math.ceil(limit / self.repeats)

    def steps_of(self, lengths: Int[np.ndarray, "*episodes"]) -> Int[np.ndarray, "*episodes"]:
        """The lengths as they are: Python counts steps, and what is compiled takes each action once."""
        return np.asarray(lengths)

    @property
    def may_go_on(self) -> bool:
        """Whether nothing is known that would truncate an episode."""
        return self.time_limit is None and self.inspected.own_limit is None

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        """The compiled environment; InputError if it cannot be compiled."""
        if self.inspected.table is None or self.table_error:
            why = self.table_error or "it shows no table of its transitions (`unwrapped.P`)"
            raise InputError(f"{self.label} cannot be compiled: {why}.")
        table = self.inspected.table
        return table if self.action_masks else dataclasses.replace(table, action_mask=None)

    def open(self, seed: int, num_envs: int, time_limit: int | None = None) -> HostEnvironments:
        """The environments of one seed, from which the seeds of their episodes come; InputError if it cannot be done.

        `time_limit`: steps after which episodes are truncated where they have no limit of their own.
        """
        with self._making() as make:
            made = [make()]
            if isinstance(vector := made[0], VectorEnv):
                if num_envs not in (1, vector.num_envs) or self.vectorization == "async":
                    raise InputError(
                        f"A vector environment is used as it is, here {vector.num_envs} for each seed: leave num_envs "
                        "and vectorization out."
                    )
                return self._opened(made, seed, time_limit)
            if self.vectorization == "async" and num_envs > 1:
                return self._opened_apart(made[0], seed, num_envs, time_limit)
            return self._opened([*made, *(make() for _ in range(num_envs - 1))], seed, time_limit)

    def open_to_play(self, seeds: Sequence[int], most: int, time_limit: int) -> list[HostEnvironments]:
        """Environments of several seeds for `most` episodes of each at once, or as many as can be made in a while.

        All seeds have equally many, at least one; InputError if that cannot be made. Which seeds the episodes have
        depends on `most` alone.
        """
        if self.vectorization == "async" and most > 1:
            return [self.open(seed, most, time_limit) for seed in seeds]
        count = len(seeds)
        with self._making() as make:
            made, began = [make() for _ in seeds], time.monotonic()
            with contextlib.suppress(InputError):  # a port or a license is taken, or there is no memory: one is enough
                most_made = count if isinstance(made[0], VectorEnv) else most * count
                while len(made) < most_made and time.monotonic() < began + MAKING_SECONDS:
                    made.append(make())
            shared = len(made) // count * count
            for each in made[shared:]:
                close_quietly(each)
            hosts = [self._opened(made[row:shared:count], seed, time_limit) for row, seed in enumerate(seeds)]
        for host in hosts:
            if host.adapted:
                host.places = most
        return hosts

    @contextlib.contextmanager
    def _making(self) -> Iterator[Callable[[], Made]]:
        """Yields a function that makes environments, which are all closed if an error follows."""
        made, _ = list[Made](), self.inspected  # one is made for that, and closed

        def make() -> Made:
            made.append(self.make())
            if not actions_of(made[-1], self.levels).equal(self.interface.actions):
                raise InputError(
                    f"{self.label} has other actions when it is made again: give a function that makes the same "
                    "environment at each call."
                )
            return made[-1]

        try:
            yield make
        except BaseException:
            for each in made:
                close_quietly(each)
            raise

    def _opened(self, made: Sequence[Any], seed: int, time_limit: int | None) -> HostEnvironments:
        """Environments that were made, or a vector environment, for one seed."""
        if isinstance(env := made[0], VectorEnv):
            if self.repeats > 1:
                raise InputError(
                    f"action_repeat is {self.repeats}, but a vector environment is used as it is: repeat actions in it."
                )
            return self._host(env, seed, time_limit, False, self.action_masks)
        return self._host(SideBySide([Adapter(each, *self._adapted) for each in made]), seed, time_limit)

    def _opened_apart(self, env: Made, seed: int, num_envs: int, time_limit: int | None) -> HostEnvironments:
        """Environments in processes of their own, in place of the one that was made."""
        close_quietly(env)
        apart = functools.partial(adapt_apart, os.getpid(), self.maker(), *self._adapted)

        def begun() -> AsyncVectorEnv:
            with of_processes():
                return AsyncVectorEnv([apart] * num_envs, context="spawn", autoreset_mode=AutoresetMode.DISABLED)

        vector = call(begun, lambda: f"{self.label}, begun in processes of its own,")
        return self._host(vector, seed, time_limit)

    @property
    def _adapted(self) -> tuple[Reading, np.ndarray, int]:
        """The arguments of `Adapter` behind the environment."""
        return self.inspected.interface.reading, self.inspected.observed.example, self.repeats

    def _host(
        self, env: VectorEnv, seed: int, time_limit: int | None, adapted: bool = True, masked: bool = True
    ) -> HostEnvironments:
        reset_seed, ends_at_limit = self.seed_of_resets(seed), bool(self.ends_at_limit)
        limit = time_limit and max(time_limit, self.inspected.time_limit or 0)
        return HostEnvironments(env, self.interface, seed, reset_seed, adapted, masked, ends_at_limit, limit)
