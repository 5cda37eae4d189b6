"""Repeated backups of all pairs of a table."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.learners.lanes import Lanes, Targets
from uppertail.learners.outcomes import NONE, Outcomes
from uppertail.learners.posterior import Draws, TablePosterior
from uppertail.learners.regression import Regression, to_back_up

LANES = 128
"""Pairs that are backed up at once in a sweep: the newest first, each with the values of those that ended before."""

NOISE_COUNT = 0.1
"""How many transitions of a pair the noisiest pair counts as, in the estimate of the pair's noise."""


class Data(NamedTuple):
    """All outcomes that were seen, and the errors of draws from the posterior."""

    outcomes: Outcomes
    draws: Draws


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
class Sweeper:
    """z(s, a) is the mean of the start, counted lambda times, and of the targets of all transitions from (s, a).

    Args:
        regression: the targets, the start and how much it counts.
    """

    regression: Regression

    @property
    def posterior(self) -> TablePosterior:
        """Draws of the values, as many as the policy asks for."""
        return TablePosterior(self.regression)

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
        pairs, seen, most = data.outcomes.order, data.outcomes.pairs, self.regression.most_sweeps

        def newest_first(place: Int[Array, " lanes"]) -> Int[Array, " lanes"]:
            return jnp.where(place < seen, pairs[jnp.maximum(seen - 1 - place, 0)], NONE)

        def of_rollout(place: Int[Array, " lanes"]) -> Int[Array, " lanes"]:
            return jnp.where(place < fresh.shape[0], fresh[jnp.minimum(place, fresh.shape[0] - 1)], NONE)

        def sweep(before: Sweep) -> Sweep:
            nothing = Sweep(before.values, before.plans, jnp.zeros(()), jnp.zeros(()), before.number + 1)
            return self.back_up(key, nothing, before.noise, data, newest_first, min(LANES, pairs.shape[0]))

        def goes_on(sweep: Sweep) -> Bool[Array, ""]:
            return due & (sweep.change > 1) & (sweep.number < most)

        now = self.back_up(key, before, before.noise, data, of_rollout, min(LANES, fresh.shape[0]))
        return jax.lax.while_loop(goes_on, sweep, now)

    def back_up(
        self,
        key: PRNGKeyArray,
        sweep: Sweep,
        noise: Float[Array, ""],
        data: Data,
        pair_at: Callable[[Int[Array, " lanes"]], Int[Array, " lanes"]],
        lanes: int,
    ) -> Sweep:
        """The values after these pairs took the mean of their start and of the targets of their outcomes.

        Each lane adds one outcome at a time to the targets of its pair, and goes on to the next pair after the last.

        Args:
            key: randomness of the policy's next actions.
            sweep: the values before, and noise and change of the sweep so far.
            noise: that of the noisiest pair, by the sweep before.
            data: all outcomes that were seen, and the draws.
            pair_at: the pairs by their places from 0 on; NONE beyond the last.
            lanes: how many pairs are backed up at once.
        """

        def step(carry: tuple[Lanes, Array, Sweep]) -> tuple[Lanes, Array, Sweep]:
            lanes, taken, sweep = carry
            targets, ends = self.added(key, sweep, data.outcomes, lanes), lanes.ends(data.outcomes)
            sweep = self.settled(sweep, noise, data, jnp.where(ends, lanes.pairs, NONE), targets)
            following = pair_at(taken + jnp.cumsum(ends, dtype=jnp.int32) - 1)
            return lanes.after(data.outcomes, targets, following), taken + jnp.sum(ends, dtype=jnp.int32), sweep

        def goes_on(carry: tuple[Lanes, Array, Sweep]) -> Bool[Array, ""]:
            return jnp.any(carry[0].pairs != NONE)

        sizes = sweep.values.shape[-1], sweep.plans.shape[-1]
        first = Lanes.begun(data.outcomes, pair_at(jnp.arange(lanes, dtype=jnp.int32)), *sizes)
        return jax.lax.while_loop(goes_on, step, (first, jnp.asarray(lanes, jnp.int32), sweep))[2]

    def settled(
        self, sweep: Sweep, noise: Float[Array, ""], data: Data, pairs: Int[Array, " lanes"], targets: Targets
    ) -> Sweep:
        """The values after these pairs, all at once, took the mean of their start and of these targets."""
        regression, values = self.regression, sweep.values
        there, here = pairs != NONE, jnp.divmod(jnp.maximum(pairs, 0), values.shape[1])
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

    def variance(self, noise: Float[Array, ""], targets: Targets) -> Float[Array, " lanes"]:
        """Noise of each pair's targets: as they show it themselves, and for the first of them the noisiest pair's."""
        return (targets.squares + NOISE_COUNT * noise) / (jnp.maximum(targets.visits - 1.0, 0.0) + NOISE_COUNT)

    def added(self, key: PRNGKeyArray, sweep: Sweep, outcomes: Outcomes, lanes: Lanes) -> Targets:
        """The targets of each lane's pair with those of all transitions of one more outcome."""
        family, regression, slots, total = self.regression.agent.family, self.regression, lanes.slots, lanes.targets
        visits, reward, reward_squares = jnp.where((slots != NONE)[:, None], outcomes.seen[slots], 0.0).T
        row, after = to_back_up(reward, outcomes.terminated[slots]), outcomes.next_state[slots]
        targets = regression.targets(key, sweep.values[after], row)
        mean = jax.vmap(lambda each: family.mean(regression.distribution(each)))(targets)
        both = total.visits + visits
        error = mean - total.mean
        share = visits / jnp.maximum(both, 1.0)
        return Targets(
            visits=both,
            deviations=total.deviations + visits[:, None] * (targets - regression.start[None]),
            mean=total.mean + share * error,
            squares=total.squares + reward_squares + error**2 * total.visits * share,
            plans=total.plans + visits[:, None] * self.posterior.targets(sweep.plans[after], row),
        )
