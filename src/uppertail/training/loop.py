"""What every run does after a rollout, whoever made the steps: keep the data, learn from half fresh, half replay."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail import replay
from uppertail.agent import Agent, AgentState, Metrics
from uppertail.networks import PerActionNetwork
from uppertail.training.settings import OnPolicy
from uppertail.types import POLICY_CHOICE, Transition

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
    action: Int[Array, "*envs"]
    ret: Float[Array, "*envs"]
    length: Int[Array, "*envs"]


class RunState(NamedTuple):
    """The whole state of one seed's run.

    A seed that has reached its limit may go on until its chunk ends, or until all have; `learned` is its network at the
    limit, and means nothing before: `Loop.learned` is what it has learned.
    """

    agent: AgentState
    replay: replay.Replay
    episode: Episode
    iteration: Int[Array, ""]
    episodes: Int[Array, ""]
    learned: PerActionNetwork


class StepRecord(NamedTuple):
    """One environment step, as the loop records it.

    The return and length so far, whether the episode ended, and whether the next action is not the greedy one.
    """

    ended: Bool[Array, "*steps"]
    ret: Float[Array, "*steps"]
    length: Int[Array, "*steps"]
    exploratory: Bool[Array, "*steps"]


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

    def begin(self, agent_state: AgentState, observation: Array, episode: Any) -> RunState:
        """A run before its first step; `observation` is one of its observations."""
        no, zero = jnp.zeros((), bool), jnp.zeros((), jnp.int32)
        example = Transition(observation, zero, jnp.zeros(()), no, observation, zero)
        learned = jax.tree.map(jnp.copy, agent_state.network)
        return RunState(agent_state, replay.init(self.replay_size, example), episode, zero, zero, learned)

    def keys(self, run_key: PRNGKeyArray, iteration: Int[Array, ""]) -> tuple[PRNGKeyArray, PRNGKeyArray]:
        """The keys of the next rollout and of its updates, after so many iterations."""
        act_key, learn_key = jax.random.split(jax.random.fold_in(run_key, iteration + 1))
        return act_key, learn_key

    def learn(
        self, key: PRNGKeyArray, run: RunState, episode: Any, fresh: Transition, ended: Bool[Array, " steps"]
    ) -> tuple[RunState, Metrics]:
        """Keeps the data of a rollout, and makes its updates."""
        buffer = replay.add(run.replay, fresh)

        def update(state: AgentState, key: PRNGKeyArray) -> tuple[AgentState, Metrics]:
            batch_key, update_key = jax.random.split(key)
            return self.agent.update(state, update_key, self.minibatch(batch_key, fresh, buffer))

        seen = self.agent.observe(run.agent, fresh.observation)
        agent_state, metrics = jax.lax.scan(update, seen, jax.random.split(key, self.updates_per_rollout))
        episodes = run.episodes + jnp.sum(ended, dtype=jnp.int32)
        after = RunState(agent_state, buffer, episode, run.iteration + 1, episodes, run.learned)
        reached = self._at_its_limit(after) & ~self._at_its_limit(run)
        learned = jax.lax.cond(reached, lambda: agent_state.network, lambda: run.learned)  # a `where` would copy it
        return after._replace(learned=learned), metrics

    def nothing(self, seeds: int, iterations: int) -> tuple[StepRecord, Metrics]:
        """What is recorded of seeds that stood still for so many iterations."""
        steps: Any = np.zeros((seeds, iterations, self.rollout_steps), np.float32)
        updates: Any = np.zeros((seeds, iterations, self.updates_per_rollout), np.float32)
        no, count = steps.astype(bool), steps.astype(np.int32)
        return StepRecord(no, steps, count, no), Metrics(updates, updates, updates)

    def learned(self, run: RunState) -> PerActionNetwork:
        """The network at the seed's limit, or the one it has if it has not reached it."""
        at_its_limit = self._at_its_limit(run)
        return jax.tree.map(lambda kept, now: jnp.where(at_its_limit, kept, now), run.learned, run.agent.network)

    def _at_its_limit(self, run: RunState) -> Bool[Array, ""]:
        reached = jnp.zeros((), bool)
        for count, limit in ((run.episodes, self.episodes), (run.iteration * self.rollout_steps, self.steps)):
            if limit is not None:
                reached |= count >= limit
        return reached

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


def _with_next_action(transitions: Transition, keeps: bool) -> Transition:
    """The transitions with the next action that was taken, or with the policy's choice in its place."""
    chosen = jnp.full_like(transitions.next_action, POLICY_CHOICE)
    return transitions if keeps else transitions._replace(next_action=chosen)
