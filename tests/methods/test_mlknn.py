"""ML-kNN and its neighbour search: formulas written out, exactness, ties."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from helpers.multilabel_checks import make_data
from helpers.toy import tables
from multilab.methods.base import MethodError
from multilab.methods.neighbours import _search as search
from multilab.methods.neighbours._search import exact_neighbours
from multilab.methods.neighbours.mlknn import MLkNN


def by_sorting(X: np.ndarray, k: int, queries: np.ndarray | None, exclude_self: bool) -> tuple[np.ndarray, np.ndarray]:
    distances = cdist(X if queries is None else queries, X)
    if queries is None and exclude_self:
        np.fill_diagonal(distances, np.inf)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distances, order, axis=1)


@pytest.mark.parametrize("name", tables())
@pytest.mark.parametrize("k", [1, 7, 38])
def test_neighbours_are_those_of_a_stable_sort(name: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = tables()[name]
    queries = np.vstack([X[::3], X[:5] + 0.25])
    monkeypatch.setattr(search, "_BLOCK_ENTRIES", 50 * len(X))  # several blocks
    monkeypatch.setattr(search, "_SPARSE_PAIRS", 1000)
    for given, exclude in ((None, True), (None, False), (queries, True)):
        expected = by_sorting(X, k, given, exclude)
        dense = exact_neighbours(X, k, given, exclude_self=exclude)
        sparse_given = None if given is None else sp.csr_array(given)
        sparse = exact_neighbours(sp.csr_array(X), k, sparse_given, exclude_self=exclude)
        for indices, distances in (dense, sparse):
            np.testing.assert_array_equal(indices, expected[0])
            np.testing.assert_allclose(distances, expected[1], rtol=1e-14, atol=0)


def test_all_other_rows_can_be_neighbours_but_not_more() -> None:
    X = np.arange(5.0)[:, None]
    np.testing.assert_array_equal(exact_neighbours(X, 4)[0][0], [1, 2, 3, 4])
    np.testing.assert_array_equal(exact_neighbours(X, 5, exclude_self=False)[0][0], [0, 1, 2, 3, 4])
    for k, options in ((5, {}), (6, {"exclude_self": False}), (6, {"X": X}), (0, {})):
        with pytest.raises(MethodError, match=f"k={k}"):
            exact_neighbours(X, k, **options)


def test_formulas_of_the_paper_written_out() -> None:
    # five points on a line, one label, k = 2, s = 1
    X = np.array([[0.0], [1.0], [2.5], [4.5], [7.0]])
    Y = np.array([[1], [1], [0], [1], [0]])
    # neighbours 0:{1,2} 1:{0,2} 2:{1,3} 3:{2,4} 4:{3,2}; of these have the label 1, 1, 2, 0, 1
    # with the label (rows 0, 1, 3): counts 1, 1, 0; without (rows 2, 4): 2, 1
    model = MLkNN(k=2, s=1.0).fit(X, Y)
    np.testing.assert_allclose(model.prior_, [4 / 7])
    with_label = np.array([2, 3, 1]) / 6
    without = np.array([1, 2, 2]) / 5
    expected = 4 / 7 * with_label / (4 / 7 * with_label + 3 / 7 * without)
    np.testing.assert_allclose(model.posterior_[0], expected, rtol=1e-14)
    # 0.4 has neighbours 0, 1: two with the label; 6 has 3 and 4: one
    scores, decisions = model.predict_with_scores([[0.4], [6.0]])
    np.testing.assert_allclose(scores[:, 0], expected[[2, 1]], rtol=1e-14)
    np.testing.assert_array_equal(decisions[:, 0], [0, 1])


def test_counting_oneself_is_another_method() -> None:
    X = np.array([[0.0], [1.0], [2.5], [4.5], [7.0]])
    Y = np.array([[1], [1], [0], [1], [0]])
    model = MLkNN(k=2, exclude_self=False).fit(X, Y)
    # 0:{0,1} 1:{1,0} 2:{2,1} 3:{3,2} 4:{4,3}: with the label 2, 2, 1, 1, 1
    with_label = np.array([1, 2, 3]) / 6
    without = np.array([1, 3, 1]) / 5
    expected = 4 / 7 * with_label / (4 / 7 * with_label + 3 / 7 * without)
    np.testing.assert_allclose(model.posterior_[0], expected, rtol=1e-14)


def test_minmax_uses_the_training_ranges_only() -> None:
    X, Y, X_test = make_data(seed=1)
    X = np.column_stack([X, np.full(len(X), 3.0)])
    X_test = np.column_stack([X_test, 50 * np.arange(len(X_test))])  # constant in training: ignored
    wide = X * np.array([1, 1e3, 1e-3, 1, 1, 50, 1, 1, 1]) + 7
    wide_test = X_test * np.array([1, 1e3, 1e-3, 1, 1, 50, 1, 1, 1]) + 7
    span = np.ptp(X, axis=0)[:-1]
    expected = MLkNN(5).fit(X[:, :-1] / span, Y).predict_proba(X_test[:, :-1] / span)
    for to in (np.asarray, sp.csr_array):
        scores = MLkNN(5, scale="minmax").fit(to(wide), Y).predict_proba(to(wide_test))
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


def test_wrong_arguments() -> None:
    X, Y, _ = make_data()
    for wrong, word in (
        ({"s": 0}, "s=0"),
        ({"scale": "max"}, "scale="),
        ({"k": 60}, "k=60"),
        ({"k": 0}, "k=0"),
    ):
        with pytest.raises(MethodError, match=word):
            MLkNN(**wrong).fit(X, Y)
