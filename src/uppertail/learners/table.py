"""Least squares on one-hot features: a table, whose A is a diagonal of counts."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.learners.base import Learner, LearnerState, Metrics
from uppertail.learners.outcomes import NONE, Outcomes
from uppertail.learners.posterior import RENEW, Draws, TablePosterior
from uppertail.learners.regression import Regression
from uppertail.networks.linear import TableReturns
from uppertail.types import POLICY_CHOICE, Transition

BLOCK = 128
"""Pairs that are backed up at once: the newest first, each block with the values of the blocks before it."""


RENEW_AFTER = 0.01
"""A draw from the posterior is renewed when this share of all transitions is new."""

NOISE_COUNT = 0.1
"""How many transitions of a pair the noisiest pair counts as, in the estimate of the pair's noise."""


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


class Data(NamedTuple):
    """All outcomes that were seen, and the errors of draws from the posterior."""

    outcomes: Outcomes
    draws: Draws


class Targets(NamedTuple):
    """The targets of all transitions of each pair.

    Args:
        visits: how many transitions there are.
        deviations: their coordinates less the start's, summed.
        mean: mean over transitions of the mean return.
        squares: summed squared deviations from it.
        plans: summed values in each draw.
    """

    visits: Float[Array, " block"]
    deviations: Float[Array, "block outputs"]
    mean: Float[Array, " block"]
    squares: Float[Array, " block"]
    plans: Float[Array, "block draws"]


