"""A whole training run as a function of a key, in chunks that are compiled once for all seeds."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail import replay
from uppertail.agent import Agent, AgentState, Metrics
from uppertail.environments import Environment
from uppertail.networks import PerActionNetwork
from uppertail.policies import Greedy
from uppertail.training.settings import OnPolicy
from uppertail.types import POLICY_CHOICE, TimeStep, Transition

KEEPS_NEXT_ACTION: dict[OnPolicy, tuple[bool, bool]] = {
    "fresh": (True, False),
    "all": (True, True),
    "none": (False, False),
}
"""Whether fresh and whether replayed data keep the next action that was taken."""


class Episode(NamedTuple):
    """The episode in progress: where it is, and the action already chosen there."""

    environment_state: Any
    observation: Array
    action: Int[Array, ""]
    ret: Float[Array, ""]
    length: Int[Array, ""]


class RunState(NamedTuple):
    """The whole state of one seed's run.

    Seeds run in step, so one that has reached its limit goes on until all have; `learned` is its network at the limit.
    """

    agent: AgentState
    replay: replay.Replay
    episode: Episode
    iteration: Int[Array, ""]
    episodes: Int[Array, ""]
    learned: PerActionNetwork


class StepRecord(NamedTuple):
    """One environment step, as the loop records it: the return and length so far, and whether the episode ended."""

    ended: Bool[Array, "*steps"]
    ret: Float[Array, "*steps"]
    length: Int[Array, "*steps"]


@dataclasses.dataclass(frozen=True)
class Loop:
    """Act for a while with the policy held still, then update: Section 4's data, half fresh and half replayed.

    Args:
        agent: the algorithm.
        rollout_steps: environment steps between updates.
        updates_per_rollout: updates after each rollout.
        batch_size: transitions per update, half of them fresh.
        replay_size: transitions that the replay buffer holds.
        episodes: a seed's run ends after this many episodes; None: no limit.
        steps: a seed's run ends after this many environment steps; None: no limit.
        on_policy: which data keep the next action that was taken.
        replay_start: transitions stored before replay is used.
    """

    agent: Agent
    rollout_steps: int
    updates_per_rollout: int
    batch_size: int
    replay_size: int
    episodes: int | None = None
    steps: int | None = None
    on_policy: OnPolicy = "fresh"
    replay_start: int = 0

    def init(self, run_key: PRNGKeyArray, environment: Environment) -> RunState:
        """A run before its first step."""
        network_key, reset_key, action_key = jax.random.split(jax.random.fold_in(run_key, 0), 3)
        agent_state = self.agent.init(network_key, environment.num_actions)
        environment_state, first = environment.reset(reset_key)
        action = self.agent.act(agent_state.network, action_key, first.observation)
        example = Transition(
            first.observation, action, first.reward, first.terminated, first.observation, jnp.zeros_like(action)
        )
        zero = jnp.zeros((), jnp.int32)
        episode = Episode(environment_state, first.observation, action, jnp.zeros(()), zero)
        learned = jax.tree.map(jnp.copy, agent_state.network)
        return RunState(agent_state, replay.init(self.replay_size, example), episode, zero, zero, learned)

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
        act_key, learn_key = jax.random.split(jax.random.fold_in(run_key, run.iteration + 1))
        episode, fresh, records = self.rollout(act_key, environment, run.agent.network, run.episode)
        buffer = replay.add(run.replay, fresh)

        def learn(state: AgentState, key: PRNGKeyArray) -> tuple[AgentState, Metrics]:
            batch_key, update_key = jax.random.split(key)
            return self.agent.update(state, update_key, self.minibatch(batch_key, fresh, buffer))

        agent_state, metrics = jax.lax.scan(learn, run.agent, jax.random.split(learn_key, self.updates_per_rollout))
        at_its_limit = self._at_its_limit(run)
        learned = jax.tree.map(lambda kept, new: jnp.where(at_its_limit, kept, new), run.learned, agent_state.network)
        episodes = run.episodes + jnp.sum(records.ended, dtype=jnp.int32)
        return RunState(agent_state, buffer, episode, run.iteration + 1, episodes, learned), records, metrics

    def _at_its_limit(self, run: RunState) -> Bool[Array, ""]:
        reached = jnp.zeros((), bool)
        for count, limit in ((run.episodes, self.episodes), (run.iteration * self.rollout_steps, self.steps)):
            if limit is not None:
                reached |= count >= limit
        return reached

    def rollout(
        self, key: PRNGKeyArray, environment: Environment, network: PerActionNetwork, episode: Episode
    ) -> tuple[Episode, Transition, StepRecord]:
        """Environment steps with the policy held still; the action at s' is chosen at once: on-policy data."""

        def step(episode: Episode, key: PRNGKeyArray) -> tuple[Episode, tuple[Transition, StepRecord]]:
            step_key, reset_key, action_key = jax.random.split(key, 3)
            environment_state, now = environment.step(step_key, episode.environment_state, episode.action)
            ended = now.terminated | now.truncated
            start_state, first = environment.reset(reset_key)
            environment_state, observation = jax.tree.map(
                lambda at_start, going_on: jnp.where(ended, at_start, going_on),
                (start_state, first.observation),
                (environment_state, now.observation),
            )
            action = self.agent.act(network, action_key, observation)
            next_action = jnp.where(ended, POLICY_CHOICE, action)  # the action chosen belongs to the new episode
            ret, length = episode.ret + now.reward, episode.length + 1
            going_on = Episode(
                environment_state, observation, action, jnp.where(ended, 0.0, ret), jnp.where(ended, 0, length)
            )
            transition = Transition(
                episode.observation, episode.action, now.reward, now.terminated, now.observation, next_action
            )
            return going_on, (transition, StepRecord(ended, ret, length))

        episode, (transitions, records) = jax.lax.scan(step, episode, jax.random.split(key, self.rollout_steps))
        return episode, transitions, records

    def minibatch(self, key: PRNGKeyArray, fresh: Transition, buffer: replay.Replay) -> Transition:
        """Fresh data on-policy and an equal amount of replay off-policy (Implementation Details).

        Until replay starts its half is fresh data too: on through the same permutation, then around it again.
        """
        fresh_key, replay_key = jax.random.split(key)
        fresh_count = min(self.rollout_steps, self.batch_size // 2)
        order = jax.random.permutation(fresh_key, self.rollout_steps)
        chosen = order[jnp.arange(self.batch_size) % self.rollout_steps]
        keeps_fresh, keeps_replayed = KEEPS_NEXT_ACTION[self.on_policy]
        new = _with_next_action(jax.tree.map(lambda leaf: leaf[chosen], fresh), keeps_fresh)
        old = _with_next_action(replay.sample(buffer, replay_key, self.batch_size - fresh_count), keeps_replayed)
        started = buffer.added >= self.replay_start
        second_half = jax.tree.map(lambda n, o: jnp.where(started, o, n[fresh_count:]), new, old)
        return jax.tree.map(lambda n, second: jnp.concatenate([n[:fresh_count], second]), new, second_half)

    def evaluate(
        self, key: PRNGKeyArray, environment: Environment, network: PerActionNetwork, episodes: int
    ) -> Float[Array, " episodes"]:
        """Undiscounted returns of greedy episodes."""

        def play(key: PRNGKeyArray) -> Float[Array, ""]:
            reset_key, play_key = jax.random.split(key)
            state, first = environment.reset(reset_key)

            def step(carry: tuple[Any, TimeStep, Float[Array, ""], Int[Array, ""]]) -> Any:
                state, now, ret, steps = carry
                action_key, step_key = jax.random.split(jax.random.fold_in(play_key, steps))
                action = self.agent.act(network, action_key, now.observation, Greedy())
                state, now = environment.step(step_key, state, action)
                return state, now, ret + now.reward, steps + 1

            def going_on(carry: tuple[Any, TimeStep, Float[Array, ""], Int[Array, ""]]) -> Bool[Array, ""]:
                return ~(carry[1].terminated | carry[1].truncated)

            return jax.lax.while_loop(going_on, step, (state, first, jnp.zeros(()), jnp.zeros((), jnp.int32)))[2]

        return jax.vmap(play)(jax.random.split(key, episodes))


def _with_next_action(transitions: Transition, keeps: bool) -> Transition:
    """The transitions with the next action that was taken, or with the policy's choice in its place."""
    chosen = jnp.full_like(transitions.next_action, POLICY_CHOICE)
    return transitions if keeps else transitions._replace(next_action=chosen)
