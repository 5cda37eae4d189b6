"""A whole training run as a function of a key, in chunks that are compiled once and run for each group of seeds."""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from uppertail.agent import Metrics
from uppertail.environments import Environment, EnvironmentBuilder, HostBuilder
from uppertail.networks import PerActionNetwork
from uppertail.policies import ExplorationPolicy
from uppertail.training import tensors
from uppertail.training.driver import EVALUATION_STEPS, Driver, Played, Stopwatch
from uppertail.training.groups import Group, Groups, over_seeds
from uppertail.training.loop import Episode, Loop, RunState, StepRecord
from uppertail.training.seeds import SeedKeys
from uppertail.types import POLICY_CHOICE, ReturnRange, TimeStep, Transition


@dataclasses.dataclass(frozen=True)
class CompiledRun:
    """One seed's run in a compiled environment, as pure functions.

    Args:
        loop: what is done with the steps.
    """

    loop: Loop

    def init(self, run_key: PRNGKeyArray, environment: Environment) -> RunState:
        """A run before its first step."""
        network_key, reset_key, action_key = _start_keys(run_key)
        agent_state = self.loop.agent.init(network_key, environment.num_actions)
        environment_state, first = environment.reset(reset_key)
        agent_state = self.loop.agent.observe(agent_state, first.observation[None])
        action = self.loop.agent.act(agent_state.network, action_key, first.observation)
        zero = jnp.zeros((), jnp.int32)
        episode = Episode(environment_state, first.observation, action, jnp.zeros(()), zero)
        return self.loop.begin(agent_state, first.observation, episode)

    def chunk(
        self, run_key: PRNGKeyArray, environment: Environment, run: RunState, iterations: int
    ) -> tuple[RunState, StepRecord, Metrics]:
        """Some iterations in a row; records and metrics have leading axes [iterations, steps or updates]."""

        def body(run: RunState, _: None) -> tuple[RunState, tuple[StepRecord, Metrics]]:
            run, records, metrics = self.iterate(run_key, environment, run)
            return run, (records, metrics)

        run, (records, metrics) = jax.lax.scan(body, run, length=iterations)
        return run, records, metrics

    def iterate(
        self, run_key: PRNGKeyArray, environment: Environment, run: RunState
    ) -> tuple[RunState, StepRecord, Metrics]:
        """One rollout and its updates."""
        act_key, learn_key = self.loop.keys(run_key, run.iteration)
        episode, fresh, records = self.rollout(act_key, environment, run.agent.network, run.episode)
        run, metrics = self.loop.learn(learn_key, run, episode, fresh, records.ended)
        return run, records, metrics

    def rollout(
        self, key: PRNGKeyArray, environment: Environment, network: PerActionNetwork, episode: Episode
    ) -> tuple[Episode, Transition, StepRecord]:
        """Environment steps with the policy held still; the action at s' is chosen at once: on-policy data."""
        agent = self.loop.agent

        def step(episode: Episode, keys: Key[Array, " three"]) -> tuple[Episode, tuple[Transition, StepRecord]]:
            step_key, reset_key, action_key = keys
            environment_state, now = environment.step(step_key, episode.environment_state, episode.action)
            ended = now.terminated | now.truncated
            start_state, first = environment.reset(reset_key)
            environment_state, observation = jax.tree.map(
                lambda at_start, going_on: jnp.where(ended, at_start, going_on),
                (start_state, first.observation),
                (environment_state, now.observation),
            )
            z = agent.returns(network, observation)
            action = agent.policy.select(action_key, agent.family, z)
            next_action = jnp.where(ended, POLICY_CHOICE, action)  # the action chosen belongs to the new episode
            ret, length = episode.ret + now.reward, episode.length + 1
            going_on = Episode(
                environment_state, observation, action, jnp.where(ended, 0.0, ret), jnp.where(ended, 0, length)
            )
            transition = Transition(
                episode.observation, episode.action, now.reward, now.terminated, now.observation, next_action
            )
            exploratory = agent.explores(z, action)
            return going_on, (transition, StepRecord(ended, ret, length, exploratory))

        of_steps = jax.random.split(key, self.loop.rollout_steps)
        keys = jax.vmap(lambda of_step: jax.random.split(of_step, 3))(of_steps)
        episode, (transitions, records) = jax.lax.scan(step, episode, keys)
        return episode, transitions, records

    def play(
        self,
        key: PRNGKeyArray,
        environment: Environment,
        network: PerActionNetwork,
        policy: ExplorationPolicy,
        episodes: int,
    ) -> tuple[Float[Array, " episodes"], Int[Array, " episodes"]]:
        """Undiscounted returns and lengths of episodes with the network held still."""

        def one(key: PRNGKeyArray) -> tuple[Float[Array, ""], Int[Array, ""]]:
            reset_key, play_key = jax.random.split(key)
            state, first = environment.reset(reset_key)

            def step(carry: tuple[Any, TimeStep, Float[Array, ""], Int[Array, ""]]) -> Any:
                state, now, ret, steps = carry
                action_key, step_key = jax.random.split(jax.random.fold_in(play_key, steps))
                action = self.loop.agent.act(network, action_key, now.observation, policy)
                state, now = environment.step(step_key, state, action)
                return state, now, ret + now.reward, steps + 1

            def going_on(carry: tuple[Any, TimeStep, Float[Array, ""], Int[Array, ""]]) -> Bool[Array, ""]:
                return ~(carry[1].terminated | carry[1].truncated) & (carry[3] < EVALUATION_STEPS)

            carry = (state, first, jnp.zeros(()), jnp.zeros((), jnp.int32))
            _, _, ret, steps = jax.lax.while_loop(going_on, step, carry)
            return ret, steps

        return jax.vmap(one)(jax.random.split(key, episodes))


