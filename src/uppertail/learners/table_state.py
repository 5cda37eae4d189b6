"""What a table is made of: what it predicts, what it keeps, and values on the way to their fixed point."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from uppertail.learners.coordinates import Coordinates
from uppertail.learners.novelty import Novelty
from uppertail.learners.outcomes import Outcomes
from uppertail.masks import ActionMask
from uppertail.networks import EncodedNetwork
from uppertail.types import PyTree


class TableReturns(EncodedNetwork):
    """The coordinates of z(s, a) for each state and action."""

    encoder: PyTree
    encoding: Any = eqx.field(static=True)
    values: Float[Array, "states actions outputs"]
    counts: Float[Array, "states actions"]  # how often each action was taken in each state
    priors: Float[Array, "states actions"]  # lambda of the spread of each pair
    plans: Float[Array, "states actions draws"]  # values, in each draw from their posterior
    replaced: Int[Array, ""]  # outcomes that were given up for want of room
    masks: ActionMask = None  # [states, actions]: what was allowed where a transition led; nothing where none did

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        return self.values[self.encoding.index(self.encoder, observation)]

    def returns(self, family: Any, observation: Array) -> PyTree:
        return jax.vmap(jax.vmap(Coordinates(family).distribution))(self.outputs(observation)[None])

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

    def allowed(self, observation: Array) -> ActionMask:
        return of_states(self.masks, self.encoding.index(self.encoder, observation))

    def drawn(self, observation: Array) -> Float[Array, "draws actions"] | None:
        return self.plans[self.encoding.index(self.encoder, observation)].T if self.plans.shape[-1] else None


class TableMemory(NamedTuple):
    """What a table keeps beside its values: data, and numbers of the last `Sweep`."""

    outcomes: Outcomes
    novelty: Novelty
    noise: Float[Array, ""]
    change: Float[Array, ""]  # above 1: sweeps have to go on
    errors: Float[Array, "draws pairs"]  # how far each draw from the posterior is from its mean, in standard errors
    oldest: Int[Array, ""]  # the draw that is renewed next
    arrivals: Int[Array, " states"]  # transitions that led there, and did not terminate
    earned: Bool[Array, ""]  # whether any reward was not 0
    doubts: Bool[Array, ""]  # whether all was tried and nothing earned, so that chance is taken to be at work
    masks: ActionMask = None  # those of `TableReturns`

    def allowed(self, states: Int[Array, "*batch"]) -> ActionMask:
        """Which actions are allowed in some states."""
        return of_states(self.masks, states)


class Sweep(NamedTuple):
    """Values on the way to their fixed point."""

    values: Float[Array, "states actions outputs"]  # coordinates of each state and action
    plans: Float[Array, "states actions draws"]  # their values in each draw from the posterior
    priors: Float[Array, "states actions"]  # lambda of the spread of each
    noise: Float[Array, ""]  # variance of the targets of the noisiest pair, in squared units of return
    change: Float[Array, ""]  # the largest of a coordinate in the last sweep, over its tolerance; above 1, sweeps go on
    number: Int[Array, ""]  # sweeps so far

    @property
    def tables(self) -> dict[str, Array]:
        """The fields of `TableReturns` that a sweep renews."""
        return {"values": self.values, "plans": self.plans, "priors": self.priors}


class Sums(NamedTuple):
    """The targets of all transitions of each pair."""

    visits: Float[Array, " lanes"]  # how many transitions there are
    left: Float[Array, " lanes"]  # how many of them led to another state, or to an end
    targets: Float[Array, "lanes outputs"]  # their coordinates, summed
    mean: Float[Array, " lanes"]  # mean over transitions of the mean return
    squares: Float[Array, " lanes"]  # summed squared deviations from it
    plans: Float[Array, "lanes draws"]  # summed targets in each draw


def of_states(
    masks: Bool[Array, "states actions"] | None, places: Int[Array, "*places"]
) -> Bool[Array, "*places actions"] | None:
    """Which actions are allowed in some states; all of them where that was never said, and nothing is backed up."""
    if masks is None:
        return None
    mask = masks[places]
    return mask | ~jnp.any(mask, axis=-1, keepdims=True)
