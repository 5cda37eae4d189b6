"""Ridge regression of backed-up targets toward the wide start: what a table and vectors share."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import TINY, Agent, where
from uppertail.learners.base import Learner
from uppertail.masks import ActionMask
from uppertail.networks import EncodedNetwork
from uppertail.policies import ExplorationPolicy, Greedy
from uppertail.schema import TRACED
from uppertail.types import POLICY_CHOICE, PyTree, Transition

MOST = 1.0
"""The largest lambda of the spread that noise can lead to."""


class LinearReturns(EncodedNetwork):
    """z(s, a) = start + weights_a . features(s), in coordinates of the family.

    The evidence for an action is lambda phi' A^-1 phi / phi'phi, with the lambda of the spread.
    """

    start: Float[Array, " outputs"]  # coordinates of the wide start
    encoder: PyTree
    encoding: Any = eqx.field(static=True)
    powers: tuple[float, ...] = eqx.field(static=True)  # what each coordinate is raised to
    prior_count: Float[Array, ""]  # lambda of the spread

    def returns(self, family: Any, observation: Array) -> PyTree:
        of_vector = functools.partial(from_powers, family, self.powers)
        return jax.vmap(jax.vmap(of_vector))(self.outputs(observation)[None])


class TableReturns(LinearReturns):
    """The linear returns of a table: each state is a feature of its own, so A is a diagonal of counts."""

    values: Float[Array, "states actions outputs"]
    counts: Float[Array, "states actions"]  # how often each action was taken in each state
    priors: Float[Array, "states actions"]  # lambda of the spread of each pair
    plans: Float[Array, "states actions draws"]  # values, in each draw from their posterior
    replaced: Int[Array, ""]  # outcomes that were given up for want of room

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        return self.values[self.encoding.index(self.encoder, observation)]

    def evidence(self, observation: Array) -> Float[Array, " actions"]:
        index = self.encoding.index(self.encoder, observation)
        return self.priors[index] / (self.priors[index] + self.counts[index])

    def remark(self) -> str | None:
        if not (lost := int(np.asarray(self.replaced).sum())):
            return EncodedNetwork.remark(self)
        return (
            f"The table gave up {lost:,} rare outcomes of states and actions for want of room, so averages over them "
            "may be wrong: use a larger --learner.outcomes_per_pair."
        )

    def drawn(self, observation: Array) -> Float[Array, "draws actions"] | None:
        return self.plans[self.encoding.index(self.encoder, observation)].T if self.plans.shape[-1] else None


class FeatureReturns(LinearReturns):
    """The linear returns of features that states share: weights theta_a, and the sum of phi phi' over a's data."""

    weights: Float[Array, "actions features outputs"]
    gram: Float[Array, "actions features features"]

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        features = self.encoding.features(self.encoder, observation)
        return self.start[None] + jnp.einsum("f,afo->ao", features, self.weights)

    def evidence(self, observation: Array) -> Float[Array, " actions"]:
        features = self.encoding.features(self.encoder, observation)

        def share(gram: Float[Array, "features features"]) -> Float[Array, ""]:
            known = jnp.linalg.solve(gram + self.prior_count * jnp.eye(gram.shape[0]), features)
            unexplained = jnp.maximum(1.0 - features @ features, 0.0)  # nothing is near that has features
            return (unexplained + self.prior_count * (features @ known)) / jnp.maximum(features @ features, 1.0)

        return jax.vmap(share)(self.gram)


@dataclasses.dataclass(frozen=True)
class Regression(Learner):
    """theta = (sum phi phi' + lambda I)^-1 sum phi (y - y0), sweep after sweep, until it no longer changes.

    Its settings are those of `LeastSquares`, and none of them is open.
    """

    agent: Agent
    spread_prior_count: float = dataclasses.field(metadata=TRACED)
    mean_prior_count: float = dataclasses.field(metadata=TRACED)
    start_width: float = dataclasses.field(metadata=TRACED)
    greedy_mean: bool
    spread_power: float
    sweeps: int
    tolerance: float = dataclasses.field(metadata=TRACED)
    outcomes_per_pair: int
    transitions: int
    stochastic: bool

    @property
    def start(self) -> Float[Array, " outputs"]:
        """y0: the coordinates of the wide start; of vectors, in the middle of the returns.

        Its upper bound is to lie above the best return, and a constant in all rewards must not change what is explored.
        """
        family, start = self.agent.family, self.spread_start
        if self.agent.encoding.is_one_hot or family.start_mean is None:
            return start
        return self.coordinates(family.centered(self.distribution(start)))

    @property
    def spread_start(self) -> Float[Array, " outputs"]:
        """The start about a return of 0."""
        family, powers = self.agent.family, np.array(self.powers, np.float32)
        own = self.coordinates(family.from_outputs(jnp.zeros(family.num_outputs)))
        return jnp.where(self.is_spread, jnp.asarray(self.start_width) ** powers, 1.0) * own

    @property
    def start_square(self) -> Float[Array, ""]:
        """tau^2, the second moment of the start: a point mass has no spread, but may start high."""
        family, start = self.agent.family, self.distribution(self.spread_start)
        return family.mean(start) ** 2 + family.std(start) ** 2

    @property
    def largest_change(self) -> Float[Array, ""]:
        """The change of a coordinate below which sweeps end, in units of return or of probability."""
        largest = jnp.max(jnp.abs(roots(self.powers, self.spread_start)))
        return self.tolerance * jnp.where(largest > 0, largest, 1.0)  # a point mass may start at 0

    @property
    def is_mean(self) -> Bool[np.ndarray, " outputs"]:
        """Which coordinates are the mean return."""
        return np.array(self.agent.family.is_mean)

    @property
    def is_spread(self) -> Bool[np.ndarray, " outputs"]:
        """Which coordinates are a spread beside a mean."""
        return self.is_mean.any() & ~self.is_mean

    @property
    def powers(self) -> tuple[float, ...]:
        """What each coordinate of the family is raised to."""
        return tuple(np.where(self.is_spread, self.spread_power, 1.0).tolist())

    @property
    def can_refit(self) -> bool:
        return True

    def linear(self, key: PRNGKeyArray) -> dict[str, Any]:
        """The fields of `LinearReturns` at the start."""
        encoding = self.agent.encoding
        fields = {"start": self.start, "encoder": encoding.init(key), "encoding": encoding, "powers": self.powers}
        return {**fields, "prior_count": jnp.asarray(self.spread_prior_count)}

    def prior_counts(self, noise: Float[Array, "*pairs"]) -> Float[Array, "*pairs outputs"]:
        """lambda = sigma^2 / tau^2 of each coordinate, by the variance of the targets in units of return squared."""
        least = self.spread_prior_count
        spread = jnp.clip(noise / jnp.maximum(self.start_square, TINY), least, jnp.maximum(MOST, least))
        return jnp.stack([jnp.where(each, self.mean_prior_count, spread) for each in self.is_mean], axis=-1)

    def coordinates(self, z: PyTree) -> Float[Array, " outputs"]:
        """The coordinates of one distribution that are averaged."""
        plain = self.agent.family.coordinates(z)
        return plain ** np.array(self.powers, np.float32) if set(self.powers) != {1.0} else plain

    def distribution(self, coordinates: Float[Array, " outputs"]) -> PyTree:
        """The valid distribution nearest to these coordinates."""
        return from_powers(self.agent.family, self.powers, coordinates)

    def targets(
        self,
        key: PRNGKeyArray,
        next_values: Float[Array, "batch actions outputs"],
        reward: Float[Array, " batch"],
        terminated: Bool[Array, " batch"],
        next_mask: ActionMask = None,
    ) -> Float[Array, "batch outputs"]:
        """y = r + discount * Z(s', a') in coordinates, for a batch of transitions; a' is the policy's choice.

        All states share the key: a policy that draws makes the same draws everywhere, so that sweeps can converge.
        With a greedy mean, the spread's target is what is left between it and the policy's upper bound, in units of c:
        a loop through known states would otherwise have the mean of the way to the goal and the spread of what is
        unknown.
        """
        family, none = self.agent.family, jnp.zeros(reward.shape, jnp.int32)
        unknown = jnp.full_like(none, POLICY_CHOICE)
        transitions = Transition(none, none, reward, terminated, none, unknown, next_action_mask=next_mask)
        z_next: PyTree = jax.vmap(jax.vmap(self.distribution))(next_values)

        def by(policy: ExplorationPolicy) -> Float[Array, "batch outputs"]:
            agent = dataclasses.replace(self.agent, policy=policy)

            def of_one(z_next: PyTree, transition: Transition) -> Float[Array, " outputs"]:
                bootstrap = agent.bootstrap(key, z_next, transition)
                bootstrap = where(transition.terminated, family.terminal(), bootstrap)
                return self.coordinates(agent.back_up(bootstrap, transition))

            return jax.vmap(of_one)(z_next, transitions)

        targets = by(self.agent.policy)
        if not (self.greedy_mean and self.is_mean.any()):
            return targets
        greedy, is_mean, powers = by(Greedy()), self.is_mean[None], np.array(self.powers, np.float32)[None]
        lost = jnp.sum(jnp.where(is_mean, greedy - targets, 0.0), axis=-1, keepdims=True)
        lost = lost / jnp.maximum(self.agent.policy.optimism, TINY)
        spread = jnp.maximum(jnp.maximum(targets, 0.0) ** (1 / powers) - lost, 0.0) ** powers
        return jnp.where(is_mean, greedy, spread)


def roots(powers: tuple[float, ...], vectors: Float[Array, "*batch outputs"]) -> Float[Array, "*batch outputs"]:
    """The coordinates before they were raised to their powers."""
    if set(powers) == {1.0}:
        return vectors
    exponents = np.broadcast_to(np.array(powers, np.float32), vectors.shape)
    return jnp.where(exponents == 1, vectors, jnp.maximum(vectors, 0.0) ** (1 / exponents))


def from_powers(family: Any, powers: tuple[float, ...], vector: Float[Array, " outputs"]) -> PyTree:
    """The valid distribution nearest to these powers of a family's coordinates."""
    return family.from_coordinates(roots(powers, vector))
