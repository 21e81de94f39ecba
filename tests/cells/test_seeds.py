"""Seeds by name."""

from __future__ import annotations

from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import SGDClassifier

from multilab.cells.seeds import seed_estimator, seed_for


def test_seeds_are_constants_of_their_names():
    assert seed_for(0, "emotions", "split 0", "br") == seed_for(0, "emotions", "split 0", "br")
    points = [(0, "a"), (1, "a"), (0, "b"), (0, "a", "b"), (0, "ab"), (0, "b", "a")]
    assert len({seed_for(*point) for point in points}) == len(points)
    assert all(0 <= seed_for(*point) < 2**31 for point in points)


def test_only_unset_random_states_are_set_nested_ones_included():
    made = seed_estimator(BaggingClassifier(SGDClassifier(), random_state=5), 0, "x")
    assert made.random_state == 5
    assert made.estimator.random_state == seed_for(0, "x", "estimator__random_state")
