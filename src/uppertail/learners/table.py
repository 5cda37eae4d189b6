"""Least squares on one-hot features: a table, whose A is a diagonal of counts."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.learners.base import Learner, LearnerState, Metrics
from uppertail.learners.outcomes import Outcomes
from uppertail.learners.posterior import RENEW, Draws
from uppertail.learners.regression import Regression
from uppertail.learners.sweeps import Data, Sweep, Sweeper
from uppertail.networks.linear import TableReturns
from uppertail.types import Transition

RENEW_AFTER = 0.01
"""A draw from the posterior is renewed when this share of all transitions is new."""


class TableMemory(NamedTuple):
    """What a table keeps beside its values.

    Args:
        outcomes: all outcomes that were seen.
        noise: variance of the targets of the noisiest pair, in squared units of return.
        change: the largest change of a coordinate in the last sweep, over its tolerance; above 1, sweeps go on.
        draws: how far each draw from the posterior is from the mean.
    """

    outcomes: Outcomes
    noise: Float[Array, ""]
    change: Float[Array, ""]
    draws: Draws


@dataclasses.dataclass(frozen=True)
class TableLearner(Learner):
    """Counts all transitions and sweeps over all pairs of state and action when these change.

    Args:
        regression: the targets, the start and how much it counts.
        outcomes_per_pair: room for distinct outcomes, as a mean over all pairs of states and actions.
        solve_after: all pairs are swept when there is a new outcome, or when this share of all transitions is new.
    """

    regression: Regression
    outcomes_per_pair: int
    solve_after: float

    @property
    def agent(self) -> Agent:
        return self.regression.agent

    @property
    def sweeper(self) -> Sweeper:
        """What computes the values from the transitions."""
        return Sweeper(self.regression)

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        encoding, regression = self.agent.encoding, self.regression
        states, pairs = encoding.num_features, encoding.num_features * num_actions
        start = regression.start
        network = TableReturns(
            values=jnp.broadcast_to(start, (states, num_actions, start.shape[0])),
            counts=jnp.zeros((states, num_actions)),
            plans=self.sweeper.posterior.plans(states, num_actions),
            start=start,
            encoder=encoding.init(key),
            prior_count=jnp.asarray(regression.spread_prior_count),
            encoding=encoding,
            powers=regression.powers,
        )
        outcomes = Outcomes.none(pairs, self.outcomes_per_pair * pairs)
        memory = TableMemory(outcomes, jnp.zeros(()), jnp.zeros(()), self.sweeper.posterior.init(pairs))
        return LearnerState(network.observe(observations), memory)

    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        del iteration
        network = state.network.observe(fresh.observation).observe(fresh.next_observation)
        index = jax.vmap(network.encoding.index, in_axes=(None, 0))
        states, nexts = index(network.encoder, fresh.observation), index(network.encoder, fresh.next_observation)
        pairs = states * network.values.shape[1] + fresh.action

        def add(outcomes: Outcomes, row: tuple[Array, ...]) -> tuple[Outcomes, None]:
            return outcomes.add(*row), None

        outcomes, _ = jax.lax.scan(add, state.memory.outcomes, (pairs, nexts, fresh.reward, fresh.terminated))
        counts = network.counts.at[states, fresh.action].add(1.0)
        memory, total = state.memory, jnp.sum(counts)
        posterior, earlier = self.sweeper.posterior, total - pairs.shape[0]
        again = (memory.noise > 0) & passes_power(RENEW_AFTER, earlier, total) & bool(posterior.asked.draws)
        draws = posterior.renewed(jax.random.fold_in(key, RENEW), memory.draws, again)
        due = (outcomes.size > memory.outcomes.size) | passes_power(self.solve_after, earlier, total) | again
        before = Sweep(network.values, network.plans, memory.noise, memory.change, jnp.zeros((), jnp.int32))
        swept = self.sweeper.solve(key, before, Data(outcomes, draws), pairs[::-1], due)
        network = dataclasses.replace(network, values=swept.values, plans=swept.plans, counts=counts)
        memory = TableMemory(outcomes, swept.noise, swept.change, draws)
        report = swept.change[None]
        return LearnerState(network, memory), Metrics(report, swept.number[None].astype(jnp.float32), 0.0 * report)


def passes_power(growth: float, before: Float[Array, ""], now: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether a number of transitions has passed a power of 1 + growth: this happens to all seeds at the same time."""
    step = math.log1p(growth)
    return jnp.floor(jnp.log(now) / step) > jnp.floor(jnp.log(jnp.maximum(before, 0.5)) / step)
