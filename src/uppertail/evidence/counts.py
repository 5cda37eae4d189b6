"""Counts of visits: evidence where states repeat exactly."""

import dataclasses
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.evidence.base import Evidence, EvidenceBuilder
from uppertail.networks import PerAction
from uppertail.schema import settle, traced
from uppertail.types import PyTree, Transition


class CountedEvidence(Evidence):
    """u(s, a) = lambda / (lambda + n(s, a)), with n the number of times that a was taken in s."""

    encoding: Encoding = eqx.field(static=True)
    encoder: PyTree
    visits: Float[Array, "states actions"]
    prior_count: Float[Array, ""]  # lambda

    def share(self, observation: Array) -> Float[Array, " actions"]:
        return self.prior_count / (self.prior_count + self.visits[self.encoding.index(self.encoder, observation)])

    def observe(self, fresh: Transition) -> Self:
        encoder = self.encoding.observe(self.encoder, fresh.observation)
        states = jax.vmap(self.encoding.index, in_axes=(None, 0))(encoder, fresh.observation)
        visits = self.visits.at[states, fresh.action].add(1.0)
        return dataclasses.replace(self, encoder=encoder, visits=visits)


@dataclasses.dataclass(frozen=True)
class Counts(EvidenceBuilder):
    """u(s, a) = lambda / (lambda + n(s, a)) by visits, as in a table: for one-hot states.

    Args:
        prior_count: lambda, above 0: how many visits the wide start counts as.

    Examples:
        >>> from uppertail.encodings import OneHot
        >>> evidence = ut.Counts(prior_count=0.5).init(jax.random.key(0), OneHot(5), num_actions=3, capacity=100)
        >>> evidence.share(jnp.array(4)).tolist()
        [1.0, 1.0, 1.0]
    """

    prior_count: float = traced(0.01)

    def __post_init__(self) -> None:
        settle(self)
        if self.prior_count <= 0:
            raise InputError(f"prior_count is {self.prior_count}: use a finite number above 0, for example 0.01.")

    def usual(self, encoding: Encoding) -> dict[str, Any]:
        return {"network": PerAction(normalization="layer")}  # a step of Adam turns weights of a state by some percent

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> CountedEvidence:
        if not encoding.is_one_hot:
            raise InputError(
                f"Counts needs one-hot states, but observations enter as {type(encoding).__name__}: leave evidence "
                "out, or use an encoding that is, for example --env.encoding hashed."
            )
        nothing: Any = jnp.zeros((encoding.num_features, num_actions))
        return CountedEvidence(encoding, encoding.init(key), nothing, jnp.asarray(self.prior_count))
