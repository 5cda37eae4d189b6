"""The masks of allowed actions that environments of Gymnasium give in their infos."""

from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Bool

from uppertail.errors import ContractError

KEY = "action_mask"
"""Its name in an info, as Taxi has it: a number for each action, 1 where it is allowed and 0 elsewhere."""

NONE_ALLOWED = f"its {KEY} allows no action where the episode has not terminated"
NOT_ALWAYS = f"its info has an {KEY} at some resets and steps only; give it at each of them, or at none"


def mask_of(info: Any, *shape: int) -> Bool[np.ndarray, "*envs actions"] | None:
    """The mask in an info, of this shape; None: there is none. ContractError says what it is instead."""
    if not isinstance(info, dict) or (given := info.get(KEY)) is None:
        return None
    mask = np.asarray(given)
    if mask.shape != shape:
        raise ContractError(f"its {KEY} has the shape {mask.shape}, not {shape}: give a 0 or 1 for each action")
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        raise ContractError(f"its {KEY} has other values than 0 and 1, which say whether an action is allowed")
    return mask.astype(bool)


def sample_allowed(env: gymnasium.Env[Any, Any], info: Any) -> Any:
    """An allowed action at random, of a list; `info` is what the environment gave last."""
    space: Any = env.action_space
    mask = mask_of(info, int(space.n))
    return space.sample() if mask is None else space.sample(mask.astype(np.int8))
