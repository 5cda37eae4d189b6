"""Least squares on features that states share: vectors of numbers, whose A is a full matrix for each action."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.learners.base import Learner, LearnerState, Metrics
from uppertail.learners.regression import FeatureReturns, Regression, roots
from uppertail.learners.transitions import BLOCK, Transitions, factors_of
from uppertail.types import Transition

SOLVE_AFTER = 0.02
"""The weights are solved for when this share of all transitions is new."""

PARTS = 2
"""Sweeps are compiled for so many numbers of features: half of them, and all."""


class Solution(NamedTuple):
    """Weights on the way to their fixed point."""

    weights: Float[Array, "actions features outputs"]  # theta of each action
    change: Float[Array, ""]  # how far the last sweep moved the predictions, over the tolerance; above 1, sweeps go on
    noise: Float[Array, ""]  # variance of the targets about their predictions
    low: Float[Array, " outputs"]  # the least coordinates among the targets of the last sweep and the start
    high: Float[Array, " outputs"]  # the largest
    sweeps: Int[Array, ""]  # sweeps so far


class Sums(NamedTuple):
    """What the targets of all transitions add up to. XLA multiplies fastest where a product has few rows."""

    features: Float[Array, "outputs_of_actions features"]  # of weight * (y - y0) phi', y0 the start
    squares: Float[Array, ""]  # of weight * (y - y0)^2 of the first coordinate
    low: Float[Array, " outputs"]  # as in `Solution`
    high: Float[Array, " outputs"]


class FeatureMemory(NamedTuple):
    """What least squares on shared features keeps beside its weights: data, and numbers of the last `Solution`."""

    transitions: Transitions
    change: Float[Array, ""]
    noise: Float[Array, ""]
    low: Float[Array, " outputs"]
    high: Float[Array, " outputs"]
    total: Int[Array, ""]  # how many transitions there ever were
    solved: Int[Array, ""]  # how many there were when the weights were last solved for


@dataclasses.dataclass(frozen=True)
class FeatureLearner(Regression):
    """Keeps all transitions and their features; fits all weights when enough are new, or an episode has terminated."""

    @property
    def room(self) -> int:
        """The most transitions: a whole number of blocks."""
        return -(-self.transitions // BLOCK) * BLOCK

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        encoding, start = self.agent.encoding, self.start
        sizes = self.room, observations.shape[1], encoding.num_features, num_actions
        transitions = Transitions.none(*sizes, self.agent.has_masks)
        network = FeatureReturns(
            weights=jnp.zeros((num_actions, encoding.num_features, start.shape[0])),
            gram=transitions.gram,
            **self.linear(key),
        )
        zero, none = jnp.zeros(()), jnp.zeros((), jnp.int32)
        memory = FeatureMemory(transitions, zero, zero, start, start, none, none)
        return LearnerState(network.observe(observations), memory)

    def refitted(self, before: Learner, state: LearnerState) -> LearnerState:
        network, memory = state
        network = dataclasses.replace(network, start=self.start, weights=jnp.zeros_like(network.weights))
        low, high, never = self.start, self.start, jnp.zeros((), jnp.int32)
        return LearnerState(network, memory._replace(low=low, high=high, noise=jnp.zeros(()), solved=never))

    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        del iteration
        solve_key, thin_key = jax.random.split(key)
        encoding, before, memory = self.agent.encoding, state.network.encoder, state.memory
        network = state.network.observe(fresh.observation).observe(fresh.next_observation)
        transitions = self.with_room(thin_key, memory.transitions, fresh.action.shape[0])
        is_thinner = transitions.size < memory.transitions.size
        first = jnp.where(is_thinner, 0, encoding.first_changed(before, network.encoder))
        transitions = transitions.added(encoding, network.encoder, fresh).encoded(encoding, network.encoder, first)
        total = memory.total + fresh.action.shape[0]
        many = (total - memory.solved).astype(jnp.float32) >= SOLVE_AFTER * total.astype(jnp.float32)
        is_new = encoding.version(before) != encoding.version(network.encoder)
        weights, start = jnp.where(is_new, 0.0, network.weights), self.start
        low, high = (jnp.where(is_new, start, bound) for bound in (memory.low, memory.high))
        unsolved = Solution(weights, memory.change, memory.noise, low, high, jnp.zeros((), jnp.int32))
        due = jnp.any(fresh.terminated) | many | is_new
        solution = self.solve(solve_key, unsolved, transitions, encoding.used(network.encoder), due)
        network = dataclasses.replace(network, weights=solution.weights, gram=transitions.gram)
        solved = jnp.where(solution.sweeps > 0, total, memory.solved)
        memory = FeatureMemory(transitions, *solution[1:5], total, solved)
        return LearnerState(network, memory), Metrics.of_sweeps(solution.change, solution.sweeps)

    def with_room(self, key: PRNGKeyArray, transitions: Transitions, count: int) -> Transitions:
        """The transitions, thinned out if there is no room for as many more; InputError if even then there is none."""
        if 4 * count > self.room:  # thinning frees at least a quarter
            raise InputError(
                f"A rollout has {count} transitions, and transitions is {self.transitions}: use --learner.transitions "
                f"{4 * count} or more, or fewer --rollout_steps."
            )

        def is_full(carry: tuple[PRNGKeyArray, Transitions]) -> Bool[Array, ""]:
            return carry[1].size + count > self.room

        def thinned(carry: tuple[PRNGKeyArray, Transitions]) -> tuple[PRNGKeyArray, Transitions]:
            after, now = jax.random.split(carry[0])  # XLA would move work that does not change out
            return after, carry[1].thinned(now, jnp.asarray(self.mean_prior_count))

        return jax.lax.while_loop(is_full, thinned, (key, transitions))[1]

    def solve(
        self, key: PRNGKeyArray, before: Solution, transitions: Transitions, used: Int[Array, ""], due: Bool[Array, ""]
    ) -> Solution:
        """Sweeps over all transitions until predictions no longer change; none if it is not due.

        Features that are 0 for all observations cost time, so sweeps are compiled for several numbers of features, and
        the smallest number that is enough runs. The conditions are loops, because many seeds compute both branches of
        a `cond`.
        """
        solution, features, narrower = before, before.weights.shape[1], -1
        for width in sorted({-(-features * part // PARTS) for part in range(1, PARTS + 1)}):
            fits, narrower = due & (used > narrower) & (used <= width), width
            solution = self._sweeps(key, solution, transitions, width, fits)
        return solution

    def _sweeps(
        self, key: PRNGKeyArray, before: Solution, transitions: Transitions, width: int, due: Bool[Array, ""]
    ) -> Solution:
        """The sweeps over the first features, if they are due."""

        def swept(carry: tuple[Array, Solution]) -> tuple[Array, Solution]:
            due, before = carry
            sweep = self.sweep(key, transitions.narrow(width), before.noise)
            change = jnp.where(due, jnp.inf, 0.0)  # of many seeds, those that are not due do not sweep
            begun = before._replace(weights=before.weights[:, :width], change=change)
            after = jax.lax.while_loop(lambda each: (each.change > 1) & (each.sweeps < self.sweeps), sweep, begun)
            return jnp.zeros((), bool), after._replace(weights=before.weights.at[:, :width].set(after.weights))

        return jax.lax.while_loop(lambda carry: carry[0], swept, (due, before))[1]

    def sweep(
        self, key: PRNGKeyArray, transitions: Transitions, noise: Float[Array, ""]
    ) -> Callable[[Solution], Solution]:
        """The function that computes all targets and solves for the weights, once; A is factorized before."""
        gram, is_mean = transitions.gram, self.is_mean
        least = jnp.max(jnp.where(is_mean, self.spread_prior_count, self.prior_counts(noise)))
        factors = factors_of(gram, jnp.asarray(self.mean_prior_count)), factors_of(gram, least)
        total = jnp.maximum(jnp.sum(transitions.rows.weight), 1.0)

        def of_action(each: tuple[tuple[Array, Array], Array]) -> Float[Array, "features outputs"]:
            (mean, spread), sums = each
            return jnp.where(is_mean[None], cho_solve((mean, True), sums), cho_solve((spread, True), sums))

        def once(before: Solution) -> Solution:
            found = self.sums(key, before, transitions)
            sums = jnp.moveaxis(found.features.reshape(len(gram), -1, before.weights.shape[1]), 2, 1)
            weights = jax.lax.map(of_action, (factors, sums))
            fit = weights[..., 0]
            explained = 2 * jnp.sum(fit * sums[..., 0]) - jnp.einsum("af,afg,ag->", fit, gram, fit)
            moved = weights - before.weights
            change = jnp.sqrt(jnp.maximum(jnp.einsum("afo,afg,ago->o", moved, gram, moved), 0.0) / total)
            noise = jnp.maximum(found.squares - explained, 0.0) / total * float(is_mean.any())  # 0 for probabilities
            change = jnp.max(roots(self.powers, change)) / self.largest_change
            return Solution(weights, change, noise, found.low, found.high, before.sweeps + 1)

        return once

    def sums(self, key: PRNGKeyArray, before: Solution, transitions: Transitions) -> Sums:
        """The targets of all transitions, by predictions that stay within the targets of the sweep before.

        A linear function extrapolates, and what is above all it was fitted to would be believed, fitted and
        extrapolated again: values of 20 where the only reward is 1.
        """
        start, (actions, count, outputs) = self.start, before.weights.shape
        flat = jnp.moveaxis(before.weights, 0, 1).reshape(count, actions * outputs)

        def add(number: Int[Array, ""], sums: Sums) -> Sums:
            block = transitions.block(number)
            after = (block.next_features @ flat).reshape(-1, actions, outputs)
            after = jnp.clip(start[None, None] + after, before.low[None, None], before.high[None, None])
            targets = self.targets(key, after, block.reward, block.terminated, block.next_mask)
            deviations = targets - start[None]
            one_hot = jax.nn.one_hot(block.action, actions) * block.weight[:, None]
            spread = (one_hot[:, :, None] * deviations[:, None, :]).reshape(-1, actions * outputs)
            there = jnp.where(block.weight[:, None] > 0, targets, start[None])
            return Sums(
                sums.features + spread.T @ block.features,
                sums.squares + jnp.sum(block.weight * deviations[:, 0] ** 2),
                jnp.minimum(sums.low, jnp.min(there, axis=0)),
                jnp.maximum(sums.high, jnp.max(there, axis=0)),
            )

        nothing = Sums(jnp.zeros((actions * outputs, count)), jnp.zeros(()), start, start)
        return jax.lax.fori_loop(0, transitions.blocks, add, nothing)
