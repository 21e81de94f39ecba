"""RF-ML, ReliefF-ML and PPT-ReliefF: their formulas instance by instance, and what they have in common."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.selection import _distances as distances
from multilab.methods.selection.ppt_relieff import PPTReliefF
from multilab.methods.selection.relieff_ml import ReliefFML
from multilab.methods.selection.rf_ml import RFML


def problem(n: int = 60, integers: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    X = rng.integers(3, size=(n, 5)).astype(float) if integers else rng.normal(size=(n, 5)) * [1, 10, 0.1, 5, 1]
    return np.column_stack([X, np.ones(n)]), (rng.random((n, 4)) < [0.5, 0.3, 0.3, 0.1]).astype(np.uint8)


def unit(X: np.ndarray) -> np.ndarray:
    span = np.ptp(X, axis=0)
    return X / np.where(span > 0, span, np.inf)


def nearest(Z: np.ndarray, i: int, members: list[int], k: int) -> list[int]:
    distances = cdist(Z[i : i + 1], Z, "cityblock")[0]
    return sorted((j for j in members if j != i), key=lambda j: (distances[j], j))[:k]


@pytest.fixture(autouse=True)
def _several_blocks(monkeypatch):
    monkeypatch.setattr(distances, "_ENTRIES", 50)


@pytest.mark.parametrize("square", [0, 2**23], ids=["block by block", "all pairs at once"])
def test_distances_are_those_of_cdist_to_the_last_bit(square, monkeypatch):
    monkeypatch.setattr(distances, "_SQUARE", square)
    X = np.random.default_rng(0).normal(size=(23, 5))
    expected = cdist(X, X, "cityblock")
    np.fill_diagonal(expected, np.inf)
    np.testing.assert_array_equal(np.concatenate([block for _, block in distances.distance_blocks(X)]), expected)


@pytest.mark.parametrize("integers", [False, True], ids=["continuous", "ties"])
@pytest.mark.parametrize("weighting", ["uniform", "exponential"])
def test_rf_ml_written_out(integers, weighting):
    X, Y = problem(integers=integers)
    Z, n, k = unit(X), len(X), 7
    omega = np.ones(k) if weighting == "uniform" else np.exp(-((np.arange(1, k + 1) / 3.0) ** 2))
    omega /= omega.sum()
    N_dC, N_df, N_dCdf = 0.0, np.zeros(6), np.zeros(6)
    for i in range(n):
        for weight, j in zip(omega, nearest(Z, i, list(range(n)), k), strict=True):
            apart, difference = (Y[i] != Y[j]).mean(), np.abs(Z[i] - Z[j])
            N_dC, N_df, N_dCdf = N_dC + apart * weight, N_df + difference * weight, N_dCdf + apart * difference * weight
    expected = N_dCdf / N_dC - (N_df - N_dCdf) / (n - N_dC)
    for given in (X, sp.csr_array(X)):
        scores = RFML(k=k, weighting=weighting, sigma=3.0).fit(given, Y).scores_
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)
        assert scores[5] == 0


def test_rf_ml_of_one_label_contrasts_neighbours_of_the_two_kinds():
    X, Y = problem()
    y, Z = Y[:, 0], unit(X)
    pairs = [(i, j) for i in range(len(X)) for j in nearest(Z, i, list(range(len(X))), 10)]
    different, same = (np.mean([np.abs(Z[i] - Z[j]) for i, j in pairs if (y[i] != y[j]) == d], axis=0) for d in (1, 0))
    np.testing.assert_allclose(RFML().fit(X, Y[:, :1]).scores_, different - same, rtol=0, atol=1e-14)
    np.testing.assert_allclose(RFML().fit(X, Y[:, [2, 0, 3, 1]]).scores_, RFML().fit(X, Y).scores_, rtol=0, atol=1e-14)


def test_rf_ml_divides_by_nothing():
    X, Y = problem()
    assert np.isfinite(RFML().fit(X, np.zeros_like(Y)).scores_).all()  # no two label sets differ
    ends = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert np.isfinite(RFML(k=1).fit(ends, np.array([[0], [1], [0], [1]])).scores_).all()  # all neighbours do


def relieff(X: np.ndarray, classes: np.ndarray, k: int) -> np.ndarray:
    """ReliefF of Kononenko over all instances."""
    Z, n = unit(X), len(X)
    prior = np.bincount(classes) / n
    W = np.zeros(X.shape[1])
    for i in range(n):
        for c in np.unique(classes):
            near = nearest(Z, i, list(np.flatnonzero(classes == c)), k)
            if near:
                contrast = np.abs(Z[i] - Z[near]).mean(axis=0) / n
                W += -contrast if c == classes[i] else contrast * prior[c] / (1 - prior[classes[i]])
    return W


def test_relieff_ml_of_exclusive_labels_is_relieff():
    X, _ = problem()
    classes = np.random.default_rng(0).choice(4, size=len(X), p=[0.5, 0.3, 0.15, 0.05])
    expected = relieff(X, classes, 6)
    for given in (X, sp.csr_array(X)):
        scores = ReliefFML(k=6).fit(given, np.eye(4)[classes]).scores_
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-13)


def test_relieff_ml_written_out():
    X, Y = problem()
    Z, n, k = unit(X), len(X), 6
    prior = Y.mean(axis=0)
    expected = np.zeros(6)
    for i in range(n):
        for groups, sign in ((np.flatnonzero(Y[i]), -1), (np.flatnonzero(Y[i] == 0), 1)):
            for g in groups:
                near = nearest(Z, i, list(np.flatnonzero(Y[:, g])), k)
                expected += sign * prior[g] / prior[groups].sum() * np.abs(Z[i] - Z[near]).mean(axis=0) / n
    np.testing.assert_allclose(ReliefFML(k=k).fit(X, Y).scores_, expected, rtol=0, atol=1e-13)


def test_ppt_relieff_is_relieff_on_frequent_label_sets():
    X, Y = problem()
    np.testing.assert_allclose(PPTReliefF().fit(X, Y[:, :1]).scores_, relieff(X, Y[:, 0], 10), rtol=0, atol=1e-13)
    _, classes, counts = np.unique(Y[:, :2], axis=0, return_inverse=True, return_counts=True)
    assert counts.min() > 3
    np.testing.assert_allclose(PPTReliefF(k=4).fit(X, Y[:, :2]).scores_, relieff(X, classes, 4), rtol=0, atol=1e-13)


def test_informative_features_come_first():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 12))
    Y = np.column_stack([X[:, 4] > 0.5, X[:, 4] + X[:, 9] > 1, X[:, 9] > 0.6]).astype(int)
    for selector in (RFML(2), ReliefFML(2), PPTReliefF(2)):
        np.testing.assert_array_equal(selector.fit(X, Y).get_support(indices=True), [4, 9], err_msg=repr(selector))


def test_wrong_arguments():
    X, Y, _ = make_data()
    for wrong, word in (
        (RFML(k=60), "k=60"),
        (RFML(k=0), "k=0"),
        (RFML(weighting="rank"), "weighting="),
        (RFML(sigma=0.0), "sigma=0"),
        (ReliefFML(k=0), "k=0"),
        (PPTReliefF(p=-1), "p=-1"),
    ):
        with pytest.raises(MethodError, match=word):
            wrong.fit(X, Y)
