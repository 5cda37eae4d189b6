"""The same agent in environments that Python steps: acting and learning are compiled, the steps are not."""

import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Key

from uppertail.environments import EnvironmentFailedError, HostBuilder, HostEnvironment, begin_all
from uppertail.learners import Metrics
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.drivers import evaluation
from uppertail.training.drivers.base import Driver, Played
from uppertail.training.drivers.chunks import iterations_per_chunk
from uppertail.training.drivers.groups import Group, Groups
from uppertail.training.drivers.host_programs import HostPrograms
from uppertail.training.drivers.rollouts import Rollouts
from uppertail.training.loop import Episode, Loop, RunState, StepRecord
from uppertail.training.programs import Stopwatch
from uppertail.training.seeds import SeedKeys
from uppertail.types import PyTree, Transition

CHUNK_STEPS = 512
"""Environment steps of each seed between two calls of the callback."""


class HostDriver(Driver):
    """Runs of all seeds in environments that Python steps: one compiled call acts for all, one learns for each group.

    Args:
        loop: what a run does with its steps.
        builder: opens environments for evaluation.
        hosts: the environments of each seed.
        first: their first observations, with leading axes [seeds, envs].
        keys: the keys of each seed.
        seeds: the seeds themselves.
        seconds: the stopwatch of the run.
    """

    def __init__(
        self,
        loop: Loop,
        builder: HostBuilder,
        hosts: list[HostEnvironment],
        first: np.ndarray,
        keys: SeedKeys,
        seeds: list[int],
        seconds: Stopwatch,
    ) -> None:
        self.loop, self.builder, self.hosts, self.keys = loop, builder, hosts, keys
        self.seeds, self.seconds = seeds, seconds
        self.iterations = iterations_per_chunk(loop, CHUNK_STEPS)
        self.groups = Groups(len(seeds))
        self._keys = self.groups.split(keys.run)
        self.first = first
        self.programs = self._programs()
        self.rollouts: list[Rollouts] = []
        self.iteration = 0

    def template(self) -> RunState:
        return self.programs.template

    def start(self) -> list[RunState]:
        state = self.programs.start()
        return self._go_on(state, state.episode)

    def gather(self, state: list[RunState], part: Callable[[RunState], PyTree] = lambda run: run) -> PyTree:
        parts = zip(self.groups, state, strict=True)
        return self.groups.join([part(run._replace(episode=self._episode(group))) for group, run in parts])

    def advance(
        self, state: list[RunState], finished: Bool[np.ndarray, " seeds"] | None = None
    ) -> tuple[list[RunState], StepRecord, Metrics]:
        del finished  # environments of finished seeds go on with the others
        programs = self.programs
        _ = programs.begin_rollout, programs.view, programs.choose, programs.learn  # compiled before timing
        began = time.perf_counter()
        done: list[tuple[StepRecord, Metrics]] = []
        try:
            for _ in range(self.iterations):
                fresh, record = self._roll_out(self.groups.join([run.learned.network for run in state]))
                self._reconsider(np.asarray(fresh.reward))
                state, metrics = self._learn(state, fresh, record)
                done.append((record, metrics))
                self.iteration += 1
                self._record(state)
        except EnvironmentFailedError as error:
            self.failure = error
        records, metrics = (
            jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *done)
            if done
            else self.loop.idle_records(len(self.seeds), 0)
        )
        self.seconds.training += time.perf_counter() - began
        return state, records, metrics

    def play(self, networks: Network, policy: ExplorationPolicy, keys: Key[Array, " seeds"], episodes: int) -> Played:
        return evaluation.play(self.builder, self.seeds, self.programs, networks, policy, keys, episodes)

    def saved(self) -> dict[str, np.ndarray]:
        return {f"{row}/{name}": array for row, host in enumerate(self.hosts) for name, array in host.saved().items()}

    def restore(self, arrays: dict[str, np.ndarray], state: RunState) -> tuple[list[RunState], str | None]:
        """Goes back to the episodes in progress; where that is not possible, new ones begin."""
        episode = jax.tree.map(np.asarray, state.episode)
        kept = [_of_row(arrays, row) for row in range(len(self.hosts))]
        going_back = [functools.partial(host.restore, saved) for host, saved in zip(self.hosts, kept, strict=True)]
        here = begin_all(going_back, self.seeds, "while the actions of its episode in progress were taken again")
        elsewhere = (here != episode.observation).reshape(len(self.hosts), -1).any(axis=1)
        lost = elsewhere | np.array([not saved for saved in kept])
        if not lost.any():
            return self._go_on(state, episode), None
        ended = np.asarray(state.episodes).tolist()
        going_on = [
            functools.partial(host.begin_another, ended[row]) if lost[row] else functools.partial(here.__getitem__, row)
            for row, host in enumerate(self.hosts)
        ]
        here = begin_all(going_on, self.seeds, "as another episode began in place of the one in progress")
        on = ~lost[:, None]
        begun = episode._replace(observation=here, ret=episode.ret * on, length=episode.length * on)
        which = ", ".join(str(self.seeds[row]) for row in np.flatnonzero(lost))
        line = f"The episode in progress cannot be restored (seed {which}): another one begins."
        return self._go_on(state, begun), line

    def close(self) -> None:
        self.groups.close()

    def _record(self, state: list[RunState]) -> None:
        for place, run in enumerate(state if self.recorder else []):
            self.recorder.take(place, run, self.iteration)  # pyright: ignore[reportOptionalMemberAccess]

    def _go_on(self, state: RunState, episode: Episode) -> list[RunState]:
        """The state to go on from, with these episodes in progress."""
        episode = jax.tree.map(np.asarray, episode)
        ended, self.iteration = np.asarray(state.episodes), int(np.asarray(state.iteration)[0])
        steps = self.iteration * self.loop.rollout_steps
        self.memory: PyTree = episode.memory
        self.rollouts = [
            Rollouts(host, seed, _row(episode, row), int(ended[row]), steps)
            for row, (host, seed) in enumerate(zip(self.hosts, self.seeds, strict=True))
        ]
        return self.groups.split(state._replace(episode=()))

    def _roll_out(self, networks: Network) -> tuple[Transition, StepRecord]:
        """Makes a rollout of all seeds; its arrays have a leading axis of seeds."""
        count, leaves = self.loop.rollout_steps, jax.tree.leaves(networks)
        programs = self.programs
        key, step = programs.begin_rollout(self.keys.run, np.full(len(self.seeds), self.iteration, np.int32))
        while short := [rollouts for rollouts in self.rollouts if rollouts.waiting < count]:
            for rollouts in short:
                rollouts.step()
            where = np.stack([rollouts.where for rollouts in self.rollouts])
            begins = np.stack([rollouts.begins for rollouts in self.rollouts]) if programs.policy_remembers else ()
            view = programs.view(leaves, where)
            choice, memory, step = programs.choose(key, step, view, where, self.memory, begins)
            self.memory = self._keep_memory(memory, short)
            actions, exploratory = np.asarray(choice).swapaxes(0, 1)
            for row, rollouts in enumerate(self.rollouts):
                if rollouts.waiting < count:
                    rollouts.continue_with(actions[row], exploratory[row].astype(bool))
        return _stack([rollouts.take(count) for rollouts in self.rollouts])

    def _keep_memory(self, memory: PyTree, short: list[Rollouts]) -> PyTree:
        """The policy's memory after a decision; seeds that wait for others keep their old one."""
        if len(short) == len(self.rollouts) or not self.programs.policy_remembers:
            return memory
        acts = np.array([rollouts in short for rollouts in self.rollouts])
        return jax.tree.map(
            lambda new, old: np.where(acts.reshape(-1, *[1] * (new.ndim - 1)), new, old), memory, self.memory
        )

    def _reconsider(self, rewards: np.ndarray) -> None:
        """Changes the scale of returns at the first reward that is not 0, if the scale was a guess until then."""
        if self.reconsider is None or not rewards.any():
            return
        self.loop = self.reconsider(min(0.0, float(rewards.min())), max(0.0, float(rewards.max())))
        self.programs, self.reconsider = self._programs(), None

    def _programs(self) -> HostPrograms:
        keys = self.keys.run
        return HostPrograms(self.loop, self.builder.num_actions, keys, self.groups, self.first, self.seconds)

    def _learn(self, state: list[RunState], fresh: Transition, record: StepRecord) -> tuple[list[RunState], Metrics]:
        """Updates each group's state by learning from its rollouts."""

        def learn_group(learn: Any, keys: Any, run: RunState, group: Group) -> tuple[RunState, Metrics]:
            data, ended = jax.tree.map(lambda leaf: leaf[group.rows], (fresh, record.ended))
            run, metrics = learn(keys, run, data, ended)
            return run, jax.tree.map(np.asarray, metrics)

        done = self.groups.map(learn_group, self.programs.learn, self._keys, state, list(self.groups))
        return [run for run, _ in done], self.groups.join([metrics for _, metrics in done])

    def _episode(self, group: Group) -> Episode:
        """The episodes in progress of a group."""
        episodes = _stack([rollouts.episode for rollouts in self.rollouts[group.rows]])
        memory = jax.tree.map(lambda leaf: np.asarray(leaf)[group.rows], self.memory)
        return episodes._replace(memory=memory)


def _row(tree: PyTree, row: int) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[row], tree)


def _stack(trees: list[PyTree]) -> PyTree:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def _of_row(arrays: dict[str, np.ndarray], row: int) -> dict[str, np.ndarray]:
    """The arrays of one seed's environments."""
    prefix = f"{row}/"
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
