"""Statistics of studies against SciPy's own and hand-worked cases."""

import numpy as np
import pytest
import scipy.stats

from uppertail.analysis.statistics import (
    Times,
    growth_exponent,
    kaplan_meier,
    median,
    medians,
    percentiles,
    restricted_means,
)
from uppertail.studies.comparison import (
    difference_of_means,
    earlier_is_better,
    higher_is_better,
    improvement,
    ratio_of_times,
)


def times(*at):
    """Times of seeds; a negative one is censored then."""
    return Times(np.abs(np.array(at, float)), np.array(at) > 0)


def drawn(generator, seeds):
    """Times with ties and censoring, also before others get there."""
    at = generator.integers(1, 12, seeds).astype(float)
    return Times(at, generator.random(seeds) < 0.6)


def test_kaplan_meier_by_hand():
    """With Greenwood's variance on the log-log scale."""
    curve = kaplan_meier(times(6, -6, 7, -9, 10, -11))
    np.testing.assert_allclose(curve.times, [6, 7, 10])
    share = np.array([5 / 6, 5 / 6 * 3 / 4, 5 / 6 * 3 / 4 / 2])
    np.testing.assert_allclose(curve.share, share)
    spread = np.sqrt(np.cumsum([1 / (6 * 5), 1 / (4 * 3), 1 / (2 * 1)])) / np.log(share)
    for bound, sign in ((curve.low, -1), (curve.high, 1)):
        np.testing.assert_allclose(bound, share ** np.exp(sign * scipy.stats.norm.ppf(0.975) * spread))


def test_no_event_leaves_an_empty_curve_and_no_median():
    assert kaplan_meier(times(-9, -9)).times.size == 0
    assert median(times(-9, -9)) == (None, None, None)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ((3, 1, 2), 2),
        ((4, 1, 2, 3), 2.5),
        ((1, 2, -9), 2),
        ((1, 2, -9, -9), None),  # half of them never got there, as for plain numbers with infinity among them
        ((1, -9, -9), None),
        ((6, -6, 7, -9, 10, -11), 10),
        ((5, 5, 5, -9), 5),
        ((7,), 7),
    ],
)
def test_median_by_hand(at, expected):
    assert median(times(*at))[0] == expected


@pytest.mark.parametrize("seed", range(5))
def test_each_resample_has_the_median_of_its_seeds(seed):
    generator = np.random.default_rng(100 + seed)
    seen = drawn(generator, 9)
    picks = generator.integers(9, size=(50, 9))
    found = medians(seen, picks)
    for pick, estimate in zip(picks, found, strict=True):
        curve = kaplan_meier(Times(seen.at[pick], seen.happened[pick]))
        first = next((at for at, share in zip(curve.times, curve.share, strict=True) if share <= 0.5 + 1e-9), np.inf)
        after = next((at for at, share in zip(curve.times, curve.share, strict=True) if share < 0.5 - 1e-9), np.inf)
        assert estimate == (first + after) / 2


def test_medians_interval_is_that_of_order_statistics():
    """Of 100 seeds, those of rank 40 and 61: the binomial distribution has 95% between them."""
    _, low, high = median(Times(np.arange(1.0, 101.0), np.ones(100, bool)))
    np.testing.assert_allclose(np.array([low, high], float), [40, 61], atol=1.5)


def test_medians_interval_is_open_where_many_seeds_never_got_there():
    value, low, high = median(times(1, 2, 3, 4, 5, 6, -9, -9, -9, -9))
    assert value == 5.5
    assert low is not None and low <= 3
    assert high is None


def test_restricted_mean_is_the_mean_of_what_was_seen_until_the_horizon():
    def restricted_mean(seen, horizon):
        return restricted_means(seen, horizon, np.arange(seen.at.size)[None])[0]

    assert restricted_mean(times(2, 6, -10, -10), 10) == pytest.approx((2 + 6 + 10 + 10) / 4)
    assert restricted_mean(times(2, 6, 8), 7) == pytest.approx((2 + 6 + 7) / 3)
    # one leaves at 3 without having got there: those after it count for it
    assert restricted_mean(times(2, -3, 6), 6) == pytest.approx(2 + 4 * 2 / 3)


@pytest.mark.parametrize("seed", range(10))
def test_probability_of_improvement_is_mann_whitney_u(seed):
    generator = np.random.default_rng(seed)
    a, b = generator.integers(0, 6, 7).astype(float), generator.integers(1, 7, 9).astype(float)
    u = scipy.stats.mannwhitneyu(b, a).statistic
    assert higher_is_better(a, b).between.mean() == pytest.approx(u / (7 * 9))


