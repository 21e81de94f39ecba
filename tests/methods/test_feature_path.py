"""ML-kNN over a growing set of features equals ML-kNN fitted again."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.toy import tables
from multilab.methods.neighbours._search import exact_neighbours
from multilab.methods.neighbours.feature_path import mlknn_path, neighbour_path
from multilab.methods.neighbours.mlknn import MLkNN


@pytest.mark.parametrize("name", tables())
def test_neighbours_and_scores_are_those_of_fitting_again(name):
    X = tables()[name]
    X, new = X[::2], X[1::2]
    rng = np.random.default_rng(1)
    Y = (rng.random((len(X), 3)) < 0.4).astype(np.uint8)
    order = rng.permutation(X.shape[1])
    counts = sorted({1, 2, len(order) // 2, len(order)})
    paths = zip(
        counts, neighbour_path(X, new, order, counts, 7), mlknn_path(X, Y, new, order, counts, 7, 1.0), strict=True
    )
    for count, (near, near_new), scores in paths:
        chosen = np.sort(order[:count])
        expected = exact_neighbours(X[:, chosen], 7)[0], exact_neighbours(X[:, chosen], 7, new[:, chosen])[0]
        for indices, right in zip((near, near_new), expected, strict=True):
            np.testing.assert_array_equal(np.sort(indices, axis=1), np.sort(right, axis=1))
        again = MLkNN(7).fit(X[:, chosen], Y).predict_proba(new[:, chosen])
        np.testing.assert_array_equal(scores, again)
