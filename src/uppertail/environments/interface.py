"""How a program talks to what was learned: with its environment's own observations and actions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Interface(NamedTuple):
    """Observations and actions as an environment has them.

    Args:
        array: reads one observation as the array that a network takes.
        shape: the shape of one observation; None: it is no array but a dict, a tuple or a text, or it is hashed.
        num_actions: how many actions there are.
        first_action: the number of the first.
        first_state: the number of the first state, where observations are integer states.
    """

    array: Callable[[Any], np.ndarray]
    shape: tuple[int, ...] | None
    num_actions: int
    first_action: int = 0
    first_state: int = 0

    def is_batch(self, observation: Any) -> bool:
        """Whether this is several observations: a list, or an array with one axis more than an observation has."""
        if self.shape is None:
            return isinstance(observation, list)
        return np.ndim(observation) == len(self.shape) + 1
