"""Ridge regression of each action's targets on features that states share, with targets computed anew in each sweep."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.learners.regression import Regression, to_back_up
from uppertail.learners.transitions import Rows, Transitions
from uppertail.types import PyTree

PRECISION = 1e-6
"""The smallest lambda for each transition that 32-bit floats can tell from rounding errors in A."""

UNSURE = 100.0
"""What that lambda is multiplied by where A has no factor: rounding adds up where one state comes again and again."""

PARTS = 2
"""Sweeps are compiled for so many numbers of features: half of them, and all."""


class Solution(NamedTuple):
    """Weights on the way to their fixed point.

    Args:
        weights: theta of each action.
        change: how far the last sweep moved the predictions, over the tolerance; sweeps go on while it is above 1.
        noise: variance of the targets about their predictions.
        low, high: the least and largest coordinates among the targets of the last sweep and the start.
        sweeps: sweeps so far.
    """

    weights: Float[Array, "actions features outputs"]
    change: Float[Array, ""]
    noise: Float[Array, ""]
    low: Float[Array, " outputs"]
    high: Float[Array, " outputs"]
    sweeps: Int[Array, ""]


class Sums(NamedTuple):
    """What the targets of all transitions add up to.

    Args:
        features: b: sum of weight * phi (y - y0) over the transitions of each action, y0 the start.
        squares: sum of weight * (y - y0)^2 of the first coordinate.
        low, high: the least and largest coordinates among the targets and the start.
    """

    features: Float[Array, "features outputs_of_actions"]
    squares: Float[Array, ""]
    low: Float[Array, " outputs"]
    high: Float[Array, " outputs"]


@dataclasses.dataclass(frozen=True)
class Ridge:
    """The weights of all actions, by repeated regression.

    Args:
        regression: the targets, the start and how much it counts.
        rows: room for transitions.
    """

    regression: Regression
    rows: int

    def solve(
        self,
        key: PRNGKeyArray,
        before: Solution,
        transitions: Transitions,
        used: Int[Array, ""],
        due: Bool[Array, ""],
    ) -> Solution:
        """Sweeps over all transitions until predictions no longer change; none if it is not due.

        Features that are 0 for all observations cost time, so sweeps are compiled for several numbers of features, and
        the smallest number that is enough runs. The conditions are loops, because many seeds compute both branches of
        a `cond`.
        """
        solution, features = before, before.weights.shape[1]
        widths = sorted({-(-features * part // PARTS) for part in range(1, PARTS + 1)})
        for narrower, width in zip([-1, *widths], widths, strict=False):
            solution = self._solve(key, solution, transitions, width, due & (used > narrower) & (used <= width))
        return solution

    def _solve(
        self, key: PRNGKeyArray, before: Solution, transitions: Transitions, width: int, due: Bool[Array, ""]
    ) -> Solution:
        """The sweeps over the first features, if they are due."""
        most = self.regression.most_sweeps

        def swept(carry: tuple[Array, Solution]) -> tuple[Array, Solution]:
            sweep = self.sweep(key, transitions.narrow(width), carry[1].noise)
            change = jnp.where(carry[0], jnp.inf, 0.0)  # of many seeds, those that are not due do not sweep
            begun = carry[1]._replace(weights=carry[1].weights[:, :width], change=change)
            after = jax.lax.while_loop(lambda each: (each.change > 1) & (each.sweeps < most), sweep, begun)
            weights = carry[1].weights.at[:, :width].set(after.weights)
            return jnp.zeros((), bool), after._replace(weights=weights)

        return jax.lax.while_loop(lambda carry: carry[0], swept, (due, before))[1]

    def sweep(self, key: PRNGKeyArray, transitions: Transitions, noise: Float[Array, ""]) -> PyTree:
        """The function that computes all targets and solves for the weights, once; A is factorized before."""
        regression, gram = self.regression, transitions.gram
        is_mean = np.array(self.regression.agent.family.is_mean)
        priors = regression.prior_counts(noise)
        least = jnp.max(jnp.where(is_mean, regression.spread_prior_count, priors))
        mean, spread = factors_of(gram, jnp.asarray(regression.mean_prior_count)), factors_of(gram, least)
        total = jnp.maximum(jnp.sum(transitions.weight), 1.0)

        def solved(sums: Float[Array, "actions features outputs"]) -> Float[Array, "actions features outputs"]:
            def of_action(mean: Array, spread: Array, sums: Array) -> Array:
                return jnp.where(is_mean[None], cho_solve((mean, True), sums), cho_solve((spread, True), sums))

            return jax.lax.map(lambda each: of_action(*each), (mean, spread, sums))

        def once(before: Solution) -> Solution:
            found = self.sums(key, before, transitions)
            sums = jnp.moveaxis(found.features.reshape(before.weights.shape[1], len(gram), -1), 1, 0)
            weights = solved(sums)
            fit = weights[..., 0]
            explained = 2 * jnp.sum(fit * sums[..., 0]) - jnp.einsum("af,afg,ag->", fit, gram, fit)
            moved = weights - before.weights
            change = jnp.sqrt(jnp.maximum(jnp.einsum("afo,afg,ago->o", moved, gram, moved), 0.0) / total)
            noise = jnp.maximum(found.squares - explained, 0.0) / total * float(is_mean.any())  # 0 for probabilities
            change = jnp.max(regression.roots(change)) / regression.largest_change
            return Solution(weights, change, noise, found.low, found.high, before.sweeps + 1)

        return once

    def sums(self, key: PRNGKeyArray, before: Solution, transitions: Transitions) -> Sums:
        """The targets of all transitions, by predictions that stay within the targets of the sweep before.

        A linear function extrapolates, and what is above all it was fitted to would be believed, fitted and
        extrapolated again: values of 20 where the only reward is 1.
        """
        regression, (actions, count, outputs) = self.regression, before.weights.shape
        flat = jnp.moveaxis(before.weights, 0, 1).reshape(count, actions * outputs)

        def block(number: Int[Array, ""], sums: Sums) -> Sums:
            rows = Rows(number, self.rows)
            weight, action = rows.new(transitions.weight), rows.of(transitions.action)
            after = (rows.of(transitions.next_features) @ flat).reshape(-1, actions, outputs)
            after = jnp.clip(regression.start[None, None] + after, before.low[None, None], before.high[None, None])
            row = to_back_up(rows.of(transitions.reward), rows.of(transitions.terminated))
            targets = regression.targets(key, after, row)
            deviations = targets - regression.start[None]
            one_hot = jax.nn.one_hot(action, actions) * weight[:, None]
            spread = (one_hot[:, :, None] * deviations[:, None, :]).reshape(-1, actions * outputs)
            there = jnp.where(weight[:, None] > 0, targets, regression.start[None])
            return Sums(
                sums.features + rows.of(transitions.features).T @ spread,
                sums.squares + jnp.sum(weight * deviations[:, 0] ** 2),
                jnp.minimum(sums.low, jnp.min(there, axis=0)),
                jnp.maximum(sums.high, jnp.max(there, axis=0)),
            )

        start = regression.start
        nothing = Sums(jnp.zeros((count, actions * outputs)), jnp.zeros(()), start, start)
        return jax.lax.fori_loop(0, transitions.blocks, block, nothing)


def factors_of(
    gram: Float[Array, "actions features features"], prior: Float[Array, ""]
) -> Float[Array, "actions features features"]:
    """The Cholesky factor of each action's A."""
    eye = jnp.eye(gram.shape[1])

    def of_action(gram: Array) -> Array:
        def factor(least: Array) -> Array:
            return cho_factor(gram + jnp.maximum(prior, least) * eye, lower=True)[0]

        def again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            least = UNSURE * carry[1]
            return factor(least), least

        def failed(carry: tuple[Array, Array]) -> Bool[Array, ""]:
            return ~jnp.all(jnp.isfinite(carry[0])) & (carry[1] <= first)

        first = PRECISION * jnp.trace(gram)
        return jax.lax.while_loop(failed, again, (factor(first), first))[0]

    return jax.lax.map(of_action, gram)
