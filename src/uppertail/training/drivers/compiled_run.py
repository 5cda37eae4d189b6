"""A whole training run of one seed in a compiled environment, as pure functions of a key."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from uppertail.environments import Environment
from uppertail.learners import Metrics
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.acting import Actor
from uppertail.training.drivers.base import EVALUATION_STEPS
from uppertail.training.loop import Episode, Loop, RunState, StepRecord
from uppertail.training.seeds import StepKeys, iteration_keys, play_keys, start_keys, step_keys
from uppertail.types import POLICY_CHOICE, PyTree, TimeStep, Transition

Carry = tuple[PyTree, TimeStep, PyTree, Float[Array, ""], Int[Array, ""]]
"""State of an episode that is played: environment, time step, the policy's memory, return and length so far."""


@dataclasses.dataclass(frozen=True)
class CompiledRun:
    """One seed's run in a compiled environment.

    Args:
        loop: what the run does with its steps.
        policy: chooses the actions; None: the agent's own.
    """

    loop: Loop
    policy: ExplorationPolicy | None = None

    def init(self, run_key: PRNGKeyArray, environment: Environment) -> RunState:
        """A run before its first step."""
        keys = start_keys(run_key)
        environment_state, first = environment.reset(keys.reset)
        learned = self.loop.learner.init(keys.network, first.observation[None], environment.num_actions)
        choice = self._actor.first(keys.action, learned.network, first.observation)
        zero = jnp.zeros((), jnp.int32)
        episode = Episode(environment_state, first.observation, choice.action, jnp.zeros(()), zero, choice.memory)
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
        """One rollout and its updates."""
        act_key, learn_key = iteration_keys(run_key, run.iteration)
        episode, fresh, records = self.rollout(act_key, environment, run.learned.network, run.episode)
        run, metrics = self.loop.learn(learn_key, run, episode, fresh, records.ended)
        return run, records, metrics

    def rollout(
        self, key: PRNGKeyArray, environment: Environment, network: Network, episode: Episode
    ) -> tuple[Episode, Transition, StepRecord]:
        """Makes environment steps with a fixed policy; the action at s' is chosen at once: on-policy data."""
        actor = self._actor

        def step(episode: Episode, keys: StepKeys) -> tuple[Episode, tuple[Transition, StepRecord]]:
            environment_state, now = environment.step(keys.step, episode.environment_state, episode.action)
            ended = now.terminated | now.truncated
            start_state, first = environment.reset(keys.reset)
            environment_state, observation = jax.tree.map(
                lambda at_start, going_on: jnp.where(ended, at_start, going_on),
                (start_state, first.observation),
                (environment_state, now.observation),
            )
            choice = actor.next(keys.action, network, observation, episode.memory, ended)
            next_action = jnp.where(ended, POLICY_CHOICE, choice.action)  # after an end it is another episode's
            ret, length = episode.ret + now.reward, episode.length + 1
            going_on = Episode(
                environment_state,
                observation,
                choice.action,
                jnp.where(ended, 0.0, ret),
                jnp.where(ended, 0, length),
                choice.memory,
            )
            transition = Transition(
                episode.observation, episode.action, now.reward, now.terminated, now.observation, next_action
            )
            return going_on, (transition, StepRecord(ended, ret, length, choice.exploratory))

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
                action_key, step_key = play_keys(play_key, steps)
                choice = actor.play(action_key, network, now.observation, memory, steps == 0)
                state, now = environment.step(step_key, state, choice.action)
                return state, now, choice.memory, ret + now.reward, steps + 1

            def going_on(carry: Carry) -> Bool[Array, ""]:
                return ~(carry[1].terminated | carry[1].truncated) & (carry[4] < EVALUATION_STEPS)

            carry = (state, first, actor.blank(network, first.observation), jnp.zeros(()), jnp.zeros((), jnp.int32))
            *_, ret, steps = jax.lax.while_loop(going_on, step, carry)
            return ret, steps

        return jax.vmap(one)(jax.random.split(key, episodes))

    @property
    def _actor(self) -> Actor:
        return Actor(self.loop.agent, self.policy or self.loop.agent.policy)
