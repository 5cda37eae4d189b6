"""Return distributions that are linear in fixed features of the observation: what least squares learns."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from uppertail.encodings import Encoding
from uppertail.networks.encoded import EncodedNetwork
from uppertail.types import PyTree


class LinearReturns(EncodedNetwork):
    """z(s, a) = start + weights_a . features(s), in the family's coordinates.

    Args:
        start: coordinates of the wide start.
        encoder: the encoding's own arrays.
        encoding: turns an observation into features.
        regression: turns coordinates into distributions.
    """

    start: eqx.AbstractVar[Float[Array, " outputs"]]
    encoder: eqx.AbstractVar[PyTree]
    encoding: eqx.AbstractVar[Encoding]
    regression: eqx.AbstractVar[Any]

    def returns(self, family: Any, observation: Array) -> PyTree:
        del family  # the regression knows it
        return jax.vmap(jax.vmap(self.regression.distribution))(self.outputs(observation)[None])

    @abc.abstractmethod
    def evidence(self, observation: Array) -> Float[Array, " actions"]:
        """lambda phi' A^-1 phi / phi'phi, with the lambda of the spread: 1 where no data are near, 0 with many."""


class TableReturns(LinearReturns):
    """The linear returns of a table: each state is a feature of its own, so A is a diagonal of counts.

    Args:
        values: coordinates of each state and action.
        counts: how often each action was taken in each state.
        start: coordinates of the wide start.
        encoder: the encoding's own arrays.
        encoding: gives the index of an observation.
        prior_count: lambda of the spread.
        regression: turns coordinates into distributions.
    """

    values: Float[Array, "states actions outputs"]
    counts: Float[Array, "states actions"]
    start: Float[Array, " outputs"]
    encoder: PyTree
    encoding: Any = eqx.field(static=True)
    prior_count: float = eqx.field(static=True)
    regression: Any = eqx.field(static=True)

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        return self.values[self.encoding.index(self.encoder, observation)]

    def evidence(self, observation: Array) -> Float[Array, " actions"]:
        counts = self.counts[self.encoding.index(self.encoder, observation)]
        return self.prior_count / (self.prior_count + counts)


class FeatureReturns(LinearReturns):
    """The linear returns of features that states share.

    Args:
        weights: theta of each action.
        gram: sum of phi phi' over the data of each action.
        start: coordinates of the wide start.
        encoder: the encoding's own arrays.
        encoding: turns an observation into features.
        prior_count: lambda of the spread.
        regression: turns coordinates into distributions.
    """

    weights: Float[Array, "actions features outputs"]
    gram: Float[Array, "actions features features"]
    start: Float[Array, " outputs"]
    encoder: PyTree
    encoding: Any = eqx.field(static=True)
    prior_count: float = eqx.field(static=True)
    regression: Any = eqx.field(static=True)

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        features = self.encoding.features(self.encoder, observation)
        return self.start[None] + jnp.einsum("f,afo->ao", features, self.weights)

    def evidence(self, observation: Array) -> Float[Array, " actions"]:
        features = self.encoding.features(self.encoder, observation)

        def share(gram: Float[Array, "features features"]) -> Float[Array, ""]:
            known = jnp.linalg.solve(gram + self.prior_count * jnp.eye(gram.shape[0]), features)
            return self.prior_count * (features @ known) / (features @ features)

        return jax.vmap(share)(self.gram)
