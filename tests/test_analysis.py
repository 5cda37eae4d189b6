"""Statistics against hand-worked cases, figures as files."""

import numpy as np

from uppertail.analysis.figures import learning_curves
from uppertail.analysis.statistics import bootstrap, learning_curve
from uppertail.records import Episodes


def episodes_of(returns):
    lengths = np.ones(len(returns), int)
    return Episodes(np.asarray(returns, np.float32), lengths, np.cumsum(lengths))


def test_learning_curve_averages_the_last_window_by_hand():
    seeds = [episodes_of([0, 0, 1, 1, 1]), episodes_of([1, 0, 0, 1, 1])]
    episodes, interval = learning_curve(seeds, window=2)
    np.testing.assert_array_equal(episodes, [1, 2, 3, 4, 5])
    np.testing.assert_allclose(interval.value, [0.5, 0.25, 0.25, 0.75, 1.0])


def test_learning_curve_goes_only_as_far_as_every_seed_got():
    episodes, _ = learning_curve([episodes_of([0] * 7), episodes_of([0] * 4)], window=50)
    assert episodes[-1] == 4


def test_interval_covers_the_normal_one_and_collapses_for_equal_seeds():
    values = np.random.default_rng(0).normal(3.0, 2.0, 400)
    interval = bootstrap([values], np.mean)
    half_width = 1.96 * values.std(ddof=1) / 20
    np.testing.assert_allclose(interval.value, values.mean())
    np.testing.assert_allclose(interval.high - interval.value, half_width, rtol=0.1)
    np.testing.assert_allclose(interval.value - interval.low, half_width, rtol=0.1)
    equal = bootstrap([np.ones((3, 5))], np.mean)
    np.testing.assert_array_equal(equal.low, equal.high)


def test_interval_of_one_seed_is_that_seed():
    interval = bootstrap([np.array([[1.0], [2.0]])], np.mean)
    np.testing.assert_array_equal(interval.low, [1.0, 2.0])
    np.testing.assert_array_equal(interval.high, [1.0, 2.0])


def test_curves_are_drawn_even_before_the_first_episode(tmp_path):
    learning_curves(tmp_path / "a.png", "two methods", {"A": [episodes_of([0, 1, 1])] * 2, "B": [episodes_of([0])]})
    learning_curves(tmp_path / "b.png", "nothing yet", {"A": [Episodes.none()]})
    for name in ("a.png", "b.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
