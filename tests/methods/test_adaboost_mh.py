"""AdaBoost.MH: the identities of its paper, every split against brute force, and a real table of pairs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.ensembles.adaboost_mh import AdaBoostMH, SplitTable, StumpSplit


def all_splits(X: np.ndarray) -> list[StumpSplit]:
    return [
        StumpSplit(feature, (low + high) / 2)
        for feature in range(X.shape[1])
        for low, high in pairwise(np.unique(X[:, feature]))
    ]


def rough_data(seed: int, n: int = 40, d: int = 5) -> np.ndarray:
    """Return features with equal values, negative values, zeros, and one constant column."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1) * (rng.uniform(size=(n, d)) < 0.6)
    X[:, 1] = 3.0
    X[:, 2] = np.abs(X[:, 2]) + 1.0  # no zeros
    return X


@pytest.mark.parametrize("width", [1, 3, 200_000])
def test_best_split_is_that_of_brute_force(width: int) -> None:
    X = rough_data(0)
    weights = np.random.default_rng(1).uniform(size=(len(X), min(width, 3)))
    weights = np.tile(weights, (1, max(1, width // 100_000)))  # wide: one feature at a time

    def loss(left: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.abs(left - 0.3 * total).sum(axis=1)

    splits = all_splits(X)
    expected = [loss(weights[s.left(X)].sum(axis=0)[None], weights.sum(axis=0))[0] for s in splits]
    for given in (X, sp.csr_array(X)):
        table = SplitTable(given)
        assert table.n_splits == len(splits)
        best, value = table.best(weights, loss)
        assert value == pytest.approx(min(expected), rel=1e-9)
        assert best is not None
        left = loss(weights[best.left(given)].sum(axis=0)[None], weights.sum(axis=0))[0]
        assert left == pytest.approx(min(expected), rel=1e-9)
    assert SplitTable(np.ones((4, 2))).best(np.ones((4, 1)), loss) == (None, np.inf)


def test_blocks_of_features_do_not_change_the_split(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y, X_test = make_data(seed=2)
    unblocked = AdaBoostMH(15).fit(X, Y).predict_proba(X_test)
    monkeypatch.setattr("multilab.methods.ensembles.adaboost_mh._BLOCK_ENTRIES", 8)
    np.testing.assert_allclose(AdaBoostMH(15).fit(X, Y).predict_proba(X_test), unblocked, rtol=0, atol=1e-12)


def test_a_threshold_lies_between_neighbouring_numbers() -> None:
    low = 1.0
    X = np.array([[low], [np.nextafter(low, 2)]])
    split, _ = SplitTable(X).best(np.eye(2), lambda left, total: -left[:, 0])
    assert split is not None
    assert split.left(X).tolist() == [True, False]


def test_identities_of_the_paper() -> None:
    X, Y, _ = make_data(seed=3)
    n, q = Y.shape
    signs = 2.0 * Y - 1
    model = AdaBoostMH(25).fit(X, Y)
    D = np.full((n, q), 1 / (n * q))
    margins = np.zeros((n, q))
    for weak, Z in zip(model.rounds_, model.normalisers_, strict=True):
        h = weak.values(X)
        assert pytest.approx((D * np.exp(-signs * h)).sum(), rel=1e-12) == Z
        assert Z <= 1 + 1e-12
        for side in (weak.split.left(X), ~weak.split.left(X)):
            up, down = (D[side] * Y[side]).sum(axis=0), (D[side] * (1 - Y[side])).sum(axis=0)
            c = 0.5 * np.log((up + 1 / (n * q)) / (down + 1 / (n * q)))
            np.testing.assert_allclose(h[side], np.tile(c, (side.sum(), 1)), rtol=1e-9, atol=1e-12)
        ideal = [
            sum(np.sqrt((D[s] * Y[s]).sum(axis=0) * (D[s] * (1 - Y[s])).sum(axis=0)).sum() for s in (left, ~left))
            for left in (split.left(X) for split in all_splits(X))
        ]
        chosen = weak.split.left(X)
        took = sum(
            np.sqrt((D[s] * Y[s]).sum(axis=0) * (D[s] * (1 - Y[s])).sum(axis=0)).sum() for s in (chosen, ~chosen)
        )
        assert took == pytest.approx(min(ideal), rel=1e-9)
        D *= np.exp(-signs * h) / Z
        assert D.sum() == pytest.approx(1, rel=1e-12)
        margins += h
    assert ((margins >= 0) != Y).mean() <= np.prod(model.normalisers_)
    np.testing.assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(-2 * margins)), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), margins >= 0)


def test_the_bound_holds_and_falls() -> None:
    X, Y, _ = make_data(seed=4)
    losses, bounds = [], []
    for rounds in (1, 10, 100):
        model = AdaBoostMH(rounds).fit(X, Y)
        losses.append((model.predict(X) != Y).mean())
        bounds.append(np.prod(model.normalisers_))
        assert losses[-1] <= bounds[-1]
    assert bounds[0] > bounds[1] > bounds[2]
    assert losses[2] < losses[0] / 5


def weka_on_pairs(X: np.ndarray, Y: np.ndarray, n_rounds: int) -> np.ndarray:
    """Return the training margins of AdaBoostM1 with stumps on the dense table of pairs, label names one-hot."""
    n, q = Y.shape
    table = np.hstack([np.repeat(X, q, axis=0), np.tile(np.eye(q), (n, 1))])
    y, w, margin = Y.ravel(), np.ones(n * q), np.zeros(n * q)
    for _ in range(n_rounds):
        best = (np.inf, None)
        for split in all_splits(table):
            left = split.left(table)
            loss = 0.0
            for side in (left, ~left):
                size = w[side].sum()
                for part in (w[side & (y == 0)].sum(), w[side & (y == 1)].sum()):
                    loss -= part * np.log(part / size) if part > 0 else 0.0
            if loss < best[0] - 1e-9:
                best = (loss, left)
        left = best[1]
        vote = np.empty(n * q)
        for side in (left, ~left):
            vote[side] = 1 if w[side & (y == 1)].sum() > w[side & (y == 0)].sum() else -1
        wrong = (vote > 0) != y
        error = w[wrong].sum() / w.sum()
        if error >= 0.5 or error == 0:
            break
        margin += 0.5 * np.log((1 - error) / error) * vote
        w[wrong] *= (1 - error) / error
    return margin.reshape(n, q)


@pytest.mark.parametrize("seed", [5, 6])
def test_boosting_of_pairs_without_the_table_of_pairs(seed: int) -> None:
    X, Y, _ = make_data(seed=seed, n=30, d=3, q=3)
    Y[:, 2] &= Y[:, 0]
    margins = weka_on_pairs(X, Y, 6)
    for given in (X, sp.csr_array(X)):
        model = AdaBoostMH(6, "adaboost_m1").fit(given, Y)
        np.testing.assert_allclose(model.predict_proba(given), 1 / (1 + np.exp(-2 * margins)), rtol=1e-9)


def test_boosting_of_pairs_says_no_where_labels_are_rare() -> None:
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(200, 6))
    Y = (X > 0.93).astype(int)
    assert not AdaBoostMH(10, "adaboost_m1").fit(X, Y).predict(X).any()
    assert (AdaBoostMH(100).fit(X, Y).predict(X) != Y).mean() < 0.02


def test_a_single_stump_gives_the_frequencies_of_its_sides() -> None:
    X = np.array([[0.0], [0], [0], [1], [1]])
    Y = np.array([[0], [0], [1], [1], [1]])
    scores = AdaBoostMH(1, "adaboost_m1").fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(scores[:, 0], [1 / 3, 1 / 3, 1 / 3, 1, 1], atol=1e-12)


def test_wrong_arguments_are_named() -> None:
    X, Y, _ = make_data()
    with pytest.raises(MethodError, match="algorithm='mr'"):
        AdaBoostMH(algorithm="mr").fit(X, Y)  # type: ignore[arg-type]
    with pytest.raises(MethodError, match="n_rounds=0"):
        AdaBoostMH(0).fit(X, Y)
