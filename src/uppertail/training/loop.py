"""What every run does: it chooses actions and learns from rollouts; the keys of all that is random in it."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.compiling import jitted
from uppertail.errors import InputError
from uppertail.learners import Learner, LearnerState, Metrics
from uppertail.masks import ActionMask, masked
from uppertail.networks import Network
from uppertail.policies import Decision, ExplorationPolicy
from uppertail.policies.base import ADVANCE
from uppertail.schema import traced
from uppertail.types import PyTree, Transition

LOOKS_BEYOND = 1.0 / math.e  # discount^actions: above it, what is hoped for after the end of an episode is dropped
TIED = 1e-3  # means that differ by less, in units of the family, are the same up to what sweeps leave


class SeedKeys(NamedTuple):
    """The keys of a seed, from which all randomness of its run comes."""

    environment: PRNGKeyArray  # to build the environment
    run: PRNGKeyArray
    evaluation: PRNGKeyArray


def seed_keys(seed: int | Int[Array, ""]) -> SeedKeys:
    """The keys of one seed."""
    return SeedKeys(*jax.random.split(jax.random.key(seed), 3))


all_seed_keys = jitted(jax.vmap(seed_keys))
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
    earned: Float[Array, "*envs"]  # as in `StepRecord`
    memory: PyTree = ()


class VisitCounts(NamedTuple):
    """How often each action of each state was taken, and as which action of the run last, from 1 on; 0: never."""

    visits: Int[Array, "states actions"]
    last: Int[Array, "states actions"]


class Best(NamedTuple):
    """The network of the best greedy evaluation so far, the later one of equals."""

    network: Network
    ret: Float[Array, ""]  # its mean return; before the first: - infinity
    iteration: Int[Array, ""]  # after which it was evaluated


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
    best: PyTree = ()  # `Best`, if the run is evaluated while it learns


class StepRecord(NamedTuple):
    """One environment step, as the loop records it."""

    ended: Bool[Array, "*steps"]
    ret: Float[Array, "*steps"]  # so far in the episode
    length: Int[Array, "*steps"]
    earned: Float[Array, "*steps"]  # the rewards of the episode, each discounted for every step after it
    exploratory: Bool[Array, "*steps"]  # whether another allowed action than the next one has a higher mean
    cut: Bool[Array, "*steps"]  # whether it ended the episode before that terminated

    def lasted(self, repeats: int = 1) -> Int[Array | np.ndarray, "*steps"]:
        """The actions of the episode that each step ended, if an action is for so many steps; 0: it goes on."""
        return -(-self.length // repeats) * self.ended.astype(self.length.dtype)


class Choice(NamedTuple):
    """What a policy chose in one state, what it keeps, and whether another allowed action has a higher mean."""

    action: Int[Array, "*envs"]
    memory: PyTree
    exploratory: Bool[Array, "*envs"]


class View(NamedTuple):
    """What a policy sees of one state beside its memory, as `Decision` has it; None for what it does not need."""

    z: PyTree
    evidence: Float[Array, "*envs actions"] | None
    drawn: Float[Array, "*envs draws actions"] | None


@dataclasses.dataclass(frozen=True)
class Actor:
    """Chooses the actions of one environment by a policy, in training the agent's own.

    Raises:
        InputError: the policy needs members, evidence or draws, and there are none.
    """

    agent: Agent
    policy: ExplorationPolicy

    def __post_init__(self) -> None:
        self.agent.require_members(self.policy)

    def view(self, network: Network, observation: Array) -> View:
        z = self.agent.returns_by_member(network, observation)
        evidence = network.evidence(observation) if self.policy.needs_evidence else None
        drawn = network.drawn(observation) if self.policy.posterior else None
        name = type(self.policy).__name__
        if self.policy.needs_evidence and evidence is None:
            raise InputError(
                f"The policy {name} needs the evidence for each action, which this learner does not give: use "
                "--learner LeastSquares, or another policy, for example UCB."
            )
        if self.policy.posterior and drawn is None:
            raise InputError(
                f"The policy {name} needs draws from the posterior of a table, which only least squares makes, for the "
                "policy that trains: leave --learner out, and train with it where observations are states (numbers "
                "become states by --env.features hashed or --env.radius 0.1), or use --policy UCB or Thompson."
            )
        return View(z, evidence, drawn)

    def first(self, key: PRNGKeyArray, network: Network, observation: Array, mask: ActionMask = None) -> Choice:
        """The first choice of a run."""
        decision = self._decision(self.view(network, observation), observation, mask)
        return self._choose(key, self._begun(key, decision))

    def next(
        self,
        key: PRNGKeyArray,
        view: View,
        observation: Array,
        memory: PyTree,
        begins: Bool[Array, ""],
        mask: ActionMask = None,
    ) -> Choice:
        """A choice in an episode in progress or, if `begins`, the first of a new one."""
        going_on = self._decision(view, observation, mask).with_memory(memory)
        return self._choose(key, _either(begins, self.policy.begun(key, going_on), going_on))

    def play(
        self,
        key: PRNGKeyArray,
        network: Network,
        observation: Array,
        memory: PyTree,
        begins: Bool[Array, ""],
        mask: ActionMask = None,
    ) -> Choice:
        """The same in an evaluation, where each episode begins as the first of a run does."""
        decision = self._decision(self.view(network, observation), observation, mask)
        decision = _either(begins, self._begun(key, decision), decision.with_memory(memory))
        return self._choose(key, decision, self.policy.evaluated)

    def blank(self, network: Network, observation: Array) -> PyTree:
        """Zeros in the shape of the memory, for `play` to replace at an episode's first step."""
        shapes = jax.eval_shape(self.first, jax.random.key(0), network, observation).memory
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def _decision(self, view: View, observation: Array, mask: ActionMask) -> Decision:
        return Decision(self.agent.family, view.z, observation, view.evidence, view.drawn, action_mask=mask)

    def _begun(self, key: PRNGKeyArray, decision: Decision) -> Decision:
        return self.policy.begun(key, decision.with_memory(self.policy.init(decision)))

    def _choose(self, key: PRNGKeyArray, decision: Decision, policy: ExplorationPolicy | None = None) -> Choice:
        action = (policy or self.policy).select(key, decision)
        mean = jnp.mean(decision.mean, axis=0)
        memory = self.policy.advance(jax.random.fold_in(key, ADVANCE), decision, action)
        best = jnp.max(masked(mean, decision.action_mask))
        return Choice(action, memory, mean[action] < best - TIED * self.agent.family.unit)


