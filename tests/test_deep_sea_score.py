"""bsuite's score of DeepSea and regret, by cases worked by hand."""

import math

import numpy as np
import pytest

from uppertail.analysis.deep_sea_score import (
    LOGGED,
    SIZES,
    average_bad,
    bad_episodes,
    deep_sea_score,
    regret,
    solved_at,
)


def bad(count: int, good: int) -> np.ndarray:
    """So many bad episodes, then so many good ones."""
    return np.array([True] * count + [False] * good)


def logged_by_bsuite(episode: int) -> bool:
    """`bsuite.utils.wrappers._logarithmic_logging`, as it is published."""
    ratios = [1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    exponent = np.floor(np.log10(np.maximum(1, episode)))
    return any(episode == 10**exponent * ratio for ratio in ratios)


def test_it_looks_where_bsuite_does() -> None:
    assert LOGGED.tolist() == [episode for episode in range(1, 10_001) if logged_by_bsuite(episode)]
    assert (min(SIZES), max(SIZES), len(SIZES)) == (10, 50, 21)


def test_average_bad_by_hand() -> None:
    np.testing.assert_allclose(average_bad(np.array([True, False, True, True])), [1, 1 / 2, 2 / 3, 3 / 4])


@pytest.mark.parametrize(
    ("episodes", "expected"),
    [
        (bad(0, 1), 1),  # good by luck
        (bad(9, 1), None),  # 9 / 10 is not below 9 / 10
        (bad(9, 2), None),  # 9 / 11 is, but nobody looks at episode 11
        (bad(9, 3), 12),
        (bad(8, 2), 9),  # 8 / 9
        (bad(100, 20), 120),  # 100 / 120; nobody looks between 100 and 120
        (bad(100, 19), None),
        (bad(10_000, 0), None),
        (bad(10_000, 90_000), None),  # later than bsuite plays
        (bad(8_999, 1_001), 10_000),
    ],
)
def test_solved_at_by_hand(episodes: np.ndarray, expected: int | None) -> None:
    assert solved_at(episodes) == expected


def test_the_stochastic_version_is_judged_later_and_more_strictly() -> None:
    assert solved_at(bad(0, 99), stochastic=True) is None
    assert solved_at(bad(0, 100), stochastic=True) == 100
    assert solved_at(bad(80, 20), stochastic=True) is None
    assert solved_at(bad(79, 21), stochastic=True) == 100
    assert solved_at(bad(100, 40), stochastic=True) == 140


def test_a_size_counts_where_it_beats_dithering() -> None:
    """2^10 + 100 is 1,124: solved at 1,000 counts, at 1,200 it does not; at size 12 it does."""
    at_1200 = bad(1_079, 121)
    assert solved_at(at_1200) == 1_200
    assert solved_at(bad(899, 101)) == 1_000
    assert deep_sea_score({10: at_1200}) == 0
    assert deep_sea_score({10: bad(899, 101)}) == 1
    assert deep_sea_score({12: at_1200}) == 1
    assert deep_sea_score({10: at_1200, 12: at_1200, 14: bad(50, 0), 50: bad(0, 10)}) == 0.5
    assert deep_sea_score({10: bad(80, 20)}, stochastic=True) == 0
    assert math.isnan(deep_sea_score({}))


def test_bad_episodes_and_regret_by_hand() -> None:
    returns = np.array([0.0, 0.99, -0.01, 0.99], np.float32)
    assert bad_episodes(returns, 0.98).tolist() == [True, False, True, False]
    np.testing.assert_allclose(regret(returns, 0.99), [0.99, 0.99, 1.99, 1.99], atol=1e-6)
