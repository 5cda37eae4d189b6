"""What every run does after a rollout: it stores the data, and learns from half fresh, half replayed data."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import Agent, AgentState, Metrics
from uppertail.networks import Network
from uppertail.replay import Replay, Sample
from uppertail.training.seen import Seen
from uppertail.training.settings import OnPolicy
from uppertail.types import POLICY_CHOICE, PyTree, Transition

KEEPS_NEXT_ACTION: dict[OnPolicy, tuple[bool, bool]] = {
    "fresh": (True, False),
    "all": (True, True),
    "none": (False, False),
}
"""Whether fresh data and whether replayed data keep the next action that was taken."""


class Episode(NamedTuple):
    """The episode in progress: its current state, the action already chosen there, and the policy's memory."""

    environment_state: PyTree
    observation: Array
    action: Int[Array, "*envs"]
    ret: Float[Array, "*envs"]
    length: Int[Array, "*envs"]
    memory: PyTree = ()


class RunState(NamedTuple):
    """The whole state of one seed's run.

    A seed that has reached its limit may go on until its chunk ends, or until all have reached theirs. `at_limit` is
    its network at the limit, and means nothing before: `Loop.result` gives the network that the seed has learned.
    `seen` counts visits of each state and action, if they are recorded.
    """

    agent: AgentState
    replay: PyTree
    episode: Episode
    iteration: Int[Array, ""]
    episodes: Int[Array, ""]
    at_limit: Network
    seen: PyTree = ()


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
    """Acts for a while with a fixed policy, then updates: Section 4's data, half fresh and half replayed.

    Args:
        agent: the algorithm.
        replay: the replay buffer.
        rollout_steps: environment steps between updates.
        updates_per_rollout: updates after each rollout.
        batch_size: transitions per update, half of them fresh.
        replay_size: transitions that the replay buffer holds.
        episodes: a seed's run ends after this many episodes; None: no limit.
        steps: a seed's run ends after this many environment steps; None: no limit.
        on_policy: which data keep the next action that was taken.
        replay_start: transitions stored before replay is used.
        counted: number of states and of actions whose visits are counted; None: they are not counted.
    """

    agent: Agent
    replay: Replay
    rollout_steps: int
    updates_per_rollout: int
    batch_size: int
    replay_size: int
    episodes: int | None = None
    steps: int | None = None
    on_policy: OnPolicy = "fresh"
    replay_start: int = 0
    counted: tuple[int, int] | None = None

    @property
    def fresh_count(self) -> int:
        """How many transitions of a minibatch are fresh once replay has started."""
        return min(self.rollout_steps, self.batch_size // 2)

    def begin(self, agent_state: AgentState, observation: Array, episode: PyTree) -> RunState:
        """A run before its first step; `observation` is one of its observations."""
        no, zero = jnp.zeros((), bool), jnp.zeros((), jnp.int32)
        extra = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            jax.eval_shape(agent_state.network.extra, jax.random.key(0)),
        )
        example = Transition(observation, zero, jnp.zeros(()), no, observation, zero, extra)
        at_limit = jax.tree.map(jnp.copy, agent_state.network)
        seen = Seen.nothing(*self.counted) if self.counted else ()
        return RunState(agent_state, self.replay.init(self.replay_size, example), episode, zero, zero, at_limit, seen)

    def learn(
        self, key: PRNGKeyArray, run: RunState, episode: PyTree, fresh: Transition, ended: Bool[Array, " steps"]
    ) -> tuple[RunState, Metrics]:
        """Stores the data of a rollout, and makes its updates."""
        extra_keys = jax.random.split(jax.random.fold_in(key, self.updates_per_rollout), self.rollout_steps)
        fresh = fresh._replace(extra=jax.vmap(run.agent.network.extra)(extra_keys))
        buffer = self.replay.add(run.replay, fresh)
        stored = (run.iteration + 1) * self.rollout_steps

        def update(carry: tuple[AgentState, PyTree], key: PRNGKeyArray) -> tuple[tuple[AgentState, PyTree], Metrics]:
            (state, buffer), (batch_key, update_key) = carry, jax.random.split(key)
            batch = self.minibatch(batch_key, fresh, buffer, stored)
            state, metrics, losses = self.agent.update(state, update_key, batch.transitions, batch.weights)
            buffer = self.replay.update(buffer, batch.indices, losses[self.fresh_count :])
            return (state, buffer), metrics

        sweep_key = jax.random.fold_in(key, self.updates_per_rollout + 1)
        seen = self.agent.sweep(self.agent.took(run.agent, fresh), sweep_key, fresh)
        update_keys = jax.random.split(key, self.updates_per_rollout)
        (agent_state, buffer), metrics = jax.lax.scan(update, (seen, buffer), update_keys)
        target = self.agent.target.after_rollout(agent_state.target, agent_state.network)
        episodes = run.episodes + jnp.sum(ended, dtype=jnp.int32)
        after = RunState(
            agent_state._replace(target=target),
            buffer,
            episode,
            run.iteration + 1,
            episodes,
            run.at_limit,
            self._seen(run, fresh),
        )
        reached = self._reached_limit(after) & ~self._reached_limit(run)
        at_limit = jax.lax.cond(reached, lambda: agent_state.network, lambda: run.at_limit)  # a `where` would copy it
        return after._replace(at_limit=at_limit), metrics

    def idle_records(self, seeds: int, iterations: int) -> tuple[StepRecord, Metrics]:
        """The records of seeds that stood still for this many iterations."""
        steps: Any = np.zeros((seeds, iterations, self.rollout_steps), np.float32)
        updates: Any = np.zeros((seeds, iterations, self.updates_per_rollout), np.float32)
        no, count = steps.astype(bool), steps.astype(np.int32)
        return StepRecord(no, steps, count, no), Metrics(updates, updates, updates)

    def result(self, run: RunState) -> Network:
        """The network at the seed's limit, or the one it has if it has not reached it."""
        over = self._reached_limit(run)
        return jax.tree.map(lambda kept, now: jnp.where(over, kept, now), run.at_limit, run.agent.network)

    def _seen(self, run: RunState, fresh: Transition) -> PyTree:
        if self.counted is None:
            return ()
        before, counts = run.iteration * self.rollout_steps, ~self._reached_limit(run)
        return run.seen.after(fresh.observation, fresh.action, before, counts)

    def _reached_limit(self, run: RunState) -> Bool[Array, ""]:
        reached = jnp.zeros((), bool)
        for count, limit in ((run.episodes, self.episodes), (run.iteration * self.rollout_steps, self.steps)):
            if limit is not None:
                reached |= count >= limit
        return reached

    def minibatch(self, key: PRNGKeyArray, fresh: Transition, buffer: PyTree, stored: Int[Array, ""]) -> Sample:
        """Fresh data on-policy and an equal amount of replay off-policy (Implementation Details).

        Until replay starts, its half is fresh data, too: it goes on through the same permutation, then around again.
        Indices are those of the replayed half alone.
        """
        fresh_key, replay_key = jax.random.split(key)
        order = jax.random.permutation(fresh_key, self.rollout_steps)
        chosen = order[jnp.arange(self.batch_size) % self.rollout_steps]
        keeps_fresh, keeps_replayed = KEEPS_NEXT_ACTION[self.on_policy]
        new = _with_next_action(jax.tree.map(lambda leaf: leaf[chosen], fresh), keeps_fresh)
        drawn = self.replay.sample(buffer, replay_key, self.batch_size - self.fresh_count)
        old = _with_next_action(drawn.transitions, keeps_replayed)
        started = stored >= self.replay_start
        second_half = jax.tree.map(lambda n, o: jnp.where(started, o, n[self.fresh_count :]), new, old)
        transitions = jax.tree.map(lambda n, second: jnp.concatenate([n[: self.fresh_count], second]), new, second_half)
        weights = jnp.concatenate([jnp.ones(self.fresh_count), jnp.where(started, drawn.weights, 1.0)])
        indices = jnp.where(started, drawn.indices, jnp.iinfo(jnp.int32).max)  # beyond every buffer: no update
        return Sample(transitions, indices, weights)


def _with_next_action(transitions: Transition, keeps: bool) -> Transition:
    """The transitions with the next action that was taken, or with the policy's choice in its place."""
    chosen = jnp.full_like(transitions.next_action, POLICY_CHOICE)
    return transitions if keeps else transitions._replace(next_action=chosen)
