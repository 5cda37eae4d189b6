"""Return distributions that are linear in fixed features of the observation: what least squares learns."""

import abc
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from uppertail.networks.base import EncodedNetwork
from uppertail.types import PyTree


class LinearReturns(EncodedNetwork):
    """z(s, a) = start + weights_a . features(s), in the family's coordinates."""

    start: Float[Array, " outputs"]  # coordinates of the wide start
    encoder: PyTree
    prior_count: Float[Array, ""]  # lambda of the spread
    encoding: Any = eqx.field(static=True)
    powers: tuple[float, ...] = eqx.field(static=True)  # what each coordinate is raised to

    def returns(self, family: Any, observation: Array) -> PyTree:
        of_vector = functools.partial(from_powers, family, self.powers)
        return jax.vmap(jax.vmap(of_vector))(self.outputs(observation)[None])

    @abc.abstractmethod
    def evidence(self, observation: Array) -> Float[Array, " actions"]:
        """lambda phi' A^-1 phi / phi'phi, with the lambda of the spread: 1 where no data are near, 0 with many."""


def roots(powers: tuple[float, ...], vectors: Float[Array, "*batch outputs"]) -> Float[Array, "*batch outputs"]:
    """The coordinates before they were raised to their powers."""
    if set(powers) == {1.0}:
        return vectors
    exponents = np.broadcast_to(np.array(powers, np.float32), vectors.shape)
    return jnp.where(exponents == 1, vectors, jnp.maximum(vectors, 0.0) ** (1 / exponents))


def from_powers(family: Any, powers: tuple[float, ...], vector: Float[Array, " outputs"]) -> PyTree:
    """The valid distribution nearest to these powers of a family's coordinates."""
    return family.from_coordinates(roots(powers, vector))


class TableReturns(LinearReturns):
    """The linear returns of a table: each state is a feature of its own, so A is a diagonal of counts."""

    values: Float[Array, "states actions outputs"]
    counts: Float[Array, "states actions"]  # how often each action was taken in each state
    plans: Float[Array, "states actions draws"]  # values, in each draw from their posterior

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        return self.values[self.encoding.index(self.encoder, observation)]

    def evidence(self, observation: Array) -> Float[Array, " actions"]:
        counts = self.counts[self.encoding.index(self.encoder, observation)]
        return self.prior_count / (self.prior_count + counts)

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
