"""Least squares on one-hot features: a table, whose A is a diagonal of counts."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.learners.base import LearnerState, Metrics
from uppertail.learners.outcomes import NONE, Outcomes
from uppertail.learners.regression import Regression, TableReturns, roots
from uppertail.policies.base import Posterior
from uppertail.types import Transition

LANES = 128
"""Pairs that are backed up at once in a sweep: the newest first, each with the values of those that ended before."""

NOISE_COUNT = 0.1
"""How many transitions of a pair the noisiest pair counts as, in the estimate of the pair's noise."""

SOLVE_AFTER = 0.002
"""All pairs are swept when there is a new outcome, or when this share of all transitions is new."""

RENEW_AFTER = 0.01
"""A draw from the posterior is renewed when this share of all transitions is new."""

RENEW = 2  # folded into the key of a learning step to renew a draw


class TableMemory(NamedTuple):
    """What a table keeps beside its values: data, and numbers of the last `Sweep`."""

    outcomes: Outcomes
    noise: Float[Array, ""]
    change: Float[Array, ""]
    errors: Float[Array, "draws pairs"]  # how far each draw from the posterior is from its mean, in standard errors
    oldest: Int[Array, ""]  # the draw that is renewed next


class Sweep(NamedTuple):
    """Values on the way to their fixed point."""

    values: Float[Array, "states actions outputs"]  # coordinates of each state and action
    plans: Float[Array, "states actions draws"]  # their values in each draw from the posterior
    noise: Float[Array, ""]  # variance of the targets of the noisiest pair, in squared units of return
    change: Float[Array, ""]  # the largest of a coordinate in the last sweep, over its tolerance; above 1, sweeps go on
    number: Int[Array, ""]  # sweeps so far


class Sums(NamedTuple):
    """The targets of all transitions of each pair."""

    visits: Float[Array, " lanes"]  # how many transitions there are
    deviations: Float[Array, "lanes outputs"]  # their coordinates less the start's, summed
    mean: Float[Array, " lanes"]  # mean over transitions of the mean return
    squares: Float[Array, " lanes"]  # summed squared deviations from it
    plans: Float[Array, "lanes draws"]  # summed targets in each draw


