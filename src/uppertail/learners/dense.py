"""Least squares on features that states share: vectors of numbers, whose A is a full matrix for each action."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.errors import InputError
from uppertail.learners.base import Learner, LearnerState, Metrics
from uppertail.learners.regression import Regression
from uppertail.learners.ridge import Ridge, Solution
from uppertail.learners.transitions import Transitions
from uppertail.networks.linear import FeatureReturns
from uppertail.types import Transition


class FeatureMemory(NamedTuple):
    """What least squares on shared features keeps beside its weights.

    Args:
        transitions: all transitions, or those that stand for all.
        noise: variance of the targets about their predictions.
        low, high: the least and largest coordinates among the targets of the last sweep and the start.
        change: how far the last sweep moved the predictions, over the tolerance; reported until the next sweep.
        total: how many transitions there ever were.
        solved: how many there were when the weights were last solved for.
    """

    transitions: Transitions
    noise: Float[Array, ""]
    low: Float[Array, " outputs"]
    high: Float[Array, " outputs"]
    change: Float[Array, ""]
    total: Int[Array, ""]
    solved: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class FeatureLearner(Learner):
    """Keeps all transitions and their features, and fits the weights of all actions when enough are new.

    Args:
        regression: the targets, the start and how much it counts.
        rows: room for transitions.
        solve_after: the weights are solved for when this share of all transitions is new, or an episode terminated.
    """

    regression: Regression
    rows: int
    solve_after: float = 0.0

    @property
    def agent(self) -> Agent:
        return self.regression.agent

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        encoding, start = self.agent.encoding, self.regression.start
        transitions = Transitions.none(self.rows, observations.shape[1], encoding.num_features, num_actions)
        network = FeatureReturns(
            weights=jnp.zeros((num_actions, encoding.num_features, start.shape[0])),
            gram=transitions.gram,
            start=start,
            encoder=encoding.init(key),
            prior_count=jnp.asarray(self.regression.spread_prior_count),
            encoding=encoding,
            powers=self.regression.powers,
        )
        zero, none = jnp.zeros(()), jnp.zeros((), jnp.int32)
        return LearnerState(
            network.observe(observations), FeatureMemory(transitions, zero, start, start, zero, none, none)
        )

    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        del iteration
        solve_key, thin_key = jax.random.split(key)
        encoding, before, memory = self.agent.encoding, state.network.encoder, state.memory
        network = state.network.observe(fresh.observation).observe(fresh.next_observation)
        same = jax.tree.map(lambda old, new: jnp.all(old == new), before, network.encoder)
        changed = ~jnp.all(jnp.array(jax.tree.leaves(same)))
        transitions = self.with_room(thin_key, memory.transitions, fresh.action.shape[0])
        changed |= transitions.size < memory.transitions.size
        transitions = transitions.added(encoding, network.encoder, fresh).encoded(encoding, network.encoder, changed)
        total = memory.total + fresh.action.shape[0]
        due = jnp.any(fresh.terminated) | (
            (total - memory.solved).astype(jnp.float32) >= self.solve_after * total.astype(jnp.float32)
        )
        is_new = encoding.version(before) != encoding.version(network.encoder)
        weights, start = jnp.where(is_new, 0.0, network.weights), self.regression.start
        low, high = (jnp.where(is_new, start, bound) for bound in (memory.low, memory.high))
        unsolved = Solution(weights, memory.change, memory.noise, low, high, jnp.zeros((), jnp.int32))
        fit = Ridge(self.regression, self.rows)
        solution = fit.solve(solve_key, unsolved, transitions, encoding.used(network.encoder), due | is_new)
        network = dataclasses.replace(network, weights=solution.weights, gram=transitions.gram)
        solved = jnp.where(solution.sweeps > 0, total, memory.solved)
        after = FeatureMemory(transitions, solution.noise, solution.low, solution.high, solution.change, total, solved)
        report = solution.change[None]
        return LearnerState(network, after), Metrics(report, solution.sweeps[None].astype(jnp.float32), 0.0 * report)

    def with_room(self, key: PRNGKeyArray, transitions: Transitions, count: int) -> Transitions:
        """The transitions, thinned out if there is no room for as many more.

        Raises:
            InputError: there would be no room even then.
        """
        if 4 * count > self.rows:  # thinning frees at least a quarter
            raise InputError(
                f"A rollout has {count} transitions, and transitions is {self.rows}: use --learner.transitions "
                f"{4 * count} or more, or fewer --rollout_steps."
            )

        def is_full(carry: tuple[PRNGKeyArray, Transitions]) -> Bool[Array, ""]:
            return carry[1].size + count > self.rows

        def thinned(carry: tuple[PRNGKeyArray, Transitions]) -> tuple[PRNGKeyArray, Transitions]:
            after, now = jax.random.split(carry[0])  # XLA would move work that does not change out
            return after, carry[1].thinned(now, jnp.asarray(self.regression.mean_prior_count))

        return jax.lax.while_loop(is_full, thinned, (key, transitions))[1]
