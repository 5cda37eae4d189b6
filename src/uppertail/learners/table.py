"""Least squares on one-hot features: a table, whose A is a diagonal of counts."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

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
    """All outcomes that were seen, and the variance of the targets of the noisiest pair, in squared units of return."""

    outcomes: Outcomes
    noise: Float[Array, ""]


class Targets(NamedTuple):
    """The targets of all transitions of each pair.

    Args:
        count: how many transitions there are.
        deviations: their coordinates less the start's, summed.
        mean: mean over transitions of the mean return.
        squares: summed squared deviations from it.
    """

    count: Float[Array, " block"]
    deviations: Float[Array, "block outputs"]
    mean: Float[Array, " block"]
    squares: Float[Array, " block"]


class Sweep(NamedTuple):
    """Repeated backups of all pairs that were seen.

    Args:
        values: coordinates of each state and action.
        noise: variance of the targets of the noisiest pair, in squared units of return.
        change: the largest change of a coordinate in the last sweep.
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
    """

    regression: Regression
    outcomes_per_pair: int

    @property
    def agent(self) -> Agent:
        return self.regression.agent

    @property
    def updates(self) -> int:
        return 1

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        encoding, regression = self.agent.encoding, self.regression
        states, pairs = encoding.num_features, encoding.num_features * num_actions
        start = regression.start
        network = TableReturns(
            values=jnp.broadcast_to(start, (states, num_actions, start.shape[0])),
            counts=jnp.zeros((states, num_actions)),
            start=start,
            encoder=encoding.init(key),
            encoding=encoding,
            prior_count=regression.spread_prior_count,
        )
        outcomes = Outcomes.none(pairs, self.outcomes_per_pair * pairs)
        return LearnerState(network.observe(observations), TableMemory(outcomes, jnp.zeros(())))

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
        swept = self.solve(key, network.values, state.memory.noise, outcomes)
        network = dataclasses.replace(network, values=swept.values, counts=counts)
        report = swept.change[None]
        memory = TableMemory(outcomes, swept.noise)
        return LearnerState(network, memory), Metrics(report, swept.number[None].astype(jnp.float32), 0.0 * report)

    def solve(
        self,
        key: PRNGKeyArray,
        values: Float[Array, "states actions outputs"],
        noise: Float[Array, ""],
        outcomes: Outcomes,
    ) -> Sweep:
        """Sweeps over all pairs that were seen until no value changes, or the most sweeps are made."""
        regression, blocks = self.regression, -(-outcomes.pairs // BLOCK)

        def sweep(before: Sweep) -> Sweep:
            def block(number: Int[Array, ""], carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
                values, noise, change = carry
                places = outcomes.pairs - 1 - number * BLOCK - jnp.arange(BLOCK)
                there, pairs = places >= 0, outcomes.order[jnp.maximum(places, 0)]
                targets = self.summed(key, values, outcomes, pairs)
                new = regression.start + targets.deviations / (targets.count[:, None] + self.prior(before, targets))
                here = jnp.divmod(pairs, values.shape[1])
                moved = jnp.max(jnp.where(there[:, None], jnp.abs(new - values[here]), 0.0))
                values = values.at[jnp.where(there, here[0], values.shape[0]), here[1]].set(new, mode="drop")
                noisiest = jnp.max(jnp.where(there, targets.squares / jnp.maximum(targets.count, 1.0), 0.0))
                return values, jnp.maximum(noise, noisiest), jnp.maximum(change, moved)

            zero = jnp.zeros(())
            swept = jax.lax.fori_loop(0, blocks, block, (before.values, zero, zero))
            return Sweep(*swept, before.number + 1)

        tolerance = regression.tolerance * jnp.max(jnp.abs(regression.start))

        def goes_on(sweep: Sweep) -> Array:
            return (sweep.change > tolerance) & (sweep.number < regression.most_sweeps)

        return jax.lax.while_loop(goes_on, sweep, Sweep(values, noise, jnp.full((), jnp.inf), jnp.zeros((), jnp.int32)))

    def prior(self, sweep: Sweep, targets: Targets) -> Float[Array, "block outputs"]:
        """lambda of each pair: its noise as its own targets show it, and for the first of them the noisiest pair's."""
        freedom = jnp.maximum(targets.count - 1.0, 0.0) + NOISE_COUNT
        return self.regression.prior_counts((targets.squares + NOISE_COUNT * sweep.noise) / freedom)

    def summed(
        self,
        key: PRNGKeyArray,
        values: Float[Array, "states actions outputs"],
        outcomes: Outcomes,
        pairs: Int[Array, " block"],
    ) -> Targets:
        """The targets of all transitions of each pair, summed over its distinct outcomes."""
        family = self.agent.family

        def step(carry: tuple[Array, Targets]) -> tuple[Array, Targets]:
            slots, total = carry
            there = slots != NONE
            row = Transition(
                observation=slots,
                action=slots,
                reward=outcomes.reward[slots],
                terminated=outcomes.terminated[slots],
                next_observation=slots,
                next_action=jnp.full_like(slots, POLICY_CHOICE),
            )
            targets = self.regression.targets(key, values[outcomes.next_state[slots]], row)
            mean = jax.vmap(lambda each: family.mean(family.from_coordinates(each)))(targets)
            count = jnp.where(there, outcomes.count[slots], 0.0)
            both = total.count + count
            error = mean - total.mean
            share = count / jnp.maximum(both, 1.0)
            squares = jnp.where(there, outcomes.reward_squares[slots], 0.0) + error**2 * total.count * share
            after = Targets(
                count=both,
                deviations=total.deviations + count[:, None] * (targets - self.regression.start),
                mean=total.mean + share * error,
                squares=total.squares + squares,
            )
            return jnp.where(there, outcomes.earlier[slots], NONE), after

        none = jnp.zeros(pairs.shape[0])
        nothing = Targets(none, jnp.zeros((pairs.shape[0], values.shape[-1])), none, none)
        carry = (outcomes.newest[pairs], nothing)
        return jax.lax.while_loop(lambda carry: jnp.any(carry[0] != NONE), step, carry)[1]
