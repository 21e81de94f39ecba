"""LWMF and what all selectors share: formulas written out, the identities of the method, ties."""

from __future__ import annotations

import itertools
import warnings
from typing import Literal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.neighbours import _search as search
from multilab.methods.selection import _distances as distances
from multilab.methods.selection._distances import nearest_of_classes
from multilab.methods.selection.lwmf import LWMF
from multilab.methods.selection.mddm_selector import MDDMSelector
from multilab.methods.selection.variance_ranking import VarianceRanking


def problem(seed: int = 0, n: int = 90, d: int = 7, q: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Separable, noisy, frequent and rare labels on features of very different ranges."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 50, d)
    latent = X / X.std(axis=0) @ rng.normal(size=(d, q)) + rng.normal(size=(n, q))
    Y = (latent > np.quantile(latent, np.linspace(0.4, 0.95, q), axis=0).diagonal()).astype(np.uint8)
    return X, Y


def tied(seed: int = 1, n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers and duplicates: nearly every nearest row is tied."""
    rng = np.random.default_rng(seed)
    X = rng.integers(3, size=(n // 2, 4)).astype(float)
    return np.vstack([X, X]), (rng.random((n, 4)) < [0.5, 0.3, 0.1, 0.05]).astype(np.uint8)


def written_out(X: np.ndarray, y: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, float]:
    """F_lf and w_l of one label by the definition, instance by instance."""
    span = np.ptp(X, axis=0)
    span[span == 0] = np.inf
    F, w = np.zeros(X.shape[1]), 0.0
    for i in range(len(X)):
        others = [j for j in range(len(X)) if j != i]
        same = [j for j in others if y[j] == y[i]]
        different = [j for j in others if y[j] != y[i]]
        if same and different:
            hit = min(same, key=lambda j: (distances[i, j], j))
            miss = min(different, key=lambda j: (distances[i, j], j))
            F += (np.abs(X[i] - X[miss]) - np.abs(X[i] - X[hit])) / span
            w += distances[i, miss] - distances[i, hit]
    return F, w


def distances_of(X: np.ndarray, space: str, metric: str) -> np.ndarray:
    Z = distances.scaled(X) if space == "range" else X
    return cdist(Z, Z, {"euclidean": "euclidean", "manhattan": "cityblock"}[metric])


@pytest.mark.parametrize("data", [problem, tied])
@pytest.mark.parametrize("space", ["range", "raw"])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_scores_are_the_sums_of_the_paper(data, space, metric, monkeypatch):
    X, Y = data()
    X = np.column_stack([X, np.full(len(X), 2.5)])
    monkeypatch.setattr(distances, "_ENTRIES", 100)  # several blocks everywhere
    monkeypatch.setattr(search, "_BLOCK_ENTRIES", 20 * len(X))
    monkeypatch.setattr(distances, "_LISTED", 3)
    F, w = map(np.array, zip(*(written_out(X, y, distances_of(X, space, metric)) for y in Y.T), strict=True))
    model = LWMF(nn_space=space, nn_metric=metric).fit(X, Y)
    np.testing.assert_allclose(model.margins_, w, rtol=0, atol=1e-10 * np.abs(w).max())
    weights = np.maximum(w, 0) / np.maximum(w, 0).sum()
    np.testing.assert_allclose(model.label_weights_, weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.scores_, weights @ F, rtol=0, atol=1e-12 * len(X))
    np.testing.assert_array_equal(model.ranking_, np.argsort(np.argsort(-model.scores_, kind="stable")) + 1)
    assert model.scores_[-1] == 0.0
    sparse = LWMF(nn_space=space, nn_metric=metric).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(sparse.scores_, model.scores_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("data", [problem, tied])
@pytest.mark.parametrize("listed", [1, 4, 60])
def test_the_nearest_of_a_class_is_the_first_of_a_stable_sort(data, listed, monkeypatch):
    X, Y = data()
    Y[:, -1] = 0
    Y[3, -1] = 1  # one instance has the last label
    monkeypatch.setattr(distances, "_LISTED", listed)
    monkeypatch.setattr(search, "_BLOCK_ENTRIES", 7 * len(X))
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1, kind="stable")
    for given in (X, sp.csr_array(X)):
        indices, away = nearest_of_classes(given, Y)
        for label, kind, i in itertools.product(range(Y.shape[1]), (0, 1), range(len(X))):
            members = [j for j in order[i] if j != i and Y[j, label] == kind]
            assert indices[kind, i, label] == (members[0] if members else -1)
            expected = D[i, members[0]] if members else np.nan
            np.testing.assert_allclose(away[kind, i, label], expected, rtol=1e-14)


def test_one_label_is_relief_with_one_hit_and_one_miss():
    X, Y = problem()
    F, _ = written_out(X, Y[:, 0], distances_of(X, "range", "euclidean"))
    scores = LWMF(label_weight="uniform").fit(X, Y[:, :1]).scores_
    np.testing.assert_allclose(scores, F, rtol=1e-12, atol=1e-12)


def test_by_manhattan_distance_the_scores_add_up_to_the_margins():
    X, Y = problem()
    for label in range(Y.shape[1]):
        model = LWMF(nn_metric="manhattan", label_weight="uniform").fit(X, Y[:, [label]])
        assert model.scores_.sum() == pytest.approx(model.margins_[0], abs=1e-12 * len(X))
    model = LWMF(nn_metric="manhattan", clip_negative=False).fit(X, Y)
    assert model.scores_.sum() == pytest.approx(model.label_weights_ @ model.margins_, abs=1e-12 * len(X))


def test_what_changes_nothing():
    X, Y = problem()
    model = LWMF(clip_negative=False).fit(X, Y)
    np.testing.assert_array_equal(LWMF(clip_negative=False, weight_norm=None).fit(X, Y).ranking_, model.ranking_)
    features, labels = np.random.default_rng(1).permutation(X.shape[1]), [3, 1, 4, 0, 2]
    moved = LWMF(clip_negative=False).fit(X[:, features], Y[:, labels])
    np.testing.assert_allclose(moved.scores_, model.scores_[features], rtol=0, atol=1e-12)
    flipped = Y.copy()
    flipped[:, [0, 3]] = 1 - Y[:, [0, 3]]
    np.testing.assert_array_equal(LWMF(clip_negative=False).fit(X, flipped).scores_, model.scores_)
    stretched = X * np.geomspace(1e-6, 1e6, X.shape[1]) - 3.0
    np.testing.assert_array_equal(LWMF(clip_negative=False).fit(stretched, Y).ranking_, model.ranking_)


def test_a_label_twice_counts_twice():
    X, Y = problem()
    options = {"weight_norm": None, "clip_negative": False}
    once, twice = LWMF(**options).fit(X, Y), LWMF(**options).fit(X, Y[:, [0, 1, 2, 3, 4, 2]])
    F = LWMF(label_weight="uniform", weight_norm=None).fit(X, Y[:, [2]]).scores_
    np.testing.assert_allclose(twice.scores_ - once.scores_, once.margins_[2] * F, rtol=1e-9, atol=1e-9)


def test_pairs_as_a_matrix_give_the_same_scores_on_binary_data():
    rng = np.random.default_rng(3)
    X, Y = (rng.random((70, 9)) < 0.4).astype(float), (rng.random((70, 3)) < 0.3).astype(np.uint8)
    indices, _ = nearest_of_classes(X, Y)
    C = np.zeros((70, 70))
    for i, label in itertools.product(range(70), range(3)):
        C[i, indices[1 - Y[i, label], i, label]] += 1
        C[i, indices[Y[i, label], i, label]] -= 1
    expected = [C.sum(axis=1) @ x + C.sum(axis=0) @ x - 2 * x @ C @ x for x in X.T]
    scores = LWMF(label_weight="uniform", weight_norm=None).fit(X, Y).scores_
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-10)


def test_label_weights():
    X, Y = problem()
    share = lambda w: w / np.abs(w).sum()  # noqa: E731
    margins = LWMF(clip_negative=False).fit(X, Y)
    np.testing.assert_allclose(margins.label_weights_, share(margins.margins_))
    np.testing.assert_allclose(LWMF(label_weight="uniform").fit(X, Y).label_weights_, 0.2)
    np.testing.assert_allclose(LWMF(label_weight="frequency").fit(X, Y).label_weights_, share(Y.mean(axis=0)))
    low = LWMF(weight_norm="minmax", clip_negative=False).fit(X, Y).label_weights_
    assert (low.min(), low.max()) == (0.0, 1.0)
    balanced = LWMF(label_weight="balanced_margin", weight_norm=None, clip_negative=False).fit(X, Y)
    D = distances_of(X, "range", "euclidean")
    np.fill_diagonal(D, np.inf)
    for label, y in enumerate(Y.T):
        m = np.array([D[i, y != y[i]].min() - D[i, y == y[i]].min() for i in range(len(X))])
        assert balanced.label_weights_[label] == pytest.approx(m[y == 1].mean() + m[y == 0].mean(), abs=1e-12)


def test_rare_labels_weigh_most_though_they_are_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    Y = (rng.random((400, 4)) < [0.5, 0.2, 0.1, 0.02]).astype(np.uint8)
    weights = LWMF().fit(X, Y).label_weights_
    assert (np.diff(weights) > 0).all()
    assert weights[3] > 0.5


def test_labels_without_two_of_a_class_do_not_count():
    X, Y = problem()
    empty, lone = np.zeros(len(X), dtype=np.uint8), np.zeros(len(X), dtype=np.uint8)
    lone[5] = 1
    expected = LWMF().fit(X, Y).scores_
    with_both = LWMF().fit(X, np.column_stack([empty, Y, lone, 1 - empty]))
    np.testing.assert_allclose(with_both.scores_, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(with_both.label_weights_[[0, -2, -1]], 0)
    with pytest.warns(UserWarning, match="not ranked"):
        np.testing.assert_array_equal(LWMF().fit(X, empty[:, None]).ranking_, np.arange(X.shape[1]) + 1)
    # on demand the others count for a lone one's label, itself does not
    F, w = written_out(X, lone, distances_of(X, "range", "euclidean"))
    model = LWMF(min_class_count=1, weight_norm=None, clip_negative=False).fit(X, lone[:, None])
    np.testing.assert_allclose(model.margins_, [w], rtol=1e-12)
    np.testing.assert_allclose(model.scores_, w * F, rtol=1e-9)


def literally(X: np.ndarray, y: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, float]:
    """F_lf and w_l of one label where a missing hit or miss has the distance 0 and the other one counts."""
    span, F, w = np.ptp(X, axis=0), np.zeros(X.shape[1]), 0.0
    for i in range(len(X)):
        for kind, sign in ((1 - y[i], 1), (y[i], -1)):
            members = [j for j in range(len(X)) if j != i and y[j] == kind]
            if members:
                nearest = min(members, key=lambda j: (D[i, j], j))
                F += sign * np.abs(X[i] - X[nearest]) / span
                w += sign * D[i, nearest]
    return F, w


@pytest.mark.parametrize("norm", ["minmax", "l1"])
def test_the_literal_text_sets_a_missing_distance_to_0(norm):
    X, Y = problem()
    Y[:, 1] = 0
    Y[:, 2] = np.arange(len(X)) == 4
    D = distances_of(X, "raw", "euclidean")
    F, w = map(np.array, zip(*(literally(X, y, D) for y in Y.T), strict=True))
    options = {"nn_space": "raw", "clip_negative": False, "min_class_count": 0, "weight_norm": norm}
    model = LWMF(missing="zero", **options).fit(X, Y)
    np.testing.assert_allclose(model.margins_, w, rtol=1e-12)
    expected = (w - w.min()) / (w - w.min()).max() if norm == "minmax" else w / np.abs(w).sum()
    np.testing.assert_allclose(model.label_weights_, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(model.scores_, expected @ F, rtol=0, atol=1e-9)
    assert w.argmin() == 1  # the label without instances
    assert LWMF(**options).fit(X, Y).margins_[1] == 0
    with_two = LWMF(missing="zero").fit(*problem())
    np.testing.assert_array_equal(with_two.scores_, LWMF().fit(*problem()).scores_)


def test_negative_margins_are_not_evidence():
    X = np.array([[0.0, 0.0], [0.1, 0.0], [1.0, 1.0], [1.1, 1.0]])
    Y = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])  # the first label's nearest are all misses
    model = LWMF().fit(X, Y)
    assert model.margins_[0] < 0 < model.margins_[1]
    np.testing.assert_allclose(model.label_weights_, [0, 1])
    with pytest.warns(UserWarning, match="count alike"):
        assert LWMF().fit(X, Y[:, :1]).label_weights_ == [1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LWMF(clip_negative=False).fit(X, Y[:, :1]).label_weights_ == [-1.0]


def test_a_selector_is_one_of_scikit_learn():
    X, Y, X_test = make_data()
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = LWMF(n_features_to_select=3).set_output(transform="pandas").fit(frame, Y)
    kept = model.get_support(indices=True)
    assert sorted(model.ranking_[kept]) == [1, 2, 3]
    assert list(model.transform(frame).columns) == [frame.columns[i] for i in kept]
    np.testing.assert_array_equal(LWMF(3).fit_transform(X, Y), X[:, kept])
    np.testing.assert_array_equal(LWMF(3).fit(X, Y).transform(sp.csr_array(X_test)).toarray(), X_test[:, kept])
    for n_features, count in ((None, 4), (0.25, 2), (1.0, 8), (8, 8), (0.01, 1)):
        assert LWMF(n_features).fit(X, Y).support_.sum() == count


def test_wrong_arguments():
    X, Y, _ = make_data()
    for wrong in (
        {"nn_space": "unit"},
        {"nn_metric": "cosine"},
        {"label_weight": "margins"},
        {"weight_norm": "l2"},
        {"missing": "drop"},
        {"n_features_to_select": 9},
        {"n_features_to_select": 0},
        {"n_features_to_select": 1.5},
    ):
        with pytest.raises(MethodError, match=f"{next(iter(wrong))}="):
            LWMF(**wrong).fit(X, Y)


@pytest.mark.parametrize("variant", ["spc", "proj"])
def test_features_of_equal_weight_are_ranked_by_their_number(variant: Literal["spc", "proj"]) -> None:
    """A word that occurs in one document weighs as much as that of another document with the same labels."""
    rng = np.random.default_rng(0)
    kind = rng.integers(6, size=90)
    Y = np.array([[k & 1, k >> 1 & 1, k >> 2] for k in range(6)])[kind]
    model = MDDMSelector(variant=variant).fit(np.eye(90), Y)
    for k in range(6):
        ranks = model.ranking_[kind == k]
        assert (np.diff(ranks) > 0).all(), k


def test_the_ranking_by_variance_knows_no_labels() -> None:
    X = np.random.default_rng(0).normal(size=(30, 5)) * np.arange(1, 6)
    Y = (X[:, :2] > 0).astype(int)
    ranking = VarianceRanking().fit(X, Y).ranking_
    np.testing.assert_array_equal(ranking, VarianceRanking().fit(X, 1 - Y).ranking_)
    assert np.argmin(ranking) == np.argmax(np.var(X, axis=0))