def _either(begins: Bool[Array, ""], begun: Decision, going_on: Decision) -> Decision:
    """The decision with the memory of one of the two."""
    both = jax.tree.map(lambda new, old: jnp.where(begins, new, old), begun.memory, going_on.memory)
    return going_on.with_memory(both)


@dataclasses.dataclass(frozen=True)
class Loop:
    """Acts for a while with a fixed policy, then learns.

    A seed's run ends after so many episodes or environment steps; None is no limit.
    """

    learner: Learner
    rollout_steps: int  # actions between updates
    episodes: int | None = traced(None)
    steps: int | None = traced(None)
    counted: tuple[int, int] | None = None  # number of states and of actions whose visits are counted
    keeps_best: bool = False  # whether the run is evaluated while it learns

    @property
    def agent(self) -> Agent:
        return self.learner.agent

    def chunk(self, most: int, iteration: int) -> int:
        """Iterations of the next chunk: to a multiple of `most`, wherever the run was stopped, or to the last one."""
        whole = most - iteration % most
        return whole if self.steps is None else min(whole, math.ceil(self.steps / self.rollout_steps) - iteration)

    def begin(self, learned: LearnerState, episode: PyTree) -> RunState:
        zero, network = jnp.zeros((), jnp.int32), jax.tree.map(jnp.copy, learned.network)
        visit_counts = VisitCounts(*(jnp.zeros(self.counted, jnp.int32) for _ in range(2))) if self.counted else ()
        best = Best(jax.tree.map(jnp.copy, network), jnp.float32(-jnp.inf), zero) if self.keeps_best else ()
        return RunState(learned, episode, zero, zero, network, visit_counts, best)

    def learn(
        self, key: PRNGKeyArray, run: RunState, episode: PyTree, fresh: Transition, lasted: Int[Array, " steps"]
    ) -> tuple[RunState, Metrics]:
        """Stores the data of a rollout, and learns from them.

        Args:
            key: randomness of the updates.
            run: the state before.
            episode: the episode in progress after the rollout.
            fresh: its transitions.
            lasted: actions of the episode that each of them ended; 0: it goes on.
        """
        if self.learner.asks_cut_soon:
            beyond = self.agent.discount ** lasted.astype(jnp.float32)  # the share of values that comes later
            fresh = fresh._replace(cut_soon=(lasted > 0) & ~fresh.terminated & (beyond > LOOKS_BEYOND))
        learned, metrics = self.learner.learn(key, run.learned, fresh, run.iteration)
        episodes = run.episodes + jnp.sum(lasted > 0, dtype=jnp.int32)
        counts = self._visit_counts(run, fresh)
        after = RunState(learned, episode, run.iteration + 1, episodes, run.network_at_limit, counts, run.best)
        reached = self._reached_limit(after) & ~self._reached_limit(run)
        # `where` and `cond` would copy a network in every iteration; a loop that does not begin writes nothing
        once, never = (reached, run.network_at_limit), jnp.zeros((), bool)
        _, network = jax.lax.while_loop(lambda once: once[0], lambda _: (never, self.learner.played(learned)), once)
        return after._replace(network_at_limit=network), metrics

    def without_data(self, run: RunState) -> RunState:
        """The part to look at its networks."""
        return run._replace(learned=self.learner.without_data(run.learned), episode=())

    def result(self, run: RunState) -> Network:
        """The network that plays at the seed's limit, or the one of now if it has not reached it."""
        over, played = self._reached_limit(run), self.learner.played(run.learned)
        return jax.tree.map(lambda kept, now: jnp.where(over, kept, now), run.network_at_limit, played)

    def compared(self, run: RunState, ret: Float[Array, ""]) -> Best:
        """The best network, after that of now had this mean return in a greedy evaluation; NaN: it could not be had."""
        ret = jnp.where(jnp.isnan(ret), -jnp.inf, ret)
        now = Best(self.result(run), ret, run.iteration)
        return jax.tree.map(lambda new, old: jnp.where(ret >= run.best.ret, new, old), now, run.best)

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