@dataclasses.dataclass(frozen=True)
class TableLearner(Regression):
    """z(s, a) is the mean of the start, counted lambda times, and of the targets of all transitions from (s, a).

    A policy may ask for draws from the posterior. A draw is a plan of its own, which backs up its own values: an unseen
    pair has the upper bound of the start, others an error about their mean target. This is randomized value iteration
    (RLSVI, Osband et al. 2016) with an optimistic start.
    """

    @property
    def asked(self) -> Posterior:
        """The draws that the policy asks for; none by default."""
        return self.agent.policy.posterior or Posterior(0, 0.0, 0.0)

    @property
    def bound(self) -> Float[Array, ""]:
        """The value in each draw of a pair that was never seen: mean + c * std of the start."""
        family, start = self.agent.family, self.distribution(self.start)
        return family.mean(start) + self.asked.c * family.std(start)

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        encoding, start, draws = self.agent.encoding, self.start, self.asked.draws
        states, pairs = encoding.num_features, encoding.num_features * num_actions
        network = TableReturns(
            values=jnp.broadcast_to(start, (states, num_actions, start.shape[0])),
            counts=jnp.zeros((states, num_actions)),
            plans=jnp.broadcast_to(self.bound, (states, num_actions, draws)),
            **self.linear(key),
        )
        none, errors = Outcomes.none(pairs, self.outcomes_per_pair * pairs), jnp.zeros((draws, pairs))
        memory = TableMemory(none, jnp.zeros(()), jnp.zeros(()), errors, jnp.zeros((), jnp.int32))
        return LearnerState(network.observe(observations), memory)

    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        del iteration
        network, memory = state.network.observe(fresh.observation).observe(fresh.next_observation), state.memory
        index = jax.vmap(network.encoding.index, in_axes=(None, 0))
        states, nexts = index(network.encoder, fresh.observation), index(network.encoder, fresh.next_observation)
        pairs = states * network.values.shape[1] + fresh.action
        rows = pairs, nexts, fresh.reward, fresh.terminated
        outcomes, _ = jax.lax.scan(lambda seen, row: (seen.add(*row), None), memory.outcomes, rows)
        counts = network.counts.at[states, fresh.action].add(1.0)
        total, earlier = jnp.sum(counts), jnp.sum(counts) - pairs.shape[0]
        again = (memory.noise > 0) & passes_power(RENEW_AFTER, earlier, total) & bool(self.asked.draws)
        due = (outcomes.size > memory.outcomes.size) | passes_power(SOLVE_AFTER, earlier, total) | again
        memory = renewed(jax.random.fold_in(key, RENEW), memory._replace(outcomes=outcomes), again)
        before = Sweep(network.values, network.plans, memory.noise, memory.change, jnp.zeros((), jnp.int32))
        swept = self.solve(key, before, memory, pairs, due)
        network = dataclasses.replace(network, values=swept.values, plans=swept.plans, counts=counts)
        memory = memory._replace(noise=swept.noise, change=swept.change)
        return LearnerState(network, memory), Metrics.of_sweeps(swept.change, swept.number)

    def solve(
        self, key: PRNGKeyArray, before: Sweep, memory: TableMemory, fresh: Int[Array, " fresh"], due: Bool[Array, ""]
    ) -> Sweep:
        """Backs up the fresh pairs and, if it is due and one changes, sweeps over all pairs until none does."""
        outcomes = memory.outcomes

        def sweep(before: Sweep) -> Sweep:
            nothing = before._replace(noise=jnp.zeros(()), change=jnp.zeros(()), number=before.number + 1)
            return self.back_up(key, nothing, before.noise, memory, outcomes.order, outcomes.pairs)

        def goes_on(sweep: Sweep) -> Bool[Array, ""]:
            return due & (sweep.change > 1) & (sweep.number < self.sweeps)

        now = self.back_up(key, before, before.noise, memory, fresh, jnp.asarray(fresh.shape[0], jnp.int32))
        return jax.lax.while_loop(goes_on, sweep, now)

    def back_up(
        self,
        key: PRNGKeyArray,
        sweep: Sweep,
        noise: Float[Array, ""],
        memory: TableMemory,
        pairs: Int[Array, " pairs"],
        count: Int[Array, ""],
    ) -> Sweep:
        """The values after the first `count` pairs took the mean of their start and of the targets of their outcomes.

        The last pair is the first to do so. Pairs are backed up side by side in lanes. Each lane adds one outcome at a
        time to the sums of its pair, and goes on to the next pair after the last: few lanes wait for long lists.

        Args:
            key: randomness of the policy's next actions.
            sweep: the values before, and noise and change of the sweep so far.
            noise: that of the noisiest pair, by the sweep before.
            memory: all outcomes that were seen, and the errors of the draws.
            pairs: the pairs.
            count: how many there are.
        """
        outcomes, lanes = memory.outcomes, min(LANES, pairs.shape[0])
        outputs, draws = sweep.values.shape[-1], sweep.plans.shape[-1]
        nothing = Sums(*(jnp.zeros((lanes, *size)) for size in ((), (outputs,), (), (), (draws,))))

        def begun(place: Int[Array, " lanes"]) -> tuple[Int[Array, " lanes"], Int[Array, " lanes"], Sums]:
            """The pairs at these places, their newest outcomes, and no targets yet; NONE beyond the last pair."""
            there = jnp.where(place < count, pairs[jnp.maximum(count - 1 - place, 0)], NONE)
            return there, jnp.where(there == NONE, NONE, outcomes.newest[there]), nothing

        def step(
            carry: tuple[tuple[Array, Array, Sums], Array, Sweep],
        ) -> tuple[tuple[Array, Array, Sums], Array, Sweep]:
            (pairs, slots, sums), taken, sweep = carry
            sums, earlier = self.added(key, sweep, outcomes, slots, sums), outcomes.earlier[slots]
            ends = (slots == NONE) | (earlier == NONE)
            sweep = self.settled(sweep, noise, memory, jnp.where(ends, pairs, NONE), sums)
            following = begun(taken + jnp.cumsum(ends, dtype=jnp.int32) - 1)
            going_on = jax.tree.map(
                lambda new, old: jnp.where(jnp.expand_dims(ends, range(1, old.ndim)), new, old),
                following,
                (pairs, earlier, sums),
            )
            return going_on, taken + jnp.sum(ends, dtype=jnp.int32), sweep

        first = begun(jnp.arange(lanes, dtype=jnp.int32)), jnp.asarray(lanes, jnp.int32), sweep
        return jax.lax.while_loop(lambda carry: jnp.any(carry[0][0] != NONE), step, first)[2]

    def added(
        self, key: PRNGKeyArray, sweep: Sweep, outcomes: Outcomes, slots: Int[Array, " lanes"], sums: Sums
    ) -> Sums:
        """The sums of each lane's pair with the targets of all transitions of one more outcome."""
        visits, reward, reward_squares = jnp.where((slots != NONE)[:, None], outcomes.seen[slots], 0.0).T
        terminated, after = outcomes.terminated[slots], outcomes.next_state[slots]
        targets = self.targets(key, sweep.values[after], reward, terminated)
        mean = jax.vmap(lambda each: self.agent.family.mean(self.distribution(each)))(targets)
        best = jnp.where(terminated[:, None], 0.0, jnp.max(sweep.plans[after], axis=1))
        plans = reward[:, None] + self.agent.discount * best
        both, error = sums.visits + visits, mean - sums.mean
        share = visits / jnp.maximum(both, 1.0)
        return Sums(
            visits=both,
            deviations=sums.deviations + visits[:, None] * (targets - self.start[None]),
            mean=sums.mean + share * error,
            squares=sums.squares + reward_squares + error**2 * sums.visits * share,
            plans=sums.plans + visits[:, None] * plans,
        )

    def settled(
        self, sweep: Sweep, noise: Float[Array, ""], memory: TableMemory, pairs: Int[Array, " lanes"], sums: Sums
    ) -> Sweep:
        """The values after these pairs, all at once, took the mean of their start and of these targets."""
        there, here, visits = pairs != NONE, jnp.divmod(jnp.maximum(pairs, 0), sweep.values.shape[1]), sums.visits
        variance = (sums.squares + NOISE_COUNT * noise) / (jnp.maximum(visits - 1.0, 0.0) + NOISE_COUNT)
        values = self.start[None] + sums.deviations / (visits[:, None] + self.prior_counts(variance))
        least, errors = self.spread_prior_count, memory.errors[:, jnp.maximum(pairs, 0)].T
        count = (visits + least)[:, None]
        error = self.asked.scale * jnp.sqrt(jnp.minimum(variance, self.start_square)[:, None] / count)
        plans = jnp.minimum((sums.plans + least * self.bound) / count + errors * error, self.bound)
        moved = roots(self.powers, values) - roots(self.powers, sweep.values[here]), plans - sweep.plans[here]
        change = sweep.change
        for each in moved:
            largest = jnp.where(there[:, None], jnp.abs(each) / self.largest_change, 0.0)
            change = jnp.maximum(change, jnp.max(largest, initial=0.0))
        noisiest = jnp.max(jnp.where(there, sums.squares / jnp.maximum(visits, 1.0), 0.0))
        rows = jnp.where(there, here[0], sweep.values.shape[0]), here[1]
        return Sweep(
            sweep.values.at[rows].set(values, mode="drop"),
            sweep.plans.at[rows].set(plans, mode="drop"),
            jnp.maximum(sweep.noise, noisiest),
            change,
            sweep.number,
        )


def renewed(key: PRNGKeyArray, memory: TableMemory, due: Bool[Array, ""]) -> TableMemory:
    """The memory with new errors of the oldest draw, if due. A loop: many seeds do both branches of a `cond`."""
    count, pairs = memory.errors.shape
    if not count:
        return memory

    def renew(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        _, errors, oldest = carry
        return jnp.zeros((), bool), errors.at[oldest].set(jax.random.normal(key, (pairs,))), (oldest + 1) % count

    _, errors, oldest = jax.lax.while_loop(lambda carry: carry[0], renew, (due, memory.errors, memory.oldest))
    return memory._replace(errors=errors, oldest=oldest)


def passes_power(growth: float, before: Float[Array, ""], now: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether a number of transitions has passed a power of 1 + growth: this happens to all seeds at the same time."""
    step = math.log1p(growth)
    return jnp.floor(jnp.log(now) / step) > jnp.floor(jnp.log(jnp.maximum(before, 0.5)) / step)
