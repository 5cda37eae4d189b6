"""Least squares on features that states share: vectors of numbers, whose A is a full matrix for each action."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.learners.base import Learner, LearnerState, Metrics
from uppertail.learners.regression import Regression
from uppertail.networks.linear import FeatureReturns
from uppertail.types import POLICY_CHOICE, PyTree, Transition

BLOCK = 512
"""Transitions whose targets are computed at once."""

PRECISION = 4e-6
"""The smallest lambda for each transition that 32-bit floats can tell from rounding errors in A."""


class Data(NamedTuple):
    """The transitions that are kept, and their features.

    Args:
        observation, action, reward, terminated, next_observation: the transitions.
        features: features of s.
        next_features: features of s'.
        weight: how many transitions each stands for; 0: no transition.
        added: how many transitions were ever added.
        gram: sum of weight * phi phi' over the transitions of each action.
        noise: variance of the targets about their predictions.
    """

    observation: Float[Array, "rows entries"]
    action: Int[Array, " rows"]
    reward: Float[Array, " rows"]
    terminated: Bool[Array, " rows"]
    next_observation: Float[Array, "rows entries"]
    features: Float[Array, "rows features"]
    next_features: Float[Array, "rows features"]
    weight: Float[Array, " rows"]
    added: Int[Array, ""]
    gram: Float[Array, "actions features features"]
    noise: Float[Array, ""]

    @property
    def size(self) -> Int[Array, ""]:
        """How many rows hold a transition."""
        return jnp.minimum(self.added, self.weight.shape[0])


@dataclasses.dataclass(frozen=True)
class FeatureLearner(Learner):
    """Ridge regression on the features of all transitions, for each action, with targets computed anew in each sweep.

    Args:
        regression: the targets, the start and how much it counts.
        rows: transitions that are kept.
    """

    regression: Regression
    rows: int

    @property
    def agent(self) -> Agent:
        return self.regression.agent

    @property
    def updates(self) -> int:
        return 1

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        encoding, start, rows = self.agent.encoding, self.regression.start, self.rows
        count, entries = encoding.num_features, observations.shape[1]
        network = FeatureReturns(
            weights=jnp.zeros((num_actions, count, start.shape[0])),
            gram=jnp.zeros((num_actions, count, count)),
            start=start,
            encoder=encoding.init(key),
            prior_count=jnp.asarray(self.regression.spread_prior_count),
            encoding=encoding,
            powers=self.regression.powers,
        )
        data = Data(
            observation=jnp.zeros((rows, entries)),
            action=jnp.zeros(rows, jnp.int32),
            reward=jnp.zeros(rows),
            terminated=jnp.zeros(rows, bool),
            next_observation=jnp.zeros((rows, entries)),
            features=jnp.zeros((rows, count)),
            next_features=jnp.zeros((rows, count)),
            weight=jnp.zeros(rows),
            added=jnp.zeros((), jnp.int32),
            gram=jnp.zeros((num_actions, count, count)),
            noise=jnp.zeros(()),
        )
        return LearnerState(network.observe(observations), data)

    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        del iteration
        network = state.network.observe(fresh.observation).observe(fresh.next_observation)
        same = jax.tree.map(lambda old, new: jnp.all(old == new), state.network.encoder, network.encoder)
        changed = ~jnp.all(jnp.stack(jax.tree.leaves(same)))
        data = self.with_features(self.add(state.memory, state.network.encoder, fresh), network.encoder, changed)
        weights, change, sweeps, noise = self.solve(key, network.weights, data)
        network = dataclasses.replace(network, weights=weights, gram=data.gram)
        data = data._replace(noise=noise)
        return LearnerState(network, data), Metrics(change[None], sweeps[None].astype(jnp.float32), 0.0 * change[None])

    def add(self, data: Data, encoder: PyTree, fresh: Transition) -> Data:
        """The data with the transitions of a rollout; the oldest make way for them."""
        count = fresh.action.shape[0]
        rows = (data.added + jnp.arange(count)) % self.rows
        of_each = jax.vmap(self.agent.encoding.features, in_axes=(None, 0))
        features, next_features = of_each(encoder, fresh.observation), of_each(encoder, fresh.next_observation)
        # The features of evicted rows are computed again: to read what is overwritten would copy the whole array.
        evicted = of_each(encoder, data.observation[rows])
        before = self._gram(evicted, data.weight[rows], data.action[rows], data.gram.shape[0])
        ones = jnp.ones(count)
        gram = data.gram + self._gram(features, ones, fresh.action, data.gram.shape[0]) - before
        new = (fresh.observation, fresh.action, fresh.reward, fresh.terminated, fresh.next_observation)
        old = data[: len(new)]
        stored = [each.at[rows].set(value) for each, value in zip(old, new, strict=True)]
        return data._replace(
            observation=stored[0],
            action=stored[1],
            reward=stored[2],
            terminated=stored[3],
            next_observation=stored[4],
            features=data.features.at[rows].set(features),
            next_features=data.next_features.at[rows].set(next_features),
            weight=data.weight.at[rows].set(ones),
            added=data.added + count,
            gram=gram,
        )

    def with_features(self, data: Data, encoder: PyTree, changed: Bool[Array, ""]) -> Data:
        """The data with the features of an encoder that has changed, block by block; no block if it has not."""

        def block(number: Int[Array, ""], carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            features, next_features, gram = carry
            start = self._start(number)
            of_each = jax.vmap(self.agent.encoding.features, in_axes=(None, 0))
            here = of_each(encoder, _rows(data.observation, start))
            after = of_each(encoder, _rows(data.next_observation, start))
            first = (start + jnp.arange(BLOCK) >= number * BLOCK).astype(jnp.float32)
            gram = gram + self._gram(here, _rows(data.weight, start) * first, _rows(data.action, start), gram.shape[0])
            features = jax.lax.dynamic_update_slice_in_dim(features, here, start, 0)
            return features, jax.lax.dynamic_update_slice_in_dim(next_features, after, start, 0), gram

        carry = (data.features, data.next_features, jnp.where(changed, 0.0, data.gram))
        blocks = jnp.where(changed, -(-data.size // BLOCK), 0)
        features, next_features, gram = jax.lax.fori_loop(0, blocks, block, carry)
        return data._replace(features=features, next_features=next_features, gram=gram)

    def solve(
        self, key: PRNGKeyArray, weights: Float[Array, "actions features outputs"], data: Data
    ) -> tuple[Array, Array, Array, Array]:
        """Sweeps over all data until predictions no longer change: weights, change, sweeps and the targets' noise."""
        regression, count = self.regression, data.gram.shape[1]
        priors = regression.prior_counts(data.noise)
        eye, is_mean = jnp.eye(count), np.array(self.agent.family.is_mean)

        def factor(prior: Float[Array, ""]) -> PyTree:
            def of_action(gram: Array) -> Array:
                return cho_factor(gram + jnp.maximum(prior, PRECISION * jnp.trace(gram)) * eye, lower=True)[0]

            return jax.lax.map(of_action, data.gram)

        least = jnp.max(jnp.where(is_mean, regression.spread_prior_count, priors))
        mean, spread = factor(jnp.asarray(regression.mean_prior_count)), factor(least)

        def solved(sums: Float[Array, "actions features outputs"]) -> Float[Array, "actions features outputs"]:
            def of_action(mean: Array, spread: Array, sums: Array) -> Array:
                return jnp.where(is_mean[None], cho_solve((mean, True), sums), cho_solve((spread, True), sums))

            return jax.lax.map(lambda each: of_action(*each), (mean, spread, sums))

        tolerance = regression.tolerance * jnp.max(jnp.abs(regression.start))

        def sweep(carry: tuple[Array, ...]) -> tuple[Array, ...]:
            weights, _, number, _ = carry
            sums, squares = self.sums(key, weights, data)
            new = solved(sums)
            explained = 2 * jnp.sum(new[..., 0] * sums[..., 0]) - jnp.einsum(
                "af,afg,ag->", new[..., 0], data.gram, new[..., 0]
            )
            noise = jnp.maximum(squares - explained, 0.0) / jnp.maximum(jnp.sum(data.weight), 1.0)
            # the change of a prediction, root mean square over the data
            moved = new - weights
            change = jnp.sqrt(
                jnp.max(jnp.einsum("afo,afg,ago->o", moved, data.gram, moved)) / jnp.maximum(jnp.sum(data.weight), 1.0)
            )
            return new, change, number + 1, noise

        def goes_on(carry: tuple[Array, ...]) -> Array:
            return (carry[1] > tolerance) & (carry[2] < regression.most_sweeps)

        start = (weights, jnp.full((), jnp.inf), jnp.zeros((), jnp.int32), data.noise)
        return jax.lax.while_loop(goes_on, sweep, start)  # pyright: ignore[reportReturnType]

    def sums(
        self, key: PRNGKeyArray, weights: Float[Array, "actions features outputs"], data: Data
    ) -> tuple[Float[Array, "actions features outputs"], Float[Array, ""]]:
        """b: sum of weight * phi (y - y0) over the transitions of each action; and the targets' mean squared error."""
        regression, (actions, count, outputs) = self.regression, weights.shape
        flat = jnp.moveaxis(weights, 0, 1).reshape(count, actions * outputs)
        low, high = self.bounds(data)

        def block(number: Int[Array, ""], carry: tuple[Array, Array]) -> tuple[Array, Array]:
            sums, squares = carry
            start = self._start(number)
            features, weight, action = (_rows(each, start) for each in (data.features, data.weight, data.action))
            weight = weight * (start + jnp.arange(BLOCK) >= number * BLOCK).astype(jnp.float32)
            after = regression.start[None, None] + (_rows(data.next_features, start) @ flat).reshape(
                -1, actions, outputs
            )
            after = jnp.clip(after, low[None, None], high[None, None])
            rows = Transition(
                action,
                action,
                _rows(data.reward, start),
                _rows(data.terminated, start),
                action,
                jnp.full_like(action, POLICY_CHOICE),
            )
            deviations = regression.targets(key, after, rows) - regression.start[None]
            one_hot = jax.nn.one_hot(action, actions) * weight[:, None]
            spread = (one_hot[:, :, None] * deviations[:, None, :]).reshape(-1, actions * outputs)
            return sums + features.T @ spread, squares + jnp.sum(weight * deviations[:, 0] ** 2)

        zero = (jnp.zeros((count, actions * outputs)), jnp.zeros(()))
        sums, squares = jax.lax.fori_loop(0, -(-data.size // BLOCK), block, zero)
        return jnp.moveaxis(sums.reshape(count, actions, outputs), 1, 0), squares

    def bounds(self, data: Data) -> tuple[Float[Array, " outputs"], Float[Array, " outputs"]]:
        """The lowest and highest coordinates that are possible: a linear function extrapolates beyond them.

        No return is beyond what the rewards so far would add up to for ever, no spread wider than the start's. Where
        none of several coordinates is a mean return, they are probabilities.
        """
        start, horizon = self.regression.start, 1.0 / jnp.maximum(1.0 - self.agent.discount, 1e-6)
        worst = jnp.minimum(horizon * jnp.minimum(jnp.min(data.reward), 0.0), start)
        best = jnp.maximum(horizon * jnp.maximum(jnp.max(data.reward), 0.0), start)
        if start.shape[0] > 1 and not any(self.agent.family.is_mean):
            return jnp.zeros_like(start), jnp.ones_like(start)
        is_spread = jnp.array(self.regression.is_spread)
        return jnp.where(is_spread, 0.0, worst), jnp.where(is_spread, start, best)

    def _start(self, number: Int[Array, ""]) -> Int[Array, ""]:
        """The first row of a block; the last one begins earlier, so that it fits."""
        return jnp.minimum(number * BLOCK, self.rows - BLOCK)

    @staticmethod
    def _gram(features: Array, weight: Array, action: Array, actions: int) -> Float[Array, "actions features features"]:
        by_action = jax.nn.one_hot(action, actions, axis=0) * weight[None]
        return jax.vmap(lambda weight: (features * weight[:, None]).T @ features)(by_action)


def _rows(array: Array, start: Int[Array, ""]) -> Array:
    return jax.lax.dynamic_slice_in_dim(array, start, BLOCK, 0)
