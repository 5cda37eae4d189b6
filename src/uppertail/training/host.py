"""The same agent in environments that Python steps: acting is compiled, learning is compiled, the steps are theirs."""

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key, PRNGKeyArray

from uppertail.agent import Metrics
from uppertail.environments import HostBuilder, HostEnvironment, HostStep, measured_returns
from uppertail.errors import InputError
from uppertail.networks import PerActionNetwork
from uppertail.policies import ExplorationPolicy
from uppertail.training.driver import EVALUATION_STEPS, Driver, Played, Stopwatch
from uppertail.training.groups import Group, Groups, over_seeds
from uppertail.training.loop import Episode, RunState, StepRecord
from uppertail.training.rollouts import EnvironmentFailedError, Rollouts, answered, stepped
from uppertail.training.seeds import SeedKeys
from uppertail.types import ReturnRange, Transition

PLAYED_TOGETHER = 20
"""Environments of each seed in which evaluation episodes are played side by side, at the most."""

EVALUATION = 2**31
"""Added to a seed, it is the seed of environments that are only evaluated in."""


class HostDriver(Driver):
    """Runs of all seeds in environments that Python steps: one compiled call acts for all, one learns for each group.

    Args:
        builder: opens the environments of each seed.
        keys: the keys of each seed.
        seeds: the seeds themselves.
        num_envs: environments of each seed, side by side.
        iterations: rollouts per chunk.
        seconds: to which times are added.

    Raises:
        InputError: the environments cannot be made.
    """

    def __init__(
        self, builder: HostBuilder, keys: SeedKeys, seeds: list[int], num_envs: int, iterations: int, seconds: Stopwatch
    ) -> None:
        self.builder, self.keys, self.seeds, self.iterations, self.seconds = builder, keys, seeds, iterations, seconds
        self.encoding, self.num_actions = builder.observations, builder.num_actions
        self.groups = Groups(len(seeds))
        self._keys = self.groups.split(keys.run)
        self.hosts: list[HostEnvironment] = []
        try:
            self.hosts += (builder.open(seed, num_envs) for seed in seeds)
            self.again, self.first = (self._begun(self.hosts, "at its first reset") for _ in range(2))
        except InputError:
            self.close()
            raise
        self.rollouts: list[Rollouts] = []
        self.iteration = 0

    def return_range(self, discount: float) -> ReturnRange:
        return self.builder.known_returns or measured_returns(self.builder, discount)

    def template(self) -> RunState:
        return jax.eval_shape(jax.vmap(self._init), self.keys.run, self.first)

    def start(self) -> list[RunState]:
        state = self.compiled(jax.vmap(self._init), self.keys.run, self.first)(self.keys.run, self.first)
        return self._go_on(state, state.episode)

    def gathered(self, state: list[RunState], part: Callable[[RunState], Any] = lambda run: run) -> Any:
        parts = zip(self.groups, state, strict=True)
        return self.groups.joined([part(run._replace(episode=self._episode(group))) for group, run in parts])

    def advance(
        self, state: list[RunState], finished: Bool[np.ndarray, " seeds"] | None = None
    ) -> tuple[list[RunState], StepRecord, Metrics]:
        del finished  # their environments go on with the others'
        _ = self._begin_rollout, self._outputs, self._choose, self._learn  # compiled before the time is taken
        began = time.perf_counter()
        done: list[tuple[StepRecord, Metrics]] = []
        try:
            for _ in range(self.iterations):
                fresh, record = self._roll(self.groups.joined([run.agent.network for run in state]))
                state, metrics = self._learned(state, fresh, record)
                done.append((record, metrics))
                self.iteration += 1
        except EnvironmentFailedError as error:
            self.failure = error
        records, metrics = (
            jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *done)
            if done
            else self.loop.nothing(len(self.seeds), 0)
        )
        self.seconds.training += time.perf_counter() - began
        return state, records, metrics

    def start_observations(self) -> Array:
        return jnp.asarray(self.first[:, 0])

    def play(
        self, networks: PerActionNetwork, policy: ExplorationPolicy, keys: Key[Array, " seeds"], episodes: int
    ) -> Played:
        together = min(episodes, PLAYED_TOGETHER)
        hosts: list[HostEnvironment] = []
        try:
            hosts += (self.builder.open(EVALUATION + seed, together, EVALUATION_STEPS) for seed in self.seeds)
            return self._play(hosts, networks, policy, keys, episodes)
        finally:
            for host in hosts:
                host.close()

    def identity(self) -> dict[str, np.ndarray]:
        return {"first": np.where(self.first == self.again, self.first, 0)}  # what no seed leads back to tells nothing

    def saved(self) -> dict[str, np.ndarray]:
        return {f"{row}/{name}": array for row, host in enumerate(self.hosts) for name, array in host.saved().items()}

    def restore(self, arrays: dict[str, np.ndarray], state: RunState) -> tuple[list[RunState], str | None]:
        """Goes back to the episodes in progress; where none leads there, others begin."""
        episode = jax.tree.map(np.asarray, state.episode)
        kept = [_of_row(arrays, row) for row in range(len(self.hosts))]
        going_back = [functools.partial(host.restore, saved) for host, saved in zip(self.hosts, kept, strict=True)]
        here = self._answers(going_back, "while the actions of its episode in progress were taken again")
        elsewhere = (here != episode.observation).reshape(len(self.hosts), -1).any(axis=1)
        lost = elsewhere | np.array([not saved for saved in kept])
        if not lost.any():
            return self._go_on(state, episode), None
        going_on = [
            host.reset if lost[row] else functools.partial(here.__getitem__, row) for row, host in enumerate(self.hosts)
        ]
        here = self._answers(going_on, "as another episode began in place of the one in progress")
        on = ~lost[:, None]
        begun = episode._replace(observation=here, ret=episode.ret * on, length=episode.length * on)
        which = ", ".join(str(self.seeds[row]) for row in np.flatnonzero(lost))
        line = f"Nothing leads back to the episode in progress (seed {which}): another one begins."
        return self._go_on(state, begun), line

    def close(self) -> None:
        self.groups.close()
        for host in self.hosts:
            host.close()

    def _begun(self, hosts: list[HostEnvironment], when: str) -> np.ndarray:
        """The first observations of each seed's environments."""
        return self._answers([host.reset for host in hosts], when)

    def _answers(self, asked: list[Callable[[], np.ndarray]], when: str) -> np.ndarray:
        """What the environments of each seed answer, or which of them raised what, and when."""
        wheres = [f"The environment of seed {seed}, {when}," for seed in self.seeds]
        return np.stack([answered(ask, lambda w=where: w) for ask, where in zip(asked, wheres, strict=True)])

    def _go_on(self, state: RunState, episode: Episode) -> list[RunState]:
        """The state from which to go on with these episodes in progress."""
        episode = jax.tree.map(np.asarray, episode)
        ended, self.iteration = np.asarray(state.episodes), int(np.asarray(state.iteration)[0])
        steps = self.iteration * self.loop.rollout_steps
        self.rollouts = [
            Rollouts(host, seed, _row(episode, row), int(ended[row]), steps)
            for row, (host, seed) in enumerate(zip(self.hosts, self.seeds, strict=True))
        ]
        return self.groups.split(state._replace(episode=()))

    def _roll(self, networks: PerActionNetwork) -> tuple[Transition, StepRecord]:
        """A rollout of all seeds, with a leading axis of seeds."""
        count = self.loop.rollout_steps
        key, step = self._begin_rollout(self.keys.run, np.full(len(self.seeds), self.iteration, np.int32))
        while short := [rollouts for rollouts in self.rollouts if rollouts.waiting < count]:
            for rollouts in short:
                rollouts.step()
            where = np.stack([rollouts.where for rollouts in self.rollouts])
            choice, step = self._choose(key, step, self._outputs(networks, where))
            actions, exploratory = np.asarray(choice).swapaxes(0, 1)
            for row, rollouts in enumerate(self.rollouts):
                if rollouts.waiting < count:
                    rollouts.chose(actions[row], exploratory[row].astype(bool))
        return _stacked([rollouts.take(count) for rollouts in self.rollouts])

    def _learned(self, state: list[RunState], fresh: Transition, record: StepRecord) -> tuple[list[RunState], Metrics]:
        """Each group's state after it has learned from its rollouts."""

        def learned(learn: Any, keys: Any, run: RunState, group: Group) -> tuple[RunState, Metrics]:
            data, ended = jax.tree.map(lambda leaf: leaf[group.rows], (fresh, record.ended))
            run, metrics = learn(keys, run, data, ended)
            return run, jax.tree.map(np.asarray, metrics)

        done = self.groups.map(learned, self._learn, self._keys, state, list(self.groups))
        return [run for run, _ in done], self.groups.joined([metrics for _, metrics in done])

    def _episode(self, group: Group) -> Episode:
        """The episodes in progress of a group."""
        return _stacked([rollouts.episode for rollouts in self.rollouts[group.rows]])

    def _play(
        self,
        hosts: list[HostEnvironment],
        networks: PerActionNetwork,
        policy: ExplorationPolicy,
        keys: Key[Array, " seeds"],
        episodes: int,
    ) -> Played:
        """As many episodes in each of a seed's environments as in any other, so that short ones are not preferred."""

        def act(network: PerActionNetwork, key: PRNGKeyArray, step: Array, observations: Array) -> Array:
            return self._choices(network, jax.random.fold_in(key, step), observations, policy)

        observations = self._begun(hosts, "at the first reset of its evaluation")
        seeds, envs = observations.shape[:2]
        choose = self.compiled(jax.vmap(act, in_axes=(0, 0, None, 0)), networks, keys, np.int32(0), observations)
        quota = math.ceil(episodes / envs)
        returns, lengths = np.zeros((seeds, quota, envs)), np.zeros((seeds, quota, envs), np.int64)
        played = np.zeros((seeds, envs), np.int64)
        step = 0
        while (played < quota).any():
            actions = np.asarray(choose(networks, keys, np.int32(step), observations))
            for row, host in enumerate(hosts):
                now = self._evaluated(row, host, actions[row])
                on = np.flatnonzero(now.real & (played[row] < quota))
                returns[row, played[row, on], on] += now.reward[on]
                lengths[row, played[row, on], on] += 1
                played[row, on] += (now.terminated | now.truncated)[on]
                observations[row] = now.observation
            step += 1
        return Played(*(each.reshape(seeds, -1)[:, :episodes] for each in (returns, lengths)))

    def _evaluated(self, row: int, host: HostEnvironment, actions: np.ndarray) -> HostStep:
        """One step of an evaluation."""
        where = f"The environment of seed {self.seeds[row]}, in an episode with its learned network,"
        return stepped(host, actions, lambda: where)

    # the compiled parts

    def _init(self, run_key: PRNGKeyArray, observations: Array) -> RunState:
        """A run before its first step, with the first action of each environment."""
        network_key, _, action_key = jax.random.split(jax.random.fold_in(run_key, 0), 3)
        agent_state = self.loop.agent.observe(self.loop.agent.init(network_key, self.num_actions), observations)
        actions = self._choices(agent_state.network, action_key, observations)
        zeros = jnp.zeros(observations.shape[0])
        episode = Episode((), observations, actions, zeros, zeros.astype(jnp.int32))
        return self.loop.begin(agent_state, observations[0], episode)

    @functools.cached_property
    def _begin_rollout(self) -> Any:
        """The key of each seed's rollout, and the number of its first step."""

        def begin(run_key: PRNGKeyArray, iteration: Array) -> tuple[PRNGKeyArray, Array]:
            return self.loop.keys(run_key, iteration)[0], jnp.zeros((), jnp.int32)

        return self.compiled(jax.vmap(begin), self.keys.run, np.zeros(len(self.seeds), np.int32))

    # Two programs choose an action. XLA runs a program of at most eight operations, or one whose arrays have at most
    # 512 bytes each, in the thread that calls it; of others it hands parts to other threads, which takes longer.

    @functools.cached_property
    def _outputs(self) -> Any:
        """What the networks make of the observations of all seeds."""
        return self.compiled(self._all_outputs, self.template().agent.network, self.first)

    def _all_outputs(self, networks: PerActionNetwork, observations: Array) -> Array:
        def of_seed(network: PerActionNetwork, observations: Array) -> Array:
            return jax.vmap(network, in_axes=(None, 0))(self.encoding, observations)

        return over_seeds(of_seed, len(self.seeds))(networks, observations)

    @functools.cached_property
    def _choose(self) -> Any:
        """Chooses the actions of all seeds at one step of a rollout: one row; another says which are not greedy."""
        agent = self.loop.agent

        def choose(rollout_key: PRNGKeyArray, step: Array, outputs: Array) -> tuple[Int[Array, "2 envs"], Array]:
            z = jax.vmap(jax.vmap(agent.family.from_outputs))(outputs)
            _, _, action_key = jax.random.split(jax.random.fold_in(rollout_key, step), 3)  # as compiled runs draw it
            keys = _of_envs(action_key, outputs.shape[0])
            actions = jax.vmap(agent.policy.select, in_axes=(0, None, 0))(keys, agent.family, z)
            explores = jax.vmap(agent.explores)(z, actions)
            return jnp.stack([actions, explores.astype(actions.dtype)]), step + 1

        step = np.zeros(len(self.seeds), np.int32)
        outputs = jax.eval_shape(self._all_outputs, self.template().agent.network, self.first)
        return self.compiled(over_seeds(choose, len(self.seeds)), self.keys.run, step, outputs)

    @functools.cached_property
    def _learn(self) -> list[Any]:
        """What keeps and learns from the rollouts of each group."""
        template, loop = self.template()._replace(episode=()), self.loop

        def learn(run_key: PRNGKeyArray, run: RunState, fresh: Transition, ended: Array) -> tuple[RunState, Metrics]:
            return loop.learn(loop.keys(run_key, run.iteration)[1], run, (), fresh, ended)

        def compiled(group: Group, keys: Any) -> Any:
            state = group.part_of(template)
            steps = (group.size, loop.rollout_steps)
            fresh = jax.tree.map(
                lambda leaf: jax.ShapeDtypeStruct(steps + leaf.shape[2:], leaf.dtype), state.replay.transitions
            )
            ended = jax.ShapeDtypeStruct(steps, bool)
            return self.compiled(over_seeds(learn, group.size), keys, state, fresh, ended, donate=(1,))

        return self.groups.programs(compiled, self._keys)

    def _choices(
        self, network: PerActionNetwork, key: PRNGKeyArray, observations: Array, policy: ExplorationPolicy | None = None
    ) -> Int[Array, " envs"]:
        """The policy's action in each of a seed's environments."""
        keys = _of_envs(key, observations.shape[0])
        return jax.vmap(self.loop.agent.act, in_axes=(None, 0, 0, None))(network, keys, observations, policy)


def _of_envs(key: PRNGKeyArray, envs: int) -> Key[Array, " envs"]:
    """The key of each of a seed's environments; a single one has the seed's own, as in compiled runs."""
    return key[None] if envs == 1 else jax.random.split(key, envs)


def _row(tree: Any, row: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[row], tree)


def _stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def _of_row(arrays: dict[str, np.ndarray], row: int) -> dict[str, np.ndarray]:
    """The arrays of one seed's environments."""
    prefix = f"{row}/"
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
