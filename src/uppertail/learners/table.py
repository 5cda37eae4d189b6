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
from uppertail.learners.regression import Regression
from uppertail.networks.linear import TableReturns
from uppertail.types import POLICY_CHOICE, Transition

BLOCK = 128
"""Pairs that are backed up at once: the newest first, each block with the values of the blocks before it."""


NOISE_COUNT = 0.1
"""How many transitions of a pair the noisiest pair counts as, in the estimate of the pair's noise."""


class TableMemory(NamedTuple):
    """What a table keeps beside its values.

    Args:
        outcomes: all outcomes that were seen.
        noise: variance of the targets of the noisiest pair, in squared units of return.
        change: the largest change of a coordinate in the last sweep, over its tolerance; above 1, sweeps go on.
    """

    outcomes: Outcomes
    noise: Float[Array, ""]
    change: Float[Array, ""]


class Targets(NamedTuple):
    """The targets of all transitions of each pair.

    Args:
        visits: how many transitions there are.
        deviations: their coordinates less the start's, summed.
        mean: mean over transitions of the mean return.
        squares: summed squared deviations from it.
    """

    visits: Float[Array, " block"]
    deviations: Float[Array, "block outputs"]
    mean: Float[Array, " block"]
    squares: Float[Array, " block"]


class Sweep(NamedTuple):
    """Repeated backups of all pairs that were seen.

    Args:
        values: coordinates of each state and action.
        noise: variance of the targets of the noisiest pair, in squared units of return.
        change: the largest change of a coordinate in the last sweep, over its tolerance.
        number: sweeps so far.
    """

    values: Float[Array, "states actions outputs"]
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

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        encoding, regression = self.agent.encoding, self.regression
        states, pairs = encoding.num_features, encoding.num_features * num_actions
        start = regression.start
        network = TableReturns(
            values=jnp.broadcast_to(start, (states, num_actions, start.shape[0])),
            counts=jnp.zeros((states, num_actions)),
            start=start,
            encoder=encoding.init(key),
            prior_count=jnp.asarray(regression.spread_prior_count),
            encoding=encoding,
            powers=regression.powers,
        )
        outcomes = Outcomes.none(pairs, self.outcomes_per_pair * pairs)
        return LearnerState(network.observe(observations), TableMemory(outcomes, jnp.zeros(()), jnp.zeros(())))

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
        due = (outcomes.size > memory.outcomes.size) | self.is_due(total - pairs.shape[0], total)
        before = Sweep(network.values, memory.noise, memory.change, jnp.zeros((), jnp.int32))
        swept = self.solve(key, before, outcomes, pairs[::-1], due)
        network = dataclasses.replace(network, values=swept.values, counts=counts)
        memory = TableMemory(outcomes, swept.noise, swept.change)
        report = swept.change[None]
        return LearnerState(network, memory), Metrics(report, swept.number[None].astype(jnp.float32), 0.0 * report)

    def is_due(self, before: Float[Array, ""], total: Float[Array, ""]) -> Bool[Array, ""]:
        """Whether the number of transitions has passed a power of 1 + solve_after: all seeds sweep at the same time."""
        growth = math.log1p(self.solve_after)
        return jnp.floor(jnp.log(total) / growth) > jnp.floor(jnp.log(jnp.maximum(before, 0.5)) / growth)

    def solve(
        self,
        key: PRNGKeyArray,
        before: Sweep,
        outcomes: Outcomes,
        fresh: Int[Array, " fresh"],
        due: Bool[Array, ""],
    ) -> Sweep:
        """Backs up the fresh pairs and, if it is due and one changes, sweeps over all pairs until none does.

        Args:
            key: randomness of the policy's next actions.
            before: the values before, and the change at which the last sweeps ended.
            outcomes: all outcomes that were seen.
            fresh: the pairs of the rollout, the newest first.
            due: whether all pairs may be swept now; else it waits.
        """
        regression, blocks = self.regression, -(-outcomes.pairs // BLOCK)

        def sweep(before: Sweep) -> Sweep:
            def block(number: Int[Array, ""], after: Sweep) -> Sweep:
                places = outcomes.pairs - 1 - number * BLOCK - jnp.arange(BLOCK)
                pairs = outcomes.order[jnp.maximum(places, 0)]
                return self.back_up(key, after, before.noise, outcomes, jnp.where(places >= 0, pairs, NONE))

            nothing = Sweep(before.values, jnp.zeros(()), jnp.zeros(()), before.number + 1)
            return jax.lax.fori_loop(0, blocks, block, nothing)

        def goes_on(sweep: Sweep) -> Bool[Array, ""]:
            return due & (sweep.change > 1) & (sweep.number < regression.most_sweeps)

        return jax.lax.while_loop(goes_on, sweep, self.back_up(key, before, before.noise, outcomes, fresh))

    def back_up(
        self, key: PRNGKeyArray, sweep: Sweep, noise: Float[Array, ""], outcomes: Outcomes, pairs: Int[Array, " block"]
    ) -> Sweep:
        """The values after these pairs, all at once, took the mean of their start and of the targets of their outcomes.

        Args:
            key: randomness of the policy's next actions.
            sweep: the values before, and noise and change of the sweep so far.
            noise: that of the noisiest pair, by the sweep before.
            outcomes: all outcomes that were seen.
            pairs: which pairs; NONE: no pair.
        """
        regression, values = self.regression, sweep.values
        there, here = pairs != NONE, jnp.divmod(jnp.maximum(pairs, 0), values.shape[1])
        targets = self.summed(key, values, outcomes, jnp.maximum(pairs, 0))
        new = regression.start[None] + targets.deviations / (targets.visits[:, None] + self.prior(noise, targets))
        change = jnp.abs(regression.roots(new) - regression.roots(values[here])) / regression.largest_change
        moved = jnp.max(jnp.where(there[:, None], change, 0.0))
        noisiest = jnp.max(jnp.where(there, targets.squares / jnp.maximum(targets.visits, 1.0), 0.0))
        values = values.at[jnp.where(there, here[0], values.shape[0]), here[1]].set(new, mode="drop")
        return Sweep(values, jnp.maximum(sweep.noise, noisiest), jnp.maximum(sweep.change, moved), sweep.number)

    def prior(self, noise: Float[Array, ""], targets: Targets) -> Float[Array, "block outputs"]:
        """lambda of each pair: its noise as its own targets show it, and for the first of them the noisiest pair's."""
        freedom = jnp.maximum(targets.visits - 1.0, 0.0) + NOISE_COUNT
        return self.regression.prior_counts((targets.squares + NOISE_COUNT * noise) / freedom)

    def summed(
        self,
        key: PRNGKeyArray,
        values: Float[Array, "states actions outputs"],
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
            targets = regression.targets(key, values[outcomes.next_state[slots]], row)
            mean = jax.vmap(lambda each: family.mean(regression.distribution(each)))(targets)
            both = total.visits + visits
            error = mean - total.mean
            share = visits / jnp.maximum(both, 1.0)
            squares = reward_squares + error**2 * total.visits * share
            after = Targets(
                visits=both,
                deviations=total.deviations + visits[:, None] * (targets - regression.start[None]),
                mean=total.mean + share * error,
                squares=total.squares + squares,
            )
            return jnp.where(there, outcomes.earlier[slots], NONE), after

        none = jnp.zeros(pairs.shape[0])
        nothing = Targets(none, jnp.zeros((pairs.shape[0], values.shape[-1])), none, none)
        carry = (outcomes.newest[pairs], nothing)
        return jax.lax.while_loop(lambda carry: jnp.any(carry[0] != NONE), step, carry)[1]
