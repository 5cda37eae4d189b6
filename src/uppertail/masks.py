"""Action masks: which actions are allowed where an environment is."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

ActionMask = Bool[Array, "*batch actions"] | None
"""True where an action is allowed; None: all are, always."""


def masked(values: Float[Array, "*batch actions"], mask: ActionMask) -> Float[Array, "*batch actions"]:
    """A number of each action, - infinity where it is not allowed."""
    return values if mask is None else jnp.where(mask, values, -jnp.inf)
