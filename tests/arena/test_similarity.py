"""Which sets of the arena are like given data."""

from __future__ import annotations

import math

import pytest

from multilab.arena import ArenaError, DataProfile, nearest_sets

SETS = {"small": DataProfile(100, 10, 5), "wide": DataProfile(100, 1000, 5), "large": DataProfile(10_000, 1000, 50)}


def test_distances_are_those_of_the_standardised_logarithms():
    names, distances = zip(*nearest_sets(SETS["small"], SETS, n_sets=3), strict=True)
    assert names == ("small", "wide", "large")
    thirds = math.sqrt(2) / 3  # standard deviation of (0, 0, 1), and of (0, 1, 1)
    assert distances[0] == 0.0
    assert distances[1] == pytest.approx(1 / thirds)
    assert distances[2] == pytest.approx(math.sqrt(3) / thirds)


def test_a_coordinate_without_spread_is_left_out():
    alike = {name: DataProfile(rows, 7, 3) for name, rows in (("a", 10), ("b", 1000))}
    assert nearest_sets(DataProfile(100, 70, 30), alike) == (("a", pytest.approx(1.0)), ("b", pytest.approx(1.0)))


def test_equal_distances_are_in_the_order_of_the_names_and_the_unit_of_a_number_does_not_count():
    twins = {"b": SETS["small"], "a": SETS["small"], "c": SETS["large"]}
    assert [name for name, _ in nearest_sets(SETS["small"], twins, n_sets=2)] == ["a", "b"]
    thousands = {name: DataProfile(p.rows / 1000, p.features, p.labels) for name, p in SETS.items()}
    given, scaled = DataProfile(300, 40, 6), DataProfile(0.3, 40, 6)
    for (name, distance), (other, other_distance) in zip(
        nearest_sets(given, SETS), nearest_sets(scaled, thousands), strict=True
    ):
        assert name == other
        assert distance == pytest.approx(other_distance)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf])
def test_a_profile_needs_finite_numbers_above_zero(value):
    with pytest.raises(ArenaError, match="`features` must be a finite number above 0"):
        DataProfile(10, value, 5)


def test_sets_and_their_number_are_checked():
    with pytest.raises(ArenaError, match="`n_sets` must be >= 1, got 0"):
        nearest_sets(SETS["small"], SETS, n_sets=0)
    with pytest.raises(ArenaError, match="`profiles` is empty"):
        nearest_sets(SETS["small"], {})
