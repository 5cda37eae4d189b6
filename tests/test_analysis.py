"""Statistics against hand-worked cases, figures as files."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.stats

from uppertail.analysis.figures import learning_curves
from uppertail.analysis.statistics import (
    CONFIDENCE,
    RESAMPLES,
    bootstrap,
    learning_curve,
    mean_interval,
    share_interval,
)
from uppertail.records import Episodes
from uppertail.reports.groups import curve


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


@pytest.mark.parametrize("shapes", [[(7,)], [(3, 5)], [(6,), (4,)]], ids=str)
def test_intervals_are_those_of_scipy(shapes):
    samples = [np.random.default_rng(1).normal(size=shape) for shape in shapes]

    def statistic(*samples, axis):
        return sum(sample.mean(axis=axis) for sample in samples)

    theirs = scipy.stats.bootstrap(
        samples, statistic, n_resamples=RESAMPLES, confidence_level=CONFIDENCE, method="percentile", rng=0, axis=-1
    ).confidence_interval
    ours = bootstrap(samples, statistic)
    np.testing.assert_allclose((ours.low, ours.high), (theirs.low, theirs.high), atol=1e-13)


def test_intervals_of_shares_are_those_of_scipy():
    for of in (1, 2, 7, 40):
        for count in range(of + 1):
            wilson = scipy.stats.binomtest(count, of).proportion_ci(CONFIDENCE, method="wilson")
            found = share_interval([seed < count for seed in range(of)])
            np.testing.assert_allclose(found, (count / of, wilson.low, wilson.high), atol=5.1e-5)


def test_pictures_of_runs_do_not_wait_for_scipy():
    check = "import sys, uppertail.analysis.figures; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_curves_are_drawn_even_before_the_first_episode(tmp_path):
    learning_curves(tmp_path / "a.png", "two methods", {"A": [episodes_of([0, 1, 1])] * 2, "B": [episodes_of([0])]})
    learning_curves(tmp_path / "b.png", "nothing yet", {"A": [Episodes.none()]})
    for name in ("a.png", "b.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_small_numbers_keep_their_digits_in_tables_and_charts():
    """They were rounded to four decimals: a return of 0.000001 was 0."""
    assert mean_interval([1e-6]) == [1e-6] * 3
    assert mean_interval([1.23456789e-5] * 3) == [1.23457e-5] * 3
    [line] = curve(0, [episodes_of([1e-6, 3e-6])])
    assert line["points"] == [[1, 1e-6], [2, 2e-6]]
