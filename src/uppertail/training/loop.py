"""What every run does after a rollout: it learns from it, and keeps count."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.learners import Learner, LearnerState, Metrics
from uppertail.networks import Network
from uppertail.schema import traced
from uppertail.types import PyTree, Transition


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

    A seed that has reached its limit may go on until its chunk ends, or until all have reached theirs. `at_limit` is
    its network at the limit, undefined before. `visit_counts` is () if they are not recorded.
    """

    learned: LearnerState
    episode: Episode
    iteration: Int[Array, ""]
    episodes: Int[Array, ""]
    at_limit: Network
    visit_counts: PyTree = ()


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

    Args:
        learner: learns from each rollout.
        rollout_steps: environment steps between updates.
        episodes: a seed's run ends after this many episodes; None: no limit.
        steps: a seed's run ends after this many environment steps; None: no limit.
        counted: number of states and of actions whose visits are counted; None: they are not counted.
    """

    learner: Learner
    rollout_steps: int
    episodes: int | None = traced(None)
    steps: int | None = traced(None)
    counted: tuple[int, int] | None = None

    @property
    def agent(self) -> Agent:
        """The policy that acts, the family and the discount."""
        return self.learner.agent

    def iterations_per_chunk(self, steps: int) -> int:
        """Iterations of about this many steps; those of a run with a limit of steps are equal and end close to it."""
        most = max(1, steps // self.rollout_steps)
        if self.steps is None:
            return most
        iterations = math.ceil(self.steps / self.rollout_steps)
        return math.ceil(iterations / math.ceil(iterations / most))

    def begin(self, learned: LearnerState, episode: PyTree) -> RunState:
        """A run before its first step."""
        zero, at_limit = jnp.zeros((), jnp.int32), jax.tree.map(jnp.copy, learned.network)
        visit_counts = VisitCounts(*(jnp.zeros(self.counted, jnp.int32) for _ in range(2))) if self.counted else ()
        return RunState(learned, episode, zero, zero, at_limit, visit_counts)

    def learn(
        self, key: PRNGKeyArray, run: RunState, episode: PyTree, fresh: Transition, ended: Bool[Array, " steps"]
    ) -> tuple[RunState, Metrics]:
        """Stores the data of a rollout, and learns from them."""
        learned, metrics = self.learner.learn(key, run.learned, fresh, run.iteration)
        episodes = run.episodes + jnp.sum(ended, dtype=jnp.int32)
        after = RunState(learned, episode, run.iteration + 1, episodes, run.at_limit, self._visit_counts(run, fresh))
        reached = self._reached_limit(after) & ~self._reached_limit(run)
        at_limit = jax.lax.cond(reached, lambda: learned.network, lambda: run.at_limit)  # a `where` would copy it
        return after._replace(at_limit=at_limit), metrics

    def result(self, run: RunState) -> Network:
        """The network at the seed's limit, or the one it has if it has not reached it."""
        over = self._reached_limit(run)
        return jax.tree.map(lambda kept, now: jnp.where(over, kept, now), run.at_limit, run.learned.network)

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
