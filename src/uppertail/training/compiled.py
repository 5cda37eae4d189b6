"""Compiled environments: whole chunks of a run are one program, which is run for each group of seeds."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from uppertail.environments import Environment, EnvironmentBuilder, FiniteMDP, build_repeated, require_tables_fit
from uppertail.learners import Metrics
from uppertail.masks import ActionMask
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.driver import EVALUATION_STEPS, Driver, Played, Refit, State
from uppertail.training.loop import (
    Actor,
    Episode,
    Loop,
    RunState,
    SeedKeys,
    StepRecord,
    iteration_keys,
    start_keys,
    step_keys,
)
from uppertail.training.programs import Group, Groups, Programs, rows_of
from uppertail.types import POLICY_CHOICE, PyTree, TimeStep, Transition

CHUNK_STEPS = 1024  # environment steps of each seed between two calls of the callback

Carry = tuple[PyTree, TimeStep, PyTree, Float[Array, ""], Int[Array, ""]]
"""State of an episode that is played: environment, time step, the policy's memory, return and length so far."""


@dataclasses.dataclass(frozen=True)
class CompiledRun:
    """One seed's run in a compiled environment; the policy, in training the agent's own, chooses the actions."""

    loop: Loop
    policy: ExplorationPolicy | None = None
    most: int = EVALUATION_STEPS  # actions of an episode that is played

    def init(self, run_key: PRNGKeyArray, environment: Environment) -> RunState:
        network_key, reset_key, action_key = start_keys(run_key)
        environment_state, first = environment.reset(reset_key)
        learned = self.loop.learner.init(network_key, first.observation[None], environment.num_actions)
        choice = self._actor.first(action_key, learned.network, first.observation, first.action_mask)
        zero, none = jnp.zeros(()), jnp.zeros((), jnp.int32)
        episode = Episode(environment_state, first.observation, choice.action, zero, none, zero, choice.memory)
        return self.loop.begin(learned, episode)

    def chunk(
        self, most: int, count: Int[Array, ""], run_key: PRNGKeyArray, environment: Environment, run: RunState
    ) -> tuple[RunState, StepRecord, Metrics]:
        """`count` iterations in a row; records and metrics have leading axes [most, steps or updates], 0 at the end."""

        def body(number: Int[Array, ""], carry: tuple[RunState, PyTree]) -> tuple[RunState, PyTree]:
            run, rows = carry
            run, *now = self.iterate(run_key, environment, run)
            put = functools.partial(jax.lax.dynamic_update_index_in_dim, index=number, axis=0)
            return run, jax.tree.map(put, rows, tuple(now))

        shapes = jax.eval_shape(lambda: self.iterate(run_key, environment, run)[1:])
        rows = jax.tree.map(lambda leaf: jnp.zeros((most, *leaf.shape), leaf.dtype), shapes)
        run, (records, metrics) = jax.lax.fori_loop(0, count, body, (run, rows))
        return run, records, metrics

    def iterate(
        self, run_key: PRNGKeyArray, environment: Environment, run: RunState
    ) -> tuple[RunState, StepRecord, Metrics]:
        act_key, learn_key = iteration_keys(run_key, run.iteration)
        episode, fresh, records = self.rollout(act_key, environment, self.loop.learner.acting(run.learned), run.episode)
        run, metrics = self.loop.learn(learn_key, run, episode, fresh, jnp.asarray(records.lasted()))
        return run, records, metrics

    def rollout(
        self, key: PRNGKeyArray, environment: Environment, network: Network, episode: Episode
    ) -> tuple[Episode, Transition, StepRecord]:
        """Makes environment steps with a fixed policy; the action at s' is chosen at once: on-policy data."""
        actor = self._actor

        def step(episode: Episode, keys: Key[Array, "3"]) -> tuple[Episode, tuple[Transition, StepRecord]]:
            step_key, reset_key, action_key = keys
            environment_state, now = environment.step(step_key, episode.environment_state, episode.action)
            ended = now.terminated | now.truncated
            start_state, first = environment.reset(reset_key)
            environment.require_masks(first, now)
            environment_state, observation, mask = jax.tree.map(
                lambda at_start, going_on: jnp.where(ended, at_start, going_on),
                (start_state, first.observation, first.action_mask),
                (environment_state, now.observation, now.action_mask),
            )
            view = actor.view(network, observation)
            choice = actor.next(action_key, view, observation, episode.memory, ended, mask)
            next_action = jnp.where(ended, POLICY_CHOICE, choice.action)  # after an end it is another episode's
            ret, length = episode.ret + now.reward, episode.length + 1
            earned = actor.agent.discount * episode.earned + now.reward
            going_on = Episode(
                environment_state,
                observation,
                choice.action,
                jnp.where(ended, 0.0, ret),
                jnp.where(ended, 0, length),
                jnp.where(ended, 0.0, earned),
                choice.memory,
            )
            transition = Transition(
                episode.observation,
                episode.action,
                now.reward,
                now.terminated,
                now.observation,
                next_action,
                next_action_mask=now.action_mask,
            )
            cut = now.truncated & ~now.terminated
            return going_on, (transition, StepRecord(ended, ret, length, earned, choice.exploratory, cut))

        keys = jax.vmap(step_keys, in_axes=(None, 0))(key, jnp.arange(self.loop.rollout_steps))
        episode, (transitions, records) = jax.lax.scan(step, episode, keys)
        return episode, transitions, records

    def play(
        self, episodes: int, key: PRNGKeyArray, environment: Environment, network: Network
    ) -> tuple[Float[Array, " episodes"], Int[Array, " episodes"]]:
        """Undiscounted returns and lengths of episodes that are played without further learning."""
        actor = self._actor

        def one(key: Key[Array, ""]) -> tuple[Float[Array, ""], Int[Array, ""]]:
            reset_key, play_key = jax.random.split(key)
            state, first = environment.reset(reset_key)

            def step(carry: Carry) -> Carry:
                state, now, memory, ret, steps = carry
                action_key, step_key = jax.random.split(jax.random.fold_in(play_key, steps))
                choice = actor.play(action_key, network, now.observation, memory, steps == 0, now.action_mask)
                state, now = environment.step(step_key, state, choice.action)
                return state, now, choice.memory, ret + now.reward, steps + 1

            def going_on(carry: Carry) -> Bool[Array, ""]:
                return ~(carry[1].terminated | carry[1].truncated) & (carry[4] < self.most)

            carry = (state, first, actor.blank(network, first.observation), jnp.zeros(()), jnp.zeros((), jnp.int32))
            *_, ret, steps = jax.lax.while_loop(going_on, step, carry)
            return ret, steps

        return jax.vmap(one)(jax.random.split(key, episodes))

    @property
    def _actor(self) -> Actor:
        return Actor(self.loop.agent, self.policy or self.loop.agent.policy)


