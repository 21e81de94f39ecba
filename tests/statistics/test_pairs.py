"""Two methods over data sets and over splits: difference, interval and p value, against scipy and by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from multilab.statistics import (
    StatisticsError,
    compare_on_splits,
    compare_pair,
    corrected_resampled_interval,
    corrected_resampled_p,
)


def random_table(seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(rng.integers(6, 15), 2)), columns=["a", "b"])
    return table.assign(a=table["a"] + rng.choice([0.0, 0.7, 1.5]))


@pytest.mark.parametrize("seed", range(40))
def test_over_data_sets_the_test_is_wilcoxons_and_the_interval_agrees_with_it(seed):
    table = random_table(seed)
    gain = (table["a"] - table["b"]).to_numpy()
    result = compare_pair(table, "a", "b", "max")
    assert result.p == pytest.approx(stats.wilcoxon(gain, method="exact").pvalue, rel=1e-12)
    walsh = [(x + y) / 2 for i, x in enumerate(gain) for y in gain[i:]]
    assert result.difference == pytest.approx(np.median(walsh))
    assert result.low <= result.difference <= result.high
    assert (result.p <= 0.05) == (not result.low <= 0 <= result.high)
    assert (result.n, result.wins, result.ties, result.losses) == (len(gain), (gain > 0).sum(), 0, (gain < 0).sum())
    for end, outside in ((result.low, -1e-9), (result.high, 1e-9)):  # the ends are where the test begins to reject
        assert stats.wilcoxon(gain - (end + outside), method="exact").pvalue <= 0.05
        assert stats.wilcoxon(gain - (end - outside), method="exact").pvalue > 0.05


def test_small_values_are_good_where_the_direction_says_so():
    table = random_table(2)
    largest, smallest = compare_pair(table, "a", "b", "max"), compare_pair(table, "a", "b", "min")
    assert (smallest.wins, smallest.losses, smallest.p) == (largest.losses, largest.wins, largest.p)
    assert smallest.difference == pytest.approx(-largest.difference)
    assert (smallest.low, smallest.high) == pytest.approx((-largest.high, -largest.low))
    assert smallest == compare_pair(-table, "a", "b", "max")


def test_data_sets_without_both_values_are_left_out():
    table = random_table(1)
    holes = pd.concat([table, pd.DataFrame({"a": [np.nan, 1.0], "b": [9.0, np.nan]})])
    assert compare_pair(holes, "a", "b", "max") == compare_pair(table, "a", "b", "max")
    with pytest.raises(StatisticsError, match="a and b"):
        compare_pair(holes.tail(2), "a", "b", "max")
    with pytest.raises(StatisticsError, match="no column 'c'; its columns are a, b"):
        compare_pair(table, "a", "c", "max")
    with pytest.raises(StatisticsError, match='direction must be "min" or "max"'):
        compare_pair(table, "a", "b", "up")


def test_fewer_than_six_data_sets_cannot_differ():
    table = pd.DataFrame({"a": np.arange(1.0, 7.0), "b": 0.0})
    assert compare_pair(table, "a", "b", "max").least_p == compare_pair(table, "a", "b", "max").p == 2**-5
    five = compare_pair(table.head(5), "a", "b", "max")
    assert (five.p, five.least_p, five.difference) == (2**-4, 2**-4, 3.0)
    assert math.isnan(five.low)
    assert math.isnan(five.high)


def test_differences_in_the_last_bits_are_ties():
    table = pd.DataFrame({"a": [0.3] * 7, "b": [0.1 + 0.2] * 7})
    result = compare_pair(table, "a", "b", "max")
    assert (result.wins, result.ties, result.losses, result.p) == (0, 7, 0, 1.0)
    assert (result.low, result.difference, result.high) == (0.0, 0.0, 0.0)
    better, worse = [0.1, 0.2, 0.5, 0.6, 0.7, 0.8], [0.3 - 0.2, 0.1]  # two of size 0.1 that differ in the last bit
    noisy = pd.DataFrame({"a": [*better, 0.0, 0.0], "b": [0.0] * 6 + worse})
    exact = pd.DataFrame({"a": [1, 2, 5, 6, 7, 8, 0, 0], "b": [0] * 6 + [1, 1]})
    assert compare_pair(noisy, "a", "b", "max").p == compare_pair(exact, "a", "b", "max").p


@pytest.mark.parametrize("direction", ["min", "max"])
def test_on_splits_the_test_is_the_corrected_resampled_t_test(direction):
    rng = np.random.default_rng(0)
    a, b = (pd.Series(rng.normal(size=10), name=name) for name in "ab")
    gain = (a - b if direction == "max" else b - a).to_numpy().round(12)
    result = compare_on_splits(a, b, direction, 3 / 7)
    assert (result.a, result.b, result.n) == ("a", "b", 10)
    assert result.p == corrected_resampled_p(gain, 3 / 7)
    assert (result.difference, result.low, result.high) == corrected_resampled_interval(gain, 3 / 7)
    lacking = pd.concat([a, pd.Series([1.0], index=[10])]).rename("a")
    assert compare_on_splits(lacking, b, direction, 3 / 7) == result  # splits are matched by their index


def test_one_split_has_a_difference_and_no_test():
    result = compare_on_splits(pd.Series([0.8], name="a"), pd.Series([0.5], name="b"), "max", 0.5)
    assert (result.n, result.wins, result.least_p) == (1, 1, 1.0)
    assert result.difference == pytest.approx(0.3)
    assert all(map(math.isnan, (result.p, result.low, result.high)))
    with pytest.raises(StatisticsError, match="no split has values of both a and b"):
        compare_on_splits(pd.Series([0.8], name="a"), pd.Series([0.5], name="b", index=[1]), "max", 0.5)
