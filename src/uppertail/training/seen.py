"""How often each action of each state was taken in a run, and when last: counted only if distributions are recorded."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


class Seen(NamedTuple):
    """The visits of each state and action.

    Args:
        visits: how often the action was taken there.
        last: the environment step of the run at which it was last taken, counted from 1; 0: never.
    """

    visits: Int[Array, "states actions"]
    last: Int[Array, "states actions"]

    @classmethod
    def nothing(cls, states: int, actions: int) -> "Seen":
        """The visits before the first step."""
        return cls(*(jnp.zeros((states, actions), jnp.int32) for _ in cls._fields))

    def after(
        self,
        states: Int[Array, " steps"],
        actions: Int[Array, " steps"],
        before: Int[Array, ""],
        counts: Bool[Array, ""],
    ) -> "Seen":
        """The visits after a rollout.

        Args:
            states: the states in which its actions were taken.
            actions: the actions.
            before: environment steps of the run before it.
            counts: whether it is a part of the run.
        """
        rows = jnp.where(counts, states.astype(jnp.int32), self.visits.shape[0])  # a row beyond the last is not written
        step = before + 1 + jnp.arange(states.shape[0], dtype=jnp.int32)
        return Seen(
            self.visits.at[rows, actions].add(1, mode="drop"), self.last.at[rows, actions].max(step, mode="drop")
        )