class CompiledDriver(Driver):
    """Runs of all seeds in compiled environments, one program for each group of them."""

    def __init__(self, builder: EnvironmentBuilder, keys: SeedKeys, programs: Programs) -> None:
        require_tables_fit(builder, keys.environment)
        self.keys, self.programs, self.groups = keys, programs, Groups(keys.run.shape[0])
        self._build = programs.compiled(_build, builder, keys.environment, keep=False)  # it may read what has changed
        self.environments = self._build(keys.environment)
        if isinstance(self.environments, FiniteMDP):
            self.environments.require_sound()
        self.identity = self.environments
        one = rows_of(self.environments, 0)
        self.observations, self.num_actions = one.observations, one.num_actions
        self._arguments = [*map(self.groups.split, (keys.run, self.environments))]
        self.most = math.ceil(EVALUATION_STEPS / builder.repeats)

    def begin(self) -> None:
        self.first, self.first_mask = self.programs.call(_first, None, self.keys.run, self.environments)

    def release(self) -> None:
        """Nothing is open."""

    def table(self) -> FiniteMDP | None:
        if not isinstance(self.environments, FiniteMDP):
            return None
        keys = jnp.broadcast_to(jax.random.key(0), self.keys.environment.shape)  # so many that the program is there
        return rows_of(self._build(keys), 0)

    def use(self, loop: Loop, refit: Refit | None) -> None:
        del refit  # what compiled environments pay is measured before a run
        self.loop, self.run, self.iterations = loop, CompiledRun(loop), max(1, CHUNK_STEPS // loop.rollout_steps)
        self.template = jax.eval_shape(jax.vmap(self.run.init), self.keys.run, self.environments)
        self._chunks: list[Callable[..., Any]] = []

    def start(self) -> State:
        return self.groups.split(self.programs.call(CompiledRun.init, self.run, self.keys.run, self.environments))

    def gather(self, state: State, part: Callable[[RunState], PyTree] = lambda run: run) -> PyTree:
        return self.groups.join([part(each) for each in state])

    def advance(
        self, state: State, finished: Bool[np.ndarray, " seeds"] | None = None, iterations: int | None = None
    ) -> tuple[State, StepRecord, Metrics]:
        count = iterations or self.iterations
        if not self._chunks:
            self._chunks = [*map(self._compiled, self.groups, *self._arguments)]

        def advance_group(
            group: Group, chunk: Callable[..., Any], keys: Any, environments: Environment, run: RunState
        ) -> tuple[RunState, Any]:
            still = finished is not None and bool(finished[group.rows].all())
            run, *rows = chunk(np.int32(0 if still else count), keys, environments, run)
            return run, jax.tree.map(lambda leaf: np.asarray(leaf)[:, :count], tuple(rows))

        with self.programs.in_loop():
            done = self.groups.map(advance_group, [*self.groups], self._chunks, *self._arguments, state)
            records, metrics = self.groups.join([rows for _, rows in done])
        return [run for run, _ in done], records, metrics

    def _compiled(self, group: Group, keys: Any, environments: Environment) -> Callable[..., Any]:
        """The program of a group's chunk; a run that begins and one that goes on use the same."""
        arguments = (np.int32(0), keys, environments, group.part_of(self.template))
        static = (self.iterations,)
        return self.programs.compiled(CompiledRun.chunk, self.run, *arguments, static=static, shared=1, donate=(3,))

    def play(self, networks: Network, policy: ExplorationPolicy, episodes: int) -> Played:
        run = CompiledRun(self.run.loop, policy, self.most)
        arguments = (self.keys.evaluation, self.environments, networks)
        return Played(*map(np.asarray, self.programs.call(CompiledRun.play, run, *arguments, static=(episodes,))))

    def saved(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, arrays: dict[str, np.ndarray], state: RunState) -> tuple[State, str | None]:
        del arrays  # the state is complete without them
        return self.groups.split(state), None

    def close(self) -> None:
        self.groups.close()


def _build(builder: EnvironmentBuilder, key: PRNGKeyArray) -> Environment:
    return build_repeated(builder, key)


def _first(_: None, run_key: PRNGKeyArray, environment: Environment) -> tuple[Array, ActionMask]:
    first = environment.reset(start_keys(run_key)[1])[1]
    environment.require_masks(first)
    return first.observation, first.action_mask
