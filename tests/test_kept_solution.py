"""What a seed keeps of its solution, by hand."""

import numpy as np
import pytest

from uppertail.records import Episodes


def episodes(returns: list[float]) -> Episodes:
    count = len(returns)
    return Episodes(np.array(returns, np.float32), np.ones(count, np.int64), np.arange(1, count + 1))


@pytest.mark.parametrize(
    ("after", "kept", "fall"),
    [
        ([1.0] * 10, 1.0, 0),
        ([1, 0, 0, 1], 0.5, 2),
        ([0, 0, 0], 0.0, 3),
        ([1, 1, 0], 2 / 3, 1),
        ([0, 1, 0, 0, 1, 0], 1 / 3, 2),
        ([], None, None),
    ],
    ids=str,
)
def test_kept_counts_all_episodes_after_solving(after: list[float], kept: float | None, fall: int | None) -> None:
    """Solved at episode 95: the first at which 45 of the last 50 succeed."""
    seed = episodes([0.0] * 50 + [1.0] * 45 + after)
    assert seed.solved(1.0) == 95
    assert seed.kept(1.0) == (None if kept is None else pytest.approx(kept))
    assert seed.longest_fall(1.0) == fall


def test_a_seed_that_was_not_solved_kept_nothing() -> None:
    seed = episodes([0.0] * 80)
    assert seed.kept(1.0) is None
    assert seed.longest_fall(1.0) is None
