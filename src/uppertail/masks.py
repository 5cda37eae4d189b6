"""Action masks: which actions are allowed where an environment is."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

ActionMask = Bool[Array, "*batch actions"] | None
"""True where an action is allowed; None: all are, always."""


def masked(values: Float[Array, "*axes"], mask: ActionMask) -> Float[Array, "*axes"]:
    """Numbers of each action, whose axes may go on behind those of the mask; - infinity where it is not allowed."""
    if mask is None:
        return values
    return jnp.where(jnp.expand_dims(mask, tuple(range(mask.ndim, values.ndim))), values, -jnp.inf)
