"""How a program talks to what was learned."""

from typing import Any, NamedTuple

import numpy as np

from uppertail.environments.actions import Actions
from uppertail.environments.spaces import Reading


class Interface(NamedTuple):
    """How a program talks to what was learned: with its environment's own observations and actions."""

    reading: Reading
    actions: Actions
    form: str = "one as the environment gives it"  # of an observation, in words
    parts: int | None = None  # of the tuple that an observation is, if the past is shown with it

    def is_batch(self, observation: Any) -> bool:
        """Whether this is several observations: a list, or an array with one axis more than an observation has."""
        if self.reading.shape is None:
            return isinstance(observation, list)
        return np.ndim(observation) == len(self.reading.shape) + 1
