"""ML-kNN with nominal features: two values of one feature are one unit apart, as in Weka and Mulan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.sparse as sp

from multilab.datasets import load
from multilab.methods.base import MethodError
from multilab.methods.neighbours._search import exact_neighbours
from multilab.methods.neighbours.mlknn import MLkNN, one_hot_columns

K = 10


def weka_distances(numbers: np.ndarray, codes: np.ndarray, train: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Add, feature by feature, squared differences over the training range, and 1 where nominal values differ."""
    squares = (codes[rows][:, None] != codes[train][None]).sum(axis=2).astype(float)
    for column in numbers.T:
        low, span = column[train].min(), np.ptp(column[train])
        scaled = (column - low) / span if span else np.zeros_like(column)
        squares += (scaled[rows][:, None] - scaled[train][None]) ** 2
    return np.sqrt(squares)


def posterior_scores(near: np.ndarray, Y: np.ndarray, near_new: np.ndarray) -> np.ndarray:
    """Count by the formulas of the paper: labels among the neighbours of training and of new rows, s = 1."""
    counts, new_counts = Y[near].sum(axis=1), Y[near_new].sum(axis=1)
    scores = np.empty(new_counts.shape)
    for label in range(Y.shape[1]):
        prior = (1 + Y[:, label].sum()) / (2 + len(Y))
        likelihoods = []
        for present in (1, 0):
            chosen = counts[Y[:, label] == present, label]
            with_r = np.array([(chosen == r).sum() for r in new_counts[:, label]])
            likelihoods.append((1 + with_r) / (K + 1 + len(chosen)))
        joint = prior * likelihoods[0], (1 - prior) * likelihoods[1]
        scores[:, label] = joint[0] / (joint[0] + joint[1])
    return scores


def expected_scores(
    numbers: np.ndarray, codes: np.ndarray, Y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, int]:
    """Return the scores and how many rows have no definite set of K neighbours."""
    within, across = (weka_distances(numbers, codes, train, rows) for rows in (train, test))
    np.fill_diagonal(within, np.inf)
    tied = sum(int((np.diff(np.sort(m, axis=1)[:, K - 1 : K + 1]) < 1e-9).sum()) for m in (within, across))
    near, near_new = (np.argsort(m, axis=1, kind="stable")[:, :K] for m in (within, across))
    return posterior_scores(near, Y[train], near_new), tied


def nominal_data(sizes: Sequence[int], n: int = 120) -> tuple[np.ndarray, ...]:
    """Return numbers, nominal codes, X with the one-hot columns between the numbers, and Y."""
    rng = np.random.default_rng(0)
    codes = np.column_stack([np.append(np.arange(m), rng.integers(m, size=n - m)) for m in sizes])
    numbers = rng.uniform(size=(n, 3)) * [1, 30, 0.1] + 5
    one_hot = [np.eye(m)[code] for m, code in zip(sizes, codes.T, strict=True)]
    X = np.hstack([numbers[:, :1], *one_hot, numbers[:, 1:]])
    Y = (rng.uniform(size=(n, 3)) < 0.2 + 0.6 * (codes[:, [0]] % 2)).astype(int)
    return numbers, codes, X, Y


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_array, sp.csc_array])
def test_two_values_of_a_nominal_feature_are_one_unit_apart(as_given: type) -> None:
    numbers, codes, X, Y = nominal_data([5, 3])
    nominal = [[1, 2, 3, 4, 5], [6, 7, 8]]
    train, test = np.arange(80), np.arange(80, 120)
    expected, tied = expected_scores(numbers, codes, Y, train, test)
    assert not tied
    model = MLkNN(K, scale="minmax", nominal=nominal).fit(as_given(X[train]), Y[train])
    np.testing.assert_allclose(model.predict_proba(as_given(X[test])), expected, rtol=0, atol=1e-12)
    two_units = MLkNN(K, scale="minmax").fit(X[train], Y[train]).predict_proba(X[test])
    assert np.abs(two_units - expected).max() > 0.05


