"""A sweep over a table: pairs are backed up side by side, each by one outcome after the other."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uppertail.learners.outcomes import NONE, Outcomes


class Targets(NamedTuple):
    """The targets of all transitions of each pair.

    Args:
        visits: how many transitions there are.
        deviations: their coordinates less the start's, summed.
        mean: mean over transitions of the mean return.
        squares: summed squared deviations from it.
        plans: summed values in each draw.
    """

    visits: Float[Array, " lanes"]
    deviations: Float[Array, "lanes outputs"]
    mean: Float[Array, " lanes"]
    squares: Float[Array, " lanes"]
    plans: Float[Array, "lanes draws"]


class Lanes(NamedTuple):
    """Each lane has a pair, and goes on to another one after the last outcome of it: few lanes wait for long lists.

    Args:
        pairs: the pair of each lane; NONE: there are no more.
        slots: the outcome that comes next.
        targets: the targets of the outcomes before.
    """

    pairs: Int[Array, " lanes"]
    slots: Int[Array, " lanes"]
    targets: Targets

    @classmethod
    def begun(cls, outcomes: Outcomes, pairs: Int[Array, " lanes"], outputs: int, draws: int) -> "Lanes":
        """The lanes before the first outcome of these pairs."""
        none, vectors, plans = (jnp.zeros((pairs.shape[0], *size)) for size in ((), (outputs,), (draws,)))
        slots = jnp.where(pairs == NONE, NONE, outcomes.newest[pairs])
        return cls(pairs, slots, Targets(none, vectors, none, none, plans))

    def ends(self, outcomes: Outcomes) -> Bool[Array, " lanes"]:
        """Where the next outcome is the last one, or there is no pair."""
        return (self.slots == NONE) | (outcomes.earlier[self.slots] == NONE)

    def after(self, outcomes: Outcomes, targets: Targets, following: Int[Array, " lanes"]) -> "Lanes":
        """The lanes after the next outcome, which gave these targets; where it was the last, the following pair."""
        ends = self.ends(outcomes)
        begun = Lanes.begun(outcomes, following, targets.deviations.shape[-1], targets.plans.shape[-1])
        going_on = Lanes(self.pairs, outcomes.earlier[self.slots], targets)

        def one_of(new: Array, old: Array) -> Array:
            return jnp.where(jnp.expand_dims(ends, range(1, old.ndim)), new, old)

        return jax.tree.map(one_of, begun, going_on)
