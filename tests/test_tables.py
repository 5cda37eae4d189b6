"""Tables of Gymnasium environments that are not what a table must be are stepped in Python, and a note says why."""

from typing import Any

import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

from uppertail.environments import FromGymnasium

FAULTS = {
    "negative": ((1.2, -0.2), None, "from state 3 by action 2 are not all 0 or more"),
    "too much": ((0.7, 0.7), None, "from state 3 by action 2 sum to 1.4, not to 1"),
    "too little": ((0.5,), None, "from state 3 by action 2 sum to 0.5, not to 1"),
    "nothing": ((), None, "from state 3 by action 2 sum to 0, not to 1"),
    "not a number": (None, np.full(16, np.nan), "`initial_state_distrib` sum to nan, not to 1"),
    "two starts": (None, np.eye(16)[0] * 2, "`initial_state_distrib` sum to 2, not to 1"),
    "a negative start": (None, 2 * np.eye(16)[0] - np.eye(16)[1], "`initial_state_distrib` are not all 0 or more"),
}


class Wrong(FrozenLakeEnv):
    def __init__(self, probabilities: Any, starts: Any, after: Any = 3) -> None:
        super().__init__(is_slippery=False)
        if probabilities is not None:
            self.P[3][2] = [(probability, after, 0.0, False) for probability in probabilities]
        if starts is not None:
            self.initial_state_distrib = starts

    def reset(self, **_: Any) -> Any:
        self.s, self.lastaction = 0, None
        return 0, {}


@pytest.mark.parametrize("fault", FAULTS)
def test_probabilities_are_at_least_0_and_sum_to_1(fault: str) -> None:
    probabilities, starts, words = FAULTS[fault]
    builder = FromGymnasium(lambda: Wrong(probabilities, starts), id="Mine")
    assert not builder.compiles
    assert builder.note is not None
    assert builder.note.startswith("Mine is stepped in Python: the probabilities of ")
    assert words in builder.note


@pytest.mark.parametrize("after", [16, -1, 2.5])
def test_a_table_leads_to_its_own_states(after: Any) -> None:
    note = FromGymnasium(lambda: Wrong((1.0,), None, after)).note
    assert note is not None and f"leads from state 3 by action 2 to {after}, which is no state of it" in note


@pytest.mark.parametrize("slippery", [False, True])
def test_sums_may_be_rounded(slippery: bool) -> None:
    assert FromGymnasium(lambda: FrozenLakeEnv(map_name="8x8", is_slippery=slippery)).compiles
