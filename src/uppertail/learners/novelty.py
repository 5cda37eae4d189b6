"""How often a pair of state and action that was tried before shows what was never seen, read off all pairs."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uppertail.learners.outcomes import Outcomes

CLASSES = 32
"""Classes of pairs: those with 1 visit, with 2 to 3, 4 to 7, and so on."""

WEIGHT = 0.3
"""How many transitions the prior of a class counts as: half the chance of the class before, since twice as many visits
showed nothing new."""


class Chances(NamedTuple):
    """Transitions of each class of pairs, and those that showed something new.

    Their share is the estimate of Good (1953, after Turing) of the chance of what was not seen, for pairs with as many
    visits.
    """

    transitions: Float[Array, " classes"]
    new: Float[Array, " classes"]
    estimates: Float[Array, " classes"]  # the chance that the next transition of a pair does so, by the last estimate

    @classmethod
    def none(cls) -> "Chances":
        """No transition."""
        return cls(jnp.zeros(CLASSES), jnp.zeros(CLASSES), jnp.zeros(CLASSES)).estimated()

    def add(self, row: Int[Array, ""], counts: Bool[Array, ""], is_new: Bool[Array, ""]) -> "Chances":
        """After one more transition of this class; none is added if it does not count, or there is no such class."""
        return self._replace(
            transitions=self.transitions.at[row].add(counts.astype(jnp.float32), mode="drop"),
            new=self.new.at[row].add((counts & is_new).astype(jnp.float32), mode="drop"),
        )

    def estimated(self) -> "Chances":
        """With the estimates by all that was counted."""
        chance, found = jnp.asarray(1.0), list[Float[Array, ""]]()
        for transitions, new in zip(self.transitions, self.new, strict=True):
            chance = (new + WEIGHT * chance / 2) / (transitions + WEIGHT)
            found.append(chance)
        return self._replace(estimates=jnp.stack(found))

    def of(self, visits: Float[Array, "*pairs"]) -> Float[Array, "*pairs"]:
        """The estimates of pairs with so many visits."""
        return self.estimates[class_of(visits)]


class Novelty(NamedTuple):
    """How often pairs lead where nothing was known, and how often those that only led back to their state leave it.

    Nothing was known of a state that was never reached, or of an end where the pair had shown none.
    """

    unknown: Chances
    leaving: Chances
    reached: Bool[Array, " states"]  # where a transition began or led

    @classmethod
    def none(cls, states: int) -> "Novelty":
        """No transition."""
        return cls(Chances.none(), Chances.none(), jnp.zeros(states, bool))

    def add(
        self,
        visits: Float[Array, ""],
        state: Int[Array, ""],
        next_state: Int[Array, ""],
        terminated: Bool[Array, ""],
        is_new: Bool[Array, ""],
        stayed: Bool[Array, ""],
    ) -> "Novelty":
        """After one more transition of a pair with so many visits before.

        `is_new`: its outcome is new to the pair; `stayed`: the pair had only led back to its state.
        """
        reached, always = self.reached.at[state].set(True), jnp.ones((), bool)
        row = jnp.where(visits > 0, class_of(visits), CLASSES)
        return Novelty(
            self.unknown.add(row, always, is_new & (terminated | ~reached[next_state])),
            self.leaving.add(row, stayed, is_new),
            reached.at[next_state].max(~terminated),
        )

    def estimated(self) -> "Novelty":
        """With the estimates by all that was counted."""
        return self._replace(unknown=self.unknown.estimated(), leaving=self.leaving.estimated())


def class_of(visits: Float[Array, "*pairs"]) -> Int[Array, "*pairs"]:
    """The class of pairs with so many visits, at least one."""
    _, exponent = jnp.frexp(jnp.maximum(visits, 1.0))
    return jnp.minimum(exponent.astype(jnp.int32) - 1, CLASSES - 1)


def new_to_its_pair(before: Outcomes, after: Outcomes) -> Bool[Array, ""]:
    """Whether the transition between the two showed its pair an outcome that the pair had not shown."""
    return (after.size > before.size) | (after.replaced > before.replaced)
