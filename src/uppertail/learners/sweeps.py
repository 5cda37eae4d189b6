"""Repeated backups of all pairs of a table."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.learners.outcomes import NONE, Outcomes
from uppertail.learners.posterior import Draws, TablePosterior
from uppertail.learners.regression import Regression
from uppertail.types import POLICY_CHOICE, Transition

BLOCK = 128
"""Pairs that are backed up at once: the newest first, each block with the values of the blocks before it."""

NOISE_COUNT = 0.1
"""How many transitions of a pair the noisiest pair counts as, in the estimate of the pair's noise."""


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
        family, regression = self.regression.agent.family, self.regression

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
