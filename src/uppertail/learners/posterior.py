"""Draws from the posterior of a table's values, for policies that ask for them."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.learners.regression import Regression
from uppertail.policies.base import Posterior
from uppertail.types import Transition

RENEW = 2  # folded into the key of a learning step to renew a draw


class Draws(NamedTuple):
    """What tells draws apart.

    Args:
        errors: how far each draw of each pair is from its mean, in standard errors.
        oldest: the draw that is renewed next.
    """

    errors: Float[Array, "draws pairs"]
    oldest: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class TablePosterior:
    """Values of draws: an unseen pair has the upper bound of the start, others an error about their mean target.

    A draw is a plan of its own: it backs up its own values. This is randomized value iteration (RLSVI, Osband et al.
    2016) with an optimistic start.

    Args:
        regression: the start, the discount, and the policy that asks for draws.
    """

    regression: Regression

    @property
    def asked(self) -> Posterior:
        """What the policy asks for; no draws by default."""
        return self.regression.agent.policy.posterior or Posterior(0, 0.0, 0.0)

    @property
    def bound(self) -> Float[Array, ""]:
        """The value of a pair that was never seen: mean + c * std of the start."""
        family, start = self.regression.agent.family, self.regression.distribution(self.regression.start)
        return family.mean(start) + self.asked.c * family.std(start)

    def init(self, pairs: int) -> Draws:
        """Draws without errors."""
        return Draws(jnp.zeros((self.asked.draws, pairs)), jnp.zeros((), jnp.int32))

    def plans(self, states: int, actions: int) -> Float[Array, "states actions draws"]:
        """The values before anything was seen."""
        return jnp.broadcast_to(self.bound, (states, actions, self.asked.draws))

    def renewed(self, key: PRNGKeyArray, draws: Draws, due: Bool[Array, ""]) -> Draws:
        """The draws with new errors in the oldest one, if due. A loop: many seeds do both branches of a `cond`."""
        count, pairs = draws.errors.shape
        if not count:
            return draws

        def renew(carry: tuple[Array, Draws]) -> tuple[Array, Draws]:
            errors = carry[1].errors.at[carry[1].oldest].set(jax.random.normal(key, (pairs,)))
            return jnp.zeros((), bool), Draws(errors, (carry[1].oldest + 1) % count)

        return jax.lax.while_loop(lambda carry: carry[0], renew, (due, draws))[1]

    def targets(
        self, next_plans: Float[Array, "batch actions draws"], transitions: Transition
    ) -> Float[Array, "batch draws"]:
        """r + discount * max_a' of each draw's values at s', and r alone after a terminal step."""
        goes_on = ~transitions.terminated[:, None]
        after = jnp.where(goes_on, jnp.max(next_plans, axis=1), 0.0)
        return transitions.reward[:, None] + self.regression.agent.discount * after

    def backed_up(
        self,
        sums: Float[Array, "batch draws"],
        visits: Float[Array, " batch"],
        variance: Float[Array, " batch"],
        errors: Float[Array, "batch draws"],
    ) -> Float[Array, "batch draws"]:
        """The values of pairs in each draw, at most the bound.

        Args:
            sums: the targets of all visits, summed.
            visits: how many there are.
            variance: the noise of one target.
            errors: how far each draw is from the mean, in standard errors.
        """
        least = self.regression.spread_prior_count
        count = (visits + least)[:, None]
        mean = (sums + least * self.bound) / count
        error = self.asked.scale * jnp.sqrt(jnp.minimum(variance, self.regression.start_square)[:, None] / count)
        return jnp.minimum(mean + errors * error, self.bound)
