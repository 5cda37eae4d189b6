"""Compiled environments: chunks of a run that are compiled once and run for each group of seeds."""

import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Key, PRNGKeyArray

from uppertail.environments import Environment, EnvironmentBuilder, require_tables_fit, returns_of
from uppertail.learners import Metrics
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.drivers.base import Driver, Played, World
from uppertail.training.drivers.chunks import iterations_per_chunk
from uppertail.training.drivers.compiled_run import CompiledRun
from uppertail.training.drivers.groups import Group, Groups
from uppertail.training.drivers.recorder import Recorder
from uppertail.training.loop import Loop, RunState, StepRecord
from uppertail.training.programs import Stopwatch, compile_program
from uppertail.training.seeds import SeedKeys, start_keys
from uppertail.types import PyTree, ReturnRange

CHUNK_STEPS = 1024
"""Environment steps of each seed between two calls of the callback."""


class CompiledWorld(World):
    """The compiled environments of all seeds.

    Args:
        builder: builds the environment of each seed.
        keys: the keys of each seed.
    """

    def __init__(self, builder: EnvironmentBuilder, keys: SeedKeys) -> None:
        self.builder, self.keys = builder, keys
        self.compiled: Environment = _build(builder, keys)
        self.environments = self.compiled
        one = jax.tree.map(lambda leaf: leaf[0], self.compiled)
        self.observations, self.num_actions = one.observations, one.num_actions

    def return_range(self, discount: float) -> ReturnRange:
        return self.builder.known_returns or returns_of(self.builder, self.compiled, discount)

    def start_observations(self) -> Array:
        arguments = (self.keys.run, self.compiled)
        return compile_program(_first, None, arguments).call(*arguments)

    def identity(self) -> PyTree:
        return self.compiled

    def driver(self, loop: Loop, seconds: Stopwatch) -> "CompiledDriver":
        return CompiledDriver(loop, self.compiled, self.keys, seconds)

    def close(self) -> None:
        """Does nothing: compiled environments hold no resources."""


def _build(builder: EnvironmentBuilder, keys: SeedKeys) -> Environment:
    """The environments of all seeds.

    Raises:
        InputError: their tables do not fit into memory.
    """
    require_tables_fit(builder, keys.environment)
    return compile_program(_built, builder, (keys.environment,)).call(keys.environment)


def _built(builder: EnvironmentBuilder, keys: Key[Array, " seeds"]) -> Environment:
    return jax.vmap(builder.build)(keys)


def _first(_: None, run_keys: Key[Array, " seeds"], environments: Environment) -> Array:
    def first(run_key: PRNGKeyArray, environment: Environment) -> Array:
        return environment.reset(start_keys(run_key).reset)[1].observation

    return jax.vmap(first)(run_keys, environments)


class CompiledDriver(Driver):
    """Runs of all seeds in compiled environments, one program for each group of them.

    Args:
        loop: what a run does with its steps.
        environments: the environments of all seeds; every array has a leading axis.
        keys: the keys of each seed.
        seconds: the stopwatch of the run.
    """

    def __init__(self, loop: Loop, environments: Environment, keys: SeedKeys, seconds: Stopwatch) -> None:
        self.loop, self.environments, self.keys, self.seconds = loop, environments, keys, seconds
        self.run, self.iterations = CompiledRun(loop), iterations_per_chunk(loop, CHUNK_STEPS)
        self.groups = Groups(keys.run.shape[0])
        self._keys, self._environments = self.groups.split(keys.run), self.groups.split(environments)

    def template(self) -> RunState:
        return self._template

    @functools.cached_property
    def _template(self) -> RunState:
        return jax.eval_shape(self.run.begin, self.keys.run, self.environments)

    @functools.cached_property
    def _chunks(self) -> list[Any]:
        """The compiled chunk of each group; a run that begins and one that goes on use the same program."""

        def compiled(group: Group, *arguments: Any) -> Any:
            state, static = group.part_of(self._template), (self.iterations,)
            return self.seconds.compiled(CompiledRun.chunks, self.run, *arguments, state, static=static, donate=(2,))

        return self.groups.programs(compiled, self._keys, self._environments)

    @functools.cached_property
    def _parts(self) -> list[Any]:
        """The same for a variable number of iterations, since a recorder's moments divide a chunk."""

        def compiled(group: Group, *arguments: Any) -> Any:
            arguments, static = (np.int32(0), *arguments, group.part_of(self._template)), (self.iterations,)
            return self.seconds.compiled(CompiledRun.parts_of_chunks, self.run, *arguments, static=static, donate=(3,))

        return self.groups.programs(compiled, self._keys, self._environments)

    def start(self) -> list[RunState]:
        arguments = (self.keys.run, self.environments)
        return self.groups.split(self.seconds.compiled(CompiledRun.begin, self.run, *arguments)(*arguments))

    def gather(self, state: list[RunState], part: Callable[[RunState], PyTree] = lambda run: run) -> PyTree:
        return self.groups.join([part(each) for each in state])

    def advance(
        self, state: list[RunState], finished: Bool[np.ndarray, " seeds"] | None = None
    ) -> tuple[list[RunState], StepRecord, Metrics]:
        chunks = self._parts if self.recorder else self._chunks
        began = time.perf_counter()

        def advance(place: int, group: Group, chunk: Any, *arguments: Any) -> Any:
            still = finished is not None and bool(finished[group.rows].all())
            if self.recorder:
                return self._record_pieces(self.recorder, place, still, chunk, *arguments)
            if still:
                return arguments[-1], self.loop.idle_records(group.size, self.iterations)
            state, records, metrics = chunk(*arguments)
            return state, jax.tree.map(np.asarray, (records, metrics))

        groups = list(self.groups)
        done = self.groups.map(advance, [*range(len(groups))], groups, chunks, self._keys, self._environments, state)
        records, metrics = self.groups.join([each[1] for each in done])
        self.seconds.training += time.perf_counter() - began
        return [each[0] for each in done], records, metrics

    def _record_pieces(
        self, recorder: Recorder, place: int, still: bool, chunk: Any, keys: Any, environments: Environment, state: Any
    ) -> Any:
        """Runs a group's chunk in pieces between the recorder's moments; one that stands still is only recorded."""
        iteration, done = recorder.iteration, []
        for count in recorder.pieces(self.iterations):
            iteration += count
            if not still:
                state, *rows = chunk(np.int32(count), keys, environments, state)
                done.append(jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[:, :count], tuple(rows)))
            recorder.take(place, state, iteration)
        if still:
            return state, self.loop.idle_records(len(keys), self.iterations)
        return state, jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *done)

    def play(self, networks: Network, policy: ExplorationPolicy, keys: Key[Array, " seeds"], episodes: int) -> Played:
        run, arguments = CompiledRun(self.loop, policy), (keys, self.environments, networks)
        play = self.seconds.compiled(CompiledRun.plays, run, *arguments, static=(episodes,))
        return Played(*map(np.asarray, play(*arguments)))

    def saved(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, arrays: dict[str, np.ndarray], state: RunState) -> tuple[list[RunState], str | None]:
        del arrays  # the state is complete without them
        return self.groups.split(state), None

    def close(self) -> None:
        self.groups.close()