def test_equal_distances_are_equal_numbers() -> None:
    """A mismatch of a 0/1 feature is as far as one of a feature with three values; the lower row is the neighbour."""
    X = np.array([[0.3, 0, 1, 0, 0], [0.3, 1, 0, 1, 0], [0.9, 1, 0, 0, 1], [0.1, 1, 1, 0, 0]])
    query = np.array([[0.37, 0, 0, 1, 0]])  # rows 0 and 1 differ from it in one nominal feature each
    for rows in ([0, 1, 2, 3], [1, 0, 2, 3]):
        for as_given in (np.asarray, sp.csr_array):
            model = MLkNN(1, scale="minmax", nominal=[[1], [2, 3, 4]]).fit(as_given(X[rows]), np.eye(4, dtype=int))
            indices, distances = exact_neighbours(model._X, 2, model._scaled(as_given(query)))
            assert indices.tolist() == [[0, 1]]
            assert distances[0, 0] == distances[0, 1]


def test_a_nominal_column_that_is_constant_in_training_counts_for_new_rows() -> None:
    X = np.array([[0.0, 1, 0], [0.4, 0, 0], [1.0, 1, 0]])
    Y = np.array([[1], [0], [0]])
    near = MLkNN(1, scale="minmax", nominal=[[1], [2]]).fit(X, Y)
    assert near._scaled(np.array([[0.0, 1, 1.0]])).tolist() == [[1.0, 1.0, 0.0]]


def test_one_hot_columns_are_found_by_their_names() -> None:
    names = ["size", "zone=1", "zone=2", "sign", "tone=a=b", "tone=c", "tone=", "single=x", "z"]
    assert one_hot_columns(names) == [[1, 2], [4, 5, 6]]
    assert one_hot_columns(["a", "b"]) == []


@pytest.mark.parametrize(
    ("nominal", "message"),
    [
        ([[0, 1]], r"columns \[0, 1\] must hold a single 1.* in each row; row 0 "),
        ([[0]], r"columns \[0\] must hold 0 or 1 in each row"),
        ([[1, 2, 9]], "column 9; the columns of X are 0 to 5"),
        ([[-1]], "column -1"),
        ([[1, 2, 3], [3]], "column twice"),
        ([[1, 2]], r"row 2 "),
    ],
)
def test_wrong_nominal_columns_are_refused(nominal: list[list[int]], message: str) -> None:
    _, _, X, Y = nominal_data([3])
    for given in (X, sp.csr_array(X)):
        with pytest.raises(MethodError, match=message) as error:
            MLkNN(K, scale="minmax", nominal=nominal).fit(given, Y)
        assert "\n" not in str(error.value)
    with pytest.raises(MethodError, match="scale='minmax'"):
        MLkNN(K, nominal=[[1, 2, 3]]).fit(X, Y)


@pytest.mark.data
def test_birds_is_mulans_result(benchmark_data: object) -> None:
    """No row of birds has a tie at the tenth neighbour, so Weka's distance alone decides Mulan's result."""
    data = load("birds")
    nominal = one_hot_columns(data.feature_names)
    assert len(nominal) == 1
    codes = data.X[:, nominal[0]].argmax(axis=1)[:, None]
    numbers = np.delete(data.X, nominal[0], axis=1)
    train, test = data.splits["official"]
    expected, tied = expected_scores(numbers, codes, data.Y, train, test)
    assert not tied
    model = MLkNN(K, scale="minmax", nominal=nominal).fit(data.X[train], data.Y[train])
    np.testing.assert_allclose(model.predict_proba(data.X[test]), expected, rtol=0, atol=1e-12)
    without = MLkNN(K, scale="minmax").fit(data.X[train], data.Y[train]).predict_proba(data.X[test])
    assert np.abs(without - expected).max() > 0.05
