"""Least squares on features that states share: vectors of numbers, whose A is a full matrix for each action."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.errors import InputError
from uppertail.learners.base import Learner, LearnerState, Metrics
from uppertail.learners.regression import Regression
from uppertail.learners.transitions import Rows, Transitions
from uppertail.networks.linear import FeatureReturns
from uppertail.types import POLICY_CHOICE, PyTree, Transition

PRECISION = 1e-6
"""The smallest lambda for each transition that 32-bit floats can tell from rounding errors in A."""


PARTS = 2
"""Sweeps are compiled for so many numbers of features: half of them, and all."""


class FeatureMemory(NamedTuple):
    """What least squares on shared features keeps beside its weights.

    Args:
        transitions: all transitions, or those that stand for all.
        noise: variance of the targets about their predictions.
        change: how far the last sweep moved the predictions, over the tolerance; reported until the next sweep.
        total: how many transitions there ever were.
        solved: how many there were when the weights were last solved for.
    """

    transitions: Transitions
    noise: Float[Array, ""]
    change: Float[Array, ""]
    total: Int[Array, ""]
    solved: Int[Array, ""]


class Solution(NamedTuple):
    """Weights on the way to their fixed point.

    Args:
        weights: theta of each action.
        change: how far the last sweep moved the predictions, over the tolerance; sweeps go on while it is above 1.
        noise: variance of the targets about their predictions.
        sweeps: sweeps so far.
    """

    weights: Float[Array, "actions features outputs"]
    change: Float[Array, ""]
    noise: Float[Array, ""]
    sweeps: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class FeatureLearner(Learner):
    """Ridge regression on the features of all transitions, for each action, with targets computed anew in each sweep.

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
        return LearnerState(network.observe(observations), FeatureMemory(transitions, zero, zero, none, none))

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
        unsolved = Solution(
            jnp.where(is_new, 0.0, network.weights), memory.change, memory.noise, jnp.zeros((), jnp.int32)
        )
        solution = self.solve(solve_key, unsolved, transitions, due | is_new)
        network = dataclasses.replace(network, weights=solution.weights, gram=transitions.gram)
        solved = jnp.where(solution.sweeps > 0, total, memory.solved)
        after = FeatureMemory(transitions, solution.noise, solution.change, total, solved)
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

    def solve(self, key: PRNGKeyArray, before: Solution, transitions: Transitions, due: Bool[Array, ""]) -> Solution:
        """Sweeps over all transitions until predictions no longer change; none if it is not due.

        Features that are 0 for all observations cost time, so sweeps are compiled for several numbers of features, and
        the smallest number that is enough runs. The conditions are loops, because many seeds compute both branches of
        a `cond`.
        """
        used, solution = transitions.used, before
        widths = sorted({-(-transitions.num_features * part // PARTS) for part in range(1, PARTS + 1)})
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
            begun = carry[1]._replace(weights=carry[1].weights[:, :width], change=jnp.full((), jnp.inf))
            after = jax.lax.while_loop(lambda each: (each.change > 1) & (each.sweeps < most), sweep, begun)
            weights = carry[1].weights.at[:, :width].set(after.weights)
            return jnp.zeros((), bool), after._replace(weights=weights)

        return jax.lax.while_loop(lambda carry: carry[0], swept, (due, before))[1]

    def sweep(self, key: PRNGKeyArray, transitions: Transitions, noise: Float[Array, ""]) -> PyTree:
        """The function that computes all targets and solves for the weights, once; A is factorized before."""
        regression, gram = self.regression, transitions.gram
        is_mean = np.array(self.agent.family.is_mean)
        priors = regression.prior_counts(noise)
        least = jnp.max(jnp.where(is_mean, regression.spread_prior_count, priors))
        mean, spread = _factors(gram, jnp.asarray(regression.mean_prior_count)), _factors(gram, least)
        total = jnp.maximum(jnp.sum(transitions.weight), 1.0)

        def solved(sums: Float[Array, "actions features outputs"]) -> Float[Array, "actions features outputs"]:
            def of_action(mean: Array, spread: Array, sums: Array) -> Array:
                return jnp.where(is_mean[None], cho_solve((mean, True), sums), cho_solve((spread, True), sums))

            return jax.lax.map(lambda each: of_action(*each), (mean, spread, sums))

        def once(before: Solution) -> Solution:
            sums, squares = self.sums(key, before.weights, transitions)
            weights = solved(sums)
            fit = weights[..., 0]
            explained = 2 * jnp.sum(fit * sums[..., 0]) - jnp.einsum("af,afg,ag->", fit, gram, fit)
            moved = weights - before.weights
            change = jnp.sqrt(jnp.maximum(jnp.einsum("afo,afg,ago->o", moved, gram, moved), 0.0) / total)
            noise = jnp.maximum(squares - explained, 0.0) / total
            change = jnp.max(regression.roots(change)) / regression.largest_change
            return Solution(weights, change, noise, before.sweeps + 1)

        return once

    def sums(
        self, key: PRNGKeyArray, weights: Float[Array, "actions features outputs"], transitions: Transitions
    ) -> tuple[Float[Array, "actions features outputs"], Float[Array, ""]]:
        """b: sum of weight * phi (y - y0) over the transitions of each action; and the targets' squared deviations."""
        regression, (actions, count, outputs) = self.regression, weights.shape
        flat = jnp.moveaxis(weights, 0, 1).reshape(count, actions * outputs)
        low, high = self.bounds(transitions)

        def block(number: Int[Array, ""], carry: tuple[Array, Array]) -> tuple[Array, Array]:
            sums, squares = carry
            rows = Rows(number, self.rows)
            weight, action = rows.new(transitions.weight), rows.of(transitions.action)
            after = (rows.of(transitions.next_features) @ flat).reshape(-1, actions, outputs)
            after = jnp.clip(regression.start[None, None] + after, low[None, None], high[None, None])
            row = Transition(
                action,
                action,
                rows.of(transitions.reward),
                rows.of(transitions.terminated),
                action,
                jnp.full_like(action, POLICY_CHOICE),
            )
            deviations = regression.targets(key, after, row) - regression.start[None]
            one_hot = jax.nn.one_hot(action, actions) * weight[:, None]
            spread = (one_hot[:, :, None] * deviations[:, None, :]).reshape(-1, actions * outputs)
            return sums + rows.of(transitions.features).T @ spread, squares + jnp.sum(weight * deviations[:, 0] ** 2)

        zero = (jnp.zeros((count, actions * outputs)), jnp.zeros(()))
        sums, squares = jax.lax.fori_loop(0, transitions.blocks, block, zero)
        return jnp.moveaxis(sums.reshape(count, actions, outputs), 1, 0), squares

    def bounds(self, transitions: Transitions) -> tuple[Float[Array, " outputs"], Float[Array, " outputs"]]:
        """The lowest and highest coordinates that are possible: a linear function extrapolates beyond them.

        No return is beyond what the rewards so far would add up to for ever, no spread wider than the start's. Where
        none of several coordinates is a mean return, they are probabilities.
        """
        start, horizon = self.regression.start, 1.0 / jnp.maximum(1.0 - self.agent.discount, 1e-6)
        worst = jnp.minimum(horizon * jnp.minimum(jnp.min(transitions.reward), 0.0), start)
        best = jnp.maximum(horizon * jnp.maximum(jnp.max(transitions.reward), 0.0), start)
        if start.shape[0] > 1 and not any(self.agent.family.is_mean):
            return jnp.zeros_like(start), jnp.ones_like(start)
        is_spread = jnp.array(self.regression.is_spread)
        return jnp.where(is_spread, 0.0, worst), jnp.where(is_spread, start, best)


def _factors(
    gram: Float[Array, "actions features features"], prior: Float[Array, ""]
) -> Float[Array, "actions features features"]:
    """The Cholesky factor of each action's A."""
    eye = jnp.eye(gram.shape[1])

    def of_action(gram: Array) -> Array:
        return cho_factor(gram + jnp.maximum(prior, PRECISION * jnp.trace(gram)) * eye, lower=True)[0]

    return jax.lax.map(of_action, gram)