class CompiledDriver(Driver):
    """Runs of all seeds in compiled environments, one program for each group of them.

    Args:
        builder: builds the environment of each seed.
        keys: the keys of each seed.
        iterations: rollouts per chunk.
        seconds: to which times are added.
    """

    def __init__(self, builder: EnvironmentBuilder, keys: SeedKeys, iterations: int, seconds: Stopwatch) -> None:
        self.keys, self.iterations, self.seconds = keys, iterations, seconds
        self.known_returns = builder.known_returns if isinstance(builder, HostBuilder) else None
        environments: Environment = jax.jit(jax.vmap(builder.build))(keys.environment)
        self.environments = environments
        self.encoding, self.num_actions = environments.encoding, environments.num_actions
        self.groups = Groups(keys.run.shape[0])
        self._keys, self._environments = self.groups.split(keys.run), self.groups.split(self.environments)

    def return_range(self, discount: float) -> ReturnRange:
        if self.known_returns is not None:
            return self.known_returns
        of_each = jax.jit(jax.vmap(lambda environment: environment.return_range(discount)))
        low, high = of_each(self.environments)
        return ReturnRange(float(jnp.min(low)), float(jnp.max(high)))

    def template(self) -> RunState:
        return self._template

    @functools.cached_property
    def _template(self) -> RunState:
        return jax.eval_shape(jax.vmap(CompiledRun(self.loop).init), self.keys.run, self.environments)

    @functools.cached_property
    def _chunks(self) -> list[Any]:
        """The compiled chunk of each group: the same program whether a run begins or goes on."""

        def compiled(group: Group, keys: Any, environments: Environment) -> Any:
            chunk = over_seeds(self._chunk, group.size)
            return self.compiled(chunk, keys, environments, group.part_of(self._template), donate=(2,))

        return self.groups.programs(compiled, self._keys, self._environments)

    def _chunk(self, key: PRNGKeyArray, environment: Environment, state: RunState) -> Any:
        return CompiledRun(self.loop).chunk(key, environment, state, self.iterations)

    def start(self) -> list[RunState]:
        arguments = (self.keys.run, self.environments)
        return self.groups.split(self.compiled(jax.vmap(CompiledRun(self.loop).init), *arguments)(*arguments))

    def gathered(self, state: list[RunState], part: Callable[[RunState], Any] = lambda run: run) -> Any:
        return self.groups.joined([part(each) for each in state])

    def advance(
        self, state: list[RunState], finished: Bool[np.ndarray, " seeds"] | None = None
    ) -> tuple[list[RunState], StepRecord, Metrics]:
        chunks = self._chunks
        began = time.perf_counter()

        def advance(group: Group, chunk: Any, *arguments: Any) -> Any:
            if finished is not None and finished[group.rows].all():
                return arguments[-1], self.loop.nothing(group.size, self.iterations)
            state, records, metrics = chunk(*arguments)
            return state, jax.tree.map(np.asarray, (records, metrics))

        done = self.groups.map(advance, list(self.groups), chunks, self._keys, self._environments, state)
        records, metrics = self.groups.joined([each[1] for each in done])
        self.seconds.training += time.perf_counter() - began
        return [each[0] for each in done], records, metrics

    def start_observations(self) -> Array:
        def first(run_key: PRNGKeyArray, environment: Environment) -> Array:
            return environment.reset(_start_keys(run_key)[1])[1].observation

        return jax.jit(jax.vmap(first))(self.keys.run, self.environments)

    def play(
        self, networks: PerActionNetwork, policy: ExplorationPolicy, keys: Key[Array, " seeds"], episodes: int
    ) -> Played:
        run = CompiledRun(self.loop)
        play = jax.vmap(lambda key, environment, network: run.play(key, environment, network, policy, episodes))
        arguments = (keys, self.environments, networks)
        return Played(*map(np.asarray, self.compiled(play, *arguments)(*arguments)))

    def identity(self) -> dict[str, np.ndarray]:
        return tensors.named(self.environments)

    def saved(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, arrays: dict[str, np.ndarray], state: RunState) -> tuple[list[RunState], str | None]:
        del arrays  # the state is all there is
        return self.groups.split(state), None

    def close(self) -> None:
        self.groups.close()


def _start_keys(run_key: PRNGKeyArray) -> tuple[PRNGKeyArray, PRNGKeyArray, PRNGKeyArray]:
    """Keys of the network, of the first reset and of the first action."""
    network_key, reset_key, action_key = jax.random.split(jax.random.fold_in(run_key, 0), 3)
    return network_key, reset_key, action_key
