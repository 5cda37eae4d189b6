"""What every run does after a rollout: it learns from it, and keeps count; the keys of all that is random in it."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.learners import Learner, LearnerState, Metrics
from uppertail.networks import Network
from uppertail.schema import traced
from uppertail.types import PyTree, Transition


class SeedKeys(NamedTuple):
    """The keys of a seed, from which all randomness of its run comes."""

    environment: PRNGKeyArray  # to build the environment
    run: PRNGKeyArray
    evaluation: PRNGKeyArray


def seed_keys(seed: int | Int[Array, ""]) -> SeedKeys:
    """The keys of one seed."""
    return SeedKeys(*jax.random.split(jax.random.key(seed), 3))


all_seed_keys = jax.jit(jax.vmap(seed_keys))
"""The keys of several seeds, every array with a leading axis of seeds."""


def start_keys(run_key: PRNGKeyArray) -> Key[Array, "3"]:
    """The keys of a run's beginning: for its network, the first reset and the first action."""
    return jax.random.split(jax.random.fold_in(run_key, 0), 3)


def iteration_keys(run_key: PRNGKeyArray, iteration: Int[Array, ""]) -> Key[Array, "2"]:
    """The keys of the next rollout and of its updates, after this many iterations."""
    return jax.random.split(jax.random.fold_in(run_key, iteration + 1))


def step_keys(rollout_key: PRNGKeyArray, step: int | Int[Array, ""]) -> Key[Array, "3"]:
    """The keys of a step of a rollout: for the environment, a reset if the episode ends there, and the next action."""
    return jax.random.split(jax.random.fold_in(rollout_key, step), 3)


class Episode(NamedTuple):
    """The episode in progress: its current state, the action already chosen there, and the policy's memory."""

    environment_state: PyTree
    observation: Array
    action: Int[Array, "*envs"]
    ret: Float[Array, "*envs"]
    length: Int[Array, "*envs"]
    memory: PyTree = ()


class VisitCounts(NamedTuple):
    """How often each action of each state was taken, and at which environment step last, counted from 1; 0: never."""

    visits: Int[Array, "states actions"]
    last: Int[Array, "states actions"]


class RunState(NamedTuple):
    """The whole state of one seed's run.

    A seed that has reached its limit may go on until its chunk ends, or until all have reached theirs.
    """

    learned: LearnerState
    episode: Episode
    iteration: Int[Array, ""]
    episodes: Int[Array, ""]
    network_at_limit: Network  # undefined before the limit
    visit_counts: PyTree = ()  # of `VisitCounts`, if they are recorded


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
    """Acts for a while with a fixed policy, then learns.

    A seed's run ends after so many episodes or environment steps; None is no limit.
    """

    learner: Learner
    rollout_steps: int  # environment steps between updates
    episodes: int | None = traced(None)
    steps: int | None = traced(None)
    counted: tuple[int, int] | None = None  # number of states and of actions whose visits are counted

    @property
    def agent(self) -> Agent:
        return self.learner.agent

    def iterations_per_chunk(self, steps: int) -> int:
        """Iterations of about this many steps; those of a run with a limit of steps are equal and end close to it."""
        most = max(1, steps // self.rollout_steps)
        if self.steps is None:
            return most
        iterations = math.ceil(self.steps / self.rollout_steps)
        return math.ceil(iterations / math.ceil(iterations / most))

    def begin(self, learned: LearnerState, episode: PyTree) -> RunState:
        zero, network = jnp.zeros((), jnp.int32), jax.tree.map(jnp.copy, learned.network)
        visit_counts = VisitCounts(*(jnp.zeros(self.counted, jnp.int32) for _ in range(2))) if self.counted else ()
        return RunState(learned, episode, zero, zero, network, visit_counts)

    def learn(
        self, key: PRNGKeyArray, run: RunState, episode: PyTree, fresh: Transition, ended: Bool[Array, " steps"]
    ) -> tuple[RunState, Metrics]:
        """Stores the data of a rollout, and learns from them."""
        learned, metrics = self.learner.learn(key, run.learned, fresh, run.iteration)
        episodes = run.episodes + jnp.sum(ended, dtype=jnp.int32)
        counts = self._visit_counts(run, fresh)
        after = RunState(learned, episode, run.iteration + 1, episodes, run.network_at_limit, counts)
        reached = self._reached_limit(after) & ~self._reached_limit(run)
        network = jax.lax.cond(
            reached, lambda: learned.network, lambda: run.network_at_limit
        )  # a `where` would copy it
        return after._replace(network_at_limit=network), metrics

    def result(self, run: RunState) -> Network:
        """The network at the seed's limit, or the one it has if it has not reached it."""
        over = self._reached_limit(run)
        return jax.tree.map(lambda kept, now: jnp.where(over, kept, now), run.network_at_limit, run.learned.network)

    def _visit_counts(self, run: RunState, fresh: Transition) -> PyTree:
        if self.counted is None:
            return ()
        visits, last = run.visit_counts
        beyond = visits.shape[0]  # a row that is not written
        rows = jnp.where(self._reached_limit(run), beyond, fresh.observation.astype(jnp.int32))
        steps = run.iteration * self.rollout_steps + 1 + jnp.arange(self.rollout_steps, dtype=jnp.int32)
        where = rows, fresh.action
        return VisitCounts(visits.at[where].add(1, mode="drop"), last.at[where].max(steps, mode="drop"))

    def _reached_limit(self, run: RunState) -> Bool[Array, ""]:
        reached = jnp.zeros((), bool)
        for count, limit in ((run.episodes, self.episodes), (run.iteration * self.rollout_steps, self.steps)):
            if limit is not None:
                reached |= count >= limit
        return reached
