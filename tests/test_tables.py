"""Tables of Gymnasium environments that are not what a table must be are stepped in Python, and a note says why."""

from typing import Any

import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

from uppertail.environments import FromGymnasium

FAULTS = {
    "negative": ((1.2, -0.2), None, "from state 3 by action 2 must be 0 or more, and sum to 1"),
    "too much": ((0.7, 0.7), None, "from state 3 by action 2 must be"),
    "too little": ((0.5,), None, "from state 3 by action 2 must be"),
    "nothing": ((), None, "from state 3 by action 2 must be"),
    "not a number": (None, np.full(16, np.nan), "its states in `initial_state_distrib` must be"),
    "two starts": (None, np.eye(16)[0] * 2, "its states in `initial_state_distrib` must be"),
    "a negative start": (None, 2 * np.eye(16)[0] - np.eye(16)[1], "its states in `initial_state_distrib` must be"),
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
    assert note is not None and "leads from state 3 by action 2 to what is no state of it" in note


@pytest.mark.parametrize("slippery", [False, True])
def test_sums_may_be_rounded(slippery: bool) -> None:
    assert FromGymnasium(lambda: FrozenLakeEnv(map_name="8x8", is_slippery=slippery)).compiles


@pytest.mark.parametrize(("reward", "compiles"), [(1e18, True), (-1e39, False)])
def test_rewards_that_32_bits_cannot_square_are_left_to_python(reward: float, compiles: bool) -> None:
    def make() -> FrozenLakeEnv:
        env = FrozenLakeEnv(is_slippery=False)
        env.P[14][2] = [(1.0, 15, reward, True)]
        return env

    builder = FromGymnasium(make, id="Mine")
    assert builder.compiles == compiles
    assert compiles or "its table holds rewards beyond 1e+18" in (builder.note or "")
