"""Compiled environments: chunks of a run that are compiled once and run for each group of seeds."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, PRNGKeyArray

from uppertail.environments import Environment, EnvironmentBuilder, require_tables_fit, returns_of
from uppertail.learners import Metrics
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.drivers.base import Driver, Played, Refit
from uppertail.training.drivers.compiled_run import CompiledRun
from uppertail.training.drivers.recorder import Recorder
from uppertail.training.groups import Group, Groups
from uppertail.training.loop import Loop, RunState, StepRecord
from uppertail.training.programs import Stopwatch, compile_program
from uppertail.training.seeds import SeedKeys, start_keys
from uppertail.types import PyTree, ReturnRange

CHUNK_STEPS = 1024
"""Environment steps of each seed between two calls of the callback."""


class CompiledDriver(Driver):
    """Runs of all seeds in compiled environments, one program for each group of them.

    Args:
        builder: builds the environment of each seed.
        keys: the keys of each seed.

    Raises:
        InputError: the environments' tables do not fit into memory.
    """

    def __init__(self, builder: EnvironmentBuilder, keys: SeedKeys) -> None:
        require_tables_fit(builder, keys.environment)
        self.builder, self.keys = builder, keys
        environments = compile_program(_build, builder, (keys.environment,)).call(keys.environment)
        one = jax.tree.map(lambda leaf: leaf[0], environments)
        self.observations, self.num_actions = one.observations, one.num_actions
        self.groups = Groups(keys.run.shape[0])
        self.environments = environments
        self._keys, self._environments = self.groups.split(keys.run), self.groups.split(environments)

    def return_range(self, discount: float) -> ReturnRange:
        return self.builder.known_returns or returns_of(self.builder, self.environments, discount)

    def start_observations(self) -> Array:
        arguments = (self.keys.run, self.environments)
        return compile_program(_first_observation, None, arguments).call(*arguments)

    def identity(self) -> PyTree:
        return self.environments

    def use(self, loop: Loop, seconds: Stopwatch, refit: Refit | None) -> None:
        del refit  # what compiled environments pay is measured before a run
        self.run, self.seconds, self.iterations = CompiledRun(loop), seconds, loop.iterations_per_chunk(CHUNK_STEPS)
        self._template = jax.eval_shape(jax.vmap(self.run.init), self.keys.run, self.environments)
        self._chunks: list[Any] = []

    def template(self) -> RunState:
        return self._template

    def start(self) -> list[RunState]:
        arguments = (self.keys.run, self.environments)
        return self.groups.split(self.seconds.compiled(CompiledRun.init, self.run, *arguments)(*arguments))

    def gather(self, state: list[RunState], part: Callable[[RunState], PyTree] = lambda run: run) -> PyTree:
        return self.groups.join([part(each) for each in state])

    def advance(
        self,
        state: list[RunState],
        finished: Bool[np.ndarray, " seeds"] | None = None,
        recorder: Recorder | None = None,
    ) -> tuple[list[RunState], StepRecord, Metrics]:
        if not self._chunks:
            self._chunks = [*map(self._compiled, self.groups, self._keys, self._environments)]
        with self.seconds.in_loop():
            still = [finished is not None and bool(finished[group.rows].all()) for group in self.groups]
            places = [*range(len(still))]
            parts = places, still, self._keys, self._environments, state
            done = self.groups.map(functools.partial(self._advance, recorder), *parts)
            records, metrics = self.groups.join([rows for _, rows in done])
        return [state for state, _ in done], records, metrics

    def _advance(
        self, recorder: Recorder | None, place: int, still: bool, keys: Any, environments: Environment, state: RunState
    ) -> tuple[RunState, Any]:
        """Runs a group's chunk, in pieces between the recorder's moments; a group may stand still."""
        iteration, rows = recorder.iteration if recorder else 0, []
        for count in recorder.pieces(self.iterations) if recorder else [self.iterations]:
            state, *found = self._chunks[place](np.int32(0 if still else count), keys, environments, state)
            rows.append(jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[:, :count], tuple(found)))
            iteration += count
            if recorder:
                recorder.take(place, state, iteration)
        return state, jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *rows)

    def _compiled(self, group: Group, keys: Any, environments: Environment) -> Any:
        """The program of a group's chunk; a run that begins and one that goes on use the same."""
        arguments = (np.int32(0), keys, environments, group.part_of(self._template))
        static = (self.iterations,)
        return self.seconds.compiled(CompiledRun.chunk, self.run, *arguments, static=static, shared=1, donate=(3,))

    def play(self, networks: Network, policy: ExplorationPolicy, episodes: int) -> Played:
        run, arguments = CompiledRun(self.run.loop, policy), (self.keys.evaluation, self.environments, networks)
        play = self.seconds.compiled(CompiledRun.play, run, *arguments, static=(episodes,))
        return Played(*map(np.asarray, play(*arguments)))

    def saved(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, arrays: dict[str, np.ndarray], state: RunState) -> tuple[list[RunState], str | None]:
        del arrays  # the state is complete without them
        return self.groups.split(state), None

    def close(self) -> None:
        self.groups.close()


def _build(builder: EnvironmentBuilder, key: PRNGKeyArray) -> Environment:
    return builder.build(key)


def _first_observation(_: None, run_key: PRNGKeyArray, environment: Environment) -> Array:
    return environment.reset(start_keys(run_key).reset)[1].observation