def test_earlier_is_better_by_hand():
    a, b = times(5, -8, 3), times(5, 8, -4, 9)
    expected = [
        [0.5, 0, 0.5, 0],  # b is last seen at 4: whether it gets there before 5 is not known
        [1, 1, 0.5, 0.5],  # a had not got there at 8, when b did; whether it did before 9 is not known
        [0, 0, 0, 0],
    ]
    np.testing.assert_array_equal(earlier_is_better(a, b).between, expected)


def test_earlier_is_better_without_censoring_is_the_mirror_of_higher():
    a, b = times(1, 4, 6), times(2, 4)
    np.testing.assert_array_equal(earlier_is_better(a, b).scores, higher_is_better(-a.at, -b.at).scores)


def compared(*environments):
    return improvement([higher_is_better(a, b) for a, b in environments])


def test_p_value_is_that_of_an_exact_rank_test():
    generator = np.random.default_rng(3)
    a, b = generator.normal(0, 1, 6), generator.normal(1, 1, 6)
    exact = scipy.stats.mannwhitneyu(a, b, method="exact").pvalue
    assert compared((a, b)).p_value == pytest.approx(exact, abs=0.015)


def test_environments_count_alike_and_are_resampled_apart():
    """Of two environments with opposite, certain answers, no resample says anything but a half."""
    low, high = np.zeros(3), np.ones(7)
    found = compared((low, high), (high, low))
    assert found[:3] == (0.5, 0.5, 0.5)
    assert found.p_value == 1.0


def test_few_seeds_cannot_be_told_apart_by_chance():
    """Three against three: one deal of twenty each way is as extreme, however far apart they are."""
    found = compared((np.zeros(3), np.ones(3)))
    assert found.probability == 1.0
    assert found.p_value == pytest.approx(0.1, abs=0.015)


def test_the_interval_of_the_probability_covers_as_often_as_it_says():
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(40):
        a, b = generator.normal(0, 1, 25), generator.normal(0.5, 1, 25)
        found = compared((a, b))
        covered += found.low <= scipy.stats.norm.cdf(0.5 / np.sqrt(2)) <= found.high
    assert covered >= 34


def test_ratio_of_times_by_hand():
    """A's mean until 10 is 7.5 and B's 5; elsewhere B takes twice as long; the two ratios' geometric mean."""
    a, b = times(5, -10), times(4, 6)
    found = ratio_of_times([(a, b), (times(3, 3), times(6, 6))])
    assert found.value == pytest.approx(np.sqrt(5 / 7.5 * 2))
    assert found.low < found.value < found.high


def test_a_ratio_goes_only_as_far_as_both_were_seen():
    """A was seen until 10 and B until 100: what B did after 10 is not held against it."""
    assert ratio_of_times([(times(-10, -10), times(50, -100))]).value == 1.0


def test_difference_of_means_is_welchs():
    generator = np.random.default_rng(0)
    a, b = generator.normal(0, 1, 60), generator.normal(1, 2, 40)
    found = difference_of_means([(a, b)])
    interval = scipy.stats.ttest_ind(b, a, equal_var=False).confidence_interval()
    assert found.value == pytest.approx(b.mean() - a.mean())
    np.testing.assert_allclose((found.low, found.high), interval, atol=0.08)


def growing(sizes):
    growth = growth_exponent(sizes)
    assert growth is not None
    return growth


def test_growth_is_least_squares_of_the_logarithms_of_medians():
    generator = np.random.default_rng(1)
    sizes = {size: 3 * size**1.7 * np.exp(generator.normal(0, 0.3, 9)) for size in (5.0, 10.0, 20.0, 40.0)}
    seen = {size: Times(at, np.ones(9, bool)) for size, at in sizes.items()}
    x, y = np.log([*sizes]), [np.log(np.median(at)) for at in sizes.values()]
    growth = growing(seen)
    assert growth.value == pytest.approx(np.polyfit(x, y, 1)[0])
    assert growth.low < 1.7 < growth.high
    assert growth.high - growth.low < 0.7
    assert growing({**seen, 80.0: times(*[-9] * 9)}) == growth


def test_growth_counts_seeds_that_were_not_seen_to_get_there():
    """Who drops them finds it easier than it is: of 20, four of nine were censored at 60."""
    seen = {10.0: times(*range(20, 29)), 20.0: times(50, 52, 54, 56, 58, *[-60] * 4)}
    assert growing(seen).value == pytest.approx(np.log2(58 / 24))


def test_growth_needs_two_sizes_that_were_solved():
    assert growth_exponent({5.0: times(3, 4), 10.0: times(-50, -50)}) is None
    assert growth_exponent({5.0: times(3, 4)}) is None
    assert growing({5.0: times(10, 10), 10.0: times(20, 20)}).value == pytest.approx(1.0)


def test_percentiles_pass_over_what_is_undefined():
    assert percentiles(np.array([3.0, np.nan, 1.0, 1.0])) == (3.0, 1.0, 1.0)