class Sweep(NamedTuple):
    """Repeated backups of all pairs that were seen.

    Args:
        values: coordinates of each state and action.
        plans: their values in each draw from the posterior.
        noise: variance of the targets of the noisiest pair, in squared units of return.
        change: the largest change of a coordinate in the last sweep, over its tolerance.
        number: sweeps so far.
    """

    values: Float[Array, "states actions outputs"]
    plans: Float[Array, "states actions draws"]
    noise: Float[Array, ""]
    change: Float[Array, ""]
    number: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class TableLearner(Learner):
    """z(s, a) is the mean of the start, counted lambda times, and of the targets of all transitions from (s, a).

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
    def posterior(self) -> TablePosterior:
        """Draws of the values, as many as the policy asks for."""
        return TablePosterior(self.regression)

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        encoding, regression = self.agent.encoding, self.regression
        states, pairs = encoding.num_features, encoding.num_features * num_actions
        start = regression.start
        network = TableReturns(
            values=jnp.broadcast_to(start, (states, num_actions, start.shape[0])),
            counts=jnp.zeros((states, num_actions)),
            plans=self.posterior.plans(states, num_actions),
            start=start,
            encoder=encoding.init(key),
            prior_count=jnp.asarray(regression.spread_prior_count),
            encoding=encoding,
            powers=regression.powers,
        )
        outcomes = Outcomes.none(pairs, self.outcomes_per_pair * pairs)
        memory = TableMemory(outcomes, jnp.zeros(()), jnp.zeros(()), self.posterior.init(pairs))
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
        earlier = total - pairs.shape[0]
        again = (memory.noise > 0) & passes_power(RENEW_AFTER, earlier, total) & bool(self.posterior.asked.draws)
        draws = self.posterior.renewed(jax.random.fold_in(key, RENEW), memory.draws, again)
        due = (outcomes.size > memory.outcomes.size) | passes_power(self.solve_after, earlier, total) | again
        before = Sweep(network.values, network.plans, memory.noise, memory.change, jnp.zeros((), jnp.int32))
        swept = self.solve(key, before, Data(outcomes, draws), pairs[::-1], due)
        network = dataclasses.replace(network, values=swept.values, plans=swept.plans, counts=counts)
        memory = TableMemory(outcomes, swept.noise, swept.change, draws)
        report = swept.change[None]
        return LearnerState(network, memory), Metrics(report, swept.number[None].astype(jnp.float32), 0.0 * report)

    def solve(
        self,
        key: PRNGKeyArray,
        before: Sweep,
        data: Data,
        fresh: Int[Array, " fresh"],
        due: Bool[Array, ""],
    ) -> Sweep:
        """Backs up the fresh pairs and, if it is due and one changes, sweeps over all pairs until none does.

        Args:
            key: randomness of the policy's next actions.
            before: the values before, and the change at which the last sweeps ended.
            data: all outcomes that were seen, and the draws.
            fresh: the pairs of the rollout, the newest first.
            due: whether all pairs may be swept now; else it waits.
        """
        regression, outcomes = self.regression, data.outcomes
        blocks = -(-outcomes.pairs // BLOCK)

        def sweep(before: Sweep) -> Sweep:
            def block(number: Int[Array, ""], after: Sweep) -> Sweep:
                places = outcomes.pairs - 1 - number * BLOCK - jnp.arange(BLOCK)
                pairs = outcomes.order[jnp.maximum(places, 0)]
                return self.back_up(key, after, before.noise, data, jnp.where(places >= 0, pairs, NONE))

            nothing = Sweep(before.values, before.plans, jnp.zeros(()), jnp.zeros(()), before.number + 1)
            return jax.lax.fori_loop(0, blocks, block, nothing)

        def goes_on(sweep: Sweep) -> Bool[Array, ""]:
            return due & (sweep.change > 1) & (sweep.number < regression.most_sweeps)

        return jax.lax.while_loop(goes_on, sweep, self.back_up(key, before, before.noise, data, fresh))

    def back_up(
        self, key: PRNGKeyArray, sweep: Sweep, noise: Float[Array, ""], data: Data, pairs: Int[Array, " block"]
    ) -> Sweep:
        """The values after these pairs, all at once, took the mean of their start and of the targets of their outcomes.

        Args:
            key: randomness of the policy's next actions.
            sweep: the values before, and noise and change of the sweep so far.
            noise: that of the noisiest pair, by the sweep before.
            data: all outcomes that were seen, and the draws.
            pairs: which pairs; NONE: no pair.
        """
        regression, values = self.regression, sweep.values
        there, here = pairs != NONE, jnp.divmod(jnp.maximum(pairs, 0), values.shape[1])
        targets = self.summed(key, sweep, data.outcomes, jnp.maximum(pairs, 0))
        variance = self.variance(noise, targets)
        new = regression.start[None] + targets.deviations / (
            targets.visits[:, None] + regression.prior_counts(variance)
        )
        plans = self.posterior.backed_up(
            targets.plans, targets.visits, variance, data.draws.errors[:, jnp.maximum(pairs, 0)].T
        )
        change = jnp.abs(regression.roots(new) - regression.roots(values[here])) / regression.largest_change
        moved = jnp.max(jnp.where(there[:, None], change, 0.0))
        change = jnp.abs(plans - sweep.plans[here]) / regression.largest_change
        moved = jnp.max(jnp.where(there[:, None], change, 0.0), initial=moved)
        noisiest = jnp.max(jnp.where(there, targets.squares / jnp.maximum(targets.visits, 1.0), 0.0))
        rows = jnp.where(there, here[0], values.shape[0]), here[1]
        values, plans = values.at[rows].set(new, mode="drop"), sweep.plans.at[rows].set(plans, mode="drop")
        return Sweep(values, plans, jnp.maximum(sweep.noise, noisiest), jnp.maximum(sweep.change, moved), sweep.number)

    def variance(self, noise: Float[Array, ""], targets: Targets) -> Float[Array, " block"]:
        """Noise of each pair's targets: as they show it themselves, and for the first of them the noisiest pair's."""
        return (targets.squares + NOISE_COUNT * noise) / (jnp.maximum(targets.visits - 1.0, 0.0) + NOISE_COUNT)

    def summed(
        self,
        key: PRNGKeyArray,
        sweep: Sweep,
        outcomes: Outcomes,
        pairs: Int[Array, " block"],
    ) -> Targets:
        """The targets of all transitions of each pair, summed over its distinct outcomes."""
        family, regression = self.agent.family, self.regression

        def step(carry: tuple[Array, Targets]) -> tuple[Array, Targets]:
            slots, total = carry
            there = slots != NONE
            visits, reward, reward_squares = jnp.where(there[:, None], outcomes.seen[slots], 0.0).T
            row = Transition(
                observation=slots,
                action=slots,
                reward=reward,
                terminated=outcomes.terminated[slots],
                next_observation=slots,
                next_action=jnp.full_like(slots, POLICY_CHOICE),
            )
            after = outcomes.next_state[slots]
            targets = regression.targets(key, sweep.values[after], row)
            mean = jax.vmap(lambda each: family.mean(regression.distribution(each)))(targets)
            both = total.visits + visits
            error = mean - total.mean
            share = visits / jnp.maximum(both, 1.0)
            squares = reward_squares + error**2 * total.visits * share
            plans = self.posterior.targets(sweep.plans[after], row)
            summed = Targets(
                visits=both,
                deviations=total.deviations + visits[:, None] * (targets - regression.start[None]),
                mean=total.mean + share * error,
                squares=total.squares + squares,
                plans=total.plans + visits[:, None] * plans,
            )
            return jnp.where(there, outcomes.earlier[slots], NONE), summed

        none = jnp.zeros(pairs.shape[0])
        outputs, draws = (jnp.zeros((pairs.shape[0], each.shape[-1])) for each in (sweep.values, sweep.plans))
        nothing = Targets(none, outputs, none, none, draws)
        carry = (outcomes.newest[pairs], nothing)
        return jax.lax.while_loop(lambda carry: jnp.any(carry[0] != NONE), step, carry)[1]


def passes_power(growth: float, before: Float[Array, ""], now: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether a number of transitions has passed a power of 1 + growth: this happens to all seeds at the same time."""
    step = math.log1p(growth)
    return jnp.floor(jnp.log(now) / step) > jnp.floor(jnp.log(jnp.maximum(before, 0.5)) / step)
