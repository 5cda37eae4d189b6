"""R-MAX (Brafman and Tennenholtz 2002): what was tried fewer than m times leads to the best that there is."""

from typing import Any

import numpy as np

from experiments.chance.peer import Peer


class RMax(Peer):
    """Q = R + discount * sum_s' P max Q where a pair was tried m times or more, the highest return elsewhere.

    Args:
        arguments: those of `Peer`.
        m: tries after which a pair is known.
    """

    def __init__(self, *arguments: Any, m: int = 10) -> None:
        super().__init__(*arguments)
        self.m = m

    def plan(self, ended: np.ndarray) -> None:
        self.q = self.solve(self.q, self.visits >= self.m, self.reward)
