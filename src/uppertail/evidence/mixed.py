"""A network and the wide start, mixed by evidence."""

import dataclasses
from typing import Any, Self

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int

from uppertail.evidence.base import Evidence
from uppertail.networks import EncodedNetwork, Network
from uppertail.types import PyTree, Transition


class MixedNetwork(EncodedNetwork):
    """z(s, a) = u(s, a) z0 + (1 - u(s, a)) f(s)[a]: wide where nothing was seen, whatever the network f says there.

    To act, to bootstrap and to report is to ask z; what gradients teach is f alone. Where there is chance, the lowest
    of several critics counts as far as the evidence doubts an action, and their mean with the rest.
    """

    learned: Any  # f
    unknown: Evidence  # u
    stochastic: bool = eqx.field(static=True, default=False)  # whether critics differ by noise, too

    @property
    def members(self) -> int | None:
        return self.learned.members

    def outputs(self, observation: Array) -> Float[Array, "*members actions outputs"]:
        return self.learned.outputs(observation)

    def returns(self, family: Any, observation: Array) -> PyTree:
        start, share = self.unknown.start(family), self.evidence(observation)  # z0, u
        if self.stochastic:
            known = self.learned.doubted(family, observation, self.unknown.doubt(share))
        else:
            known = self.learned.returns(family, observation)
        of_actions = jax.vmap(family.mixed, in_axes=(0, None, 0))
        return jax.vmap(of_actions, in_axes=(None, None, 0))(share, start, known)

    def evidence(self, observation: Array) -> Float[Array, " actions"]:
        return self.unknown.share(observation)

    def experience(self, fresh: Transition) -> Self:
        return dataclasses.replace(self, learned=self.learned.experience(fresh), unknown=self.unknown.observe(fresh))

    def kept(self, rows: Int[Array, " count"]) -> PyTree:
        return self.unknown.kept(rows)

    def there(self, kept: PyTree) -> Self:
        return dataclasses.replace(self, unknown=self.unknown.there(kept))

    def regressor(self) -> Network:
        return self.learned

    def with_regressor(self, regressor: Any) -> Self:
        return dataclasses.replace(self, learned=regressor)

    def observe(self, observations: Array) -> Self:
        return self.with_regressor(self.learned.observe(observations))

    def with_observed(self, other: Any) -> Self:
        return self.with_regressor(self.learned.with_observed(other.learned))

    def seen_bounds(self) -> tuple[Array, Array] | None:
        return self.learned.seen_bounds() if isinstance(self.learned, EncodedNetwork) else None

    def remark(self) -> str | None:
        return self.learned.remark()
