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


UNKNOWN, LEAVING = 0, 1
"""What a transition may show: what nothing was known of; and of a pair that only led back to its own state, that it
leaves it."""


class Novelty(NamedTuple):
    """Transitions of each class of pairs, and those that showed something new, of both kinds.

    Nothing was known of a state that was never reached, or of an end where the pair had shown none. The share of what
    is new is the estimate of Good (1953, after Turing) of the chance of what was not seen, for pairs with as many
    visits.
    """

    transitions: Float[Array, "kinds classes"]
    new: Float[Array, "kinds classes"]
    reached: Bool[Array, " states"]  # where a transition began or led
    chances: Float[Array, "kinds classes"]  # that the next transition of a pair is new, by the last estimate

    @classmethod
    def none(cls, states: int) -> "Novelty":
        """No transition."""
        nothing = jnp.zeros((2, CLASSES))
        return cls(nothing, nothing, jnp.zeros(states, bool), nothing).estimated()

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
        reached = self.reached.at[state].set(True)
        counts = jnp.stack([jnp.ones((), bool), stayed])
        found = counts & is_new & jnp.stack([terminated | ~reached[next_state], stayed])
        row = jnp.where(visits > 0, class_of(visits), CLASSES)
        return self._replace(
            transitions=self.transitions.at[:, row].add(counts.astype(jnp.float32), mode="drop"),
            new=self.new.at[:, row].add(found.astype(jnp.float32), mode="drop"),
            reached=reached.at[next_state].max(~terminated),
        )

    def estimated(self) -> "Novelty":
        """With the chances by all that was counted."""
        chance, found = jnp.ones(2), list[Float[Array, " kinds"]]()
        for transitions, new in zip(self.transitions.T, self.new.T, strict=True):
            chance = (new + WEIGHT * chance / 2) / (transitions + WEIGHT)
            found.append(chance)
        return self._replace(chances=jnp.stack(found, axis=1))

    def of(self, kind: int, visits: Float[Array, "*pairs"]) -> Float[Array, "*pairs"]:
        """The chances of pairs with so many visits."""
        return self.chances[kind, class_of(visits)]


def class_of(visits: Float[Array, "*pairs"]) -> Int[Array, "*pairs"]:
    """The class of pairs with so many visits, at least one."""
    _, exponent = jnp.frexp(jnp.maximum(visits, 1.0))
    return jnp.minimum(exponent.astype(jnp.int32) - 1, CLASSES - 1)


def new_to_its_pair(before: Outcomes, after: Outcomes) -> Bool[Array, ""]:
    """Whether the transition between the two showed its pair an outcome that the pair had not shown."""
    return (after.size > before.size) | (after.replaced > before.replaced)
