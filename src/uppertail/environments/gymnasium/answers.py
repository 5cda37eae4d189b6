"""What an environment's reset and step have to give."""

from typing import Any

import numpy as np


def checked_reset(given: Any) -> tuple[Any, dict[str, Any]]:
    """What an environment's reset gives: the first observation and the info.

    Raises:
        ValueError: it gives something else.
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError("its reset gives no pair of an observation and an info, as Gymnasium's does")
    first, info = given
    return first, info


def checked_step(given: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """What an environment's step gives; an array of one truth value, as some give, is that value.

    Raises:
        ValueError: it gives something else, or the reward is no number.
    """
    if not isinstance(given, tuple | list) or len(given) != 5:
        count = f"{len(given)} values" if isinstance(given, tuple | list) else "one value"
        raise ValueError(f"its step gives {count}; Gymnasium's gives observation, reward, terminated, truncated, info")
    after, reward, terminated, truncated, info = given
    if reward is None or np.ndim(reward):
        raise ValueError(f"the reward {reward} is {'no' if reward is None else 'an array, not a'} number")
    return after, reward, bool(terminated), bool(truncated), info
