"""Multi-label naive Bayes: its Gaussians, its held-out judgement of subsets, the genetic search."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from sklearn.metrics import label_ranking_loss

from helpers.batches import assert_exact, make_rows
from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.bayes import _gaussian as gaussian
from multilab.methods.bayes._gaussian import HeldOut, LabelGaussians
from multilab.methods.bayes.mlnb import MLNB, genetic_search
from multilab.methods.selection.mlnb_selector import MLNBSelector


def problem(n: int = 90, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * [1, 2, 1, 5, 1, 1][:d] + 3
    Y = (X[:, :3] + rng.normal(size=(n, 3)) > [3, 4, 4.5]).astype(np.uint8)
    return X, Y


def test_scores_are_bayes_rule_with_independent_gaussians():
    X, Y = problem()
    scores = MLNB(components=None, generations=0, s=2.0).fit(X, Y).decision_function(X)
    for label, y in enumerate(Y.T):
        log_odds = np.log((2 + y.sum()) / (2 + len(y) - y.sum()))
        for f in range(6):
            having, without = (norm(X[y == k, f].mean(), X[y == k, f].std(ddof=1)) for k in (1, 0))
            log_odds = log_odds + having.logpdf(X[:, f]) - without.logpdf(X[:, f])
        np.testing.assert_allclose(scores[:, label], log_odds, rtol=0, atol=1e-9)


def test_classes_that_say_little():
    X, Y = problem()
    X[:, 5] = 2.0  # constant
    X[Y[:, 0] == 1, 4] = 7.0  # without spread in a class
    Y[:, 1], Y[:, 2] = 0, 0
    Y[11, 2] = 1
    model = LabelGaussians.fit(X, Y, 1.0)
    assert model.spreads[1, 0, 4] == pytest.approx(1e-6 * np.ptp(X[:, 4]), rel=1e-6)
    # no row has the second label: every column is uninformative
    np.testing.assert_allclose(model.ratios(X, 1), 0.0, atol=1e-9)
    np.testing.assert_allclose(model.ratios(X, 0)[:, 5], 0.0, atol=1e-12)
    np.testing.assert_allclose(model.spreads[1, 2, :5], X[:, :5].std(axis=0, ddof=1))
    np.testing.assert_allclose(model.means[1, 2], X[11])
    assert np.isfinite(model.scores(X)).all()


def test_a_subset_is_judged_as_naive_bayes_fitted_on_it(monkeypatch):
    X, Y = problem()
    Y[4] = 0  # no ranking loss
    monkeypatch.setattr(gaussian, "_COMPARED", 20)
    subsets = np.array([[1, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 0]], dtype=bool)
    losses = HeldOut(X, Y, 4, 1.0).losses(subsets)
    for subset, loss in zip(subsets, losses, strict=True):
        columns = np.flatnonzero(subset) if subset.any() else np.arange(6)
        by_fold = []
        for rows in np.array_split(np.arange(len(X)), 4):
            rest = np.setdiff1d(np.arange(len(X)), rows)
            model = MLNB(components=None, generations=0).fit(X[rest][:, columns], Y[rest])
            scores, decisions = model.predict_with_scores(X[rows][:, columns])
            ranked = (Y[rows].sum(axis=1) % 3) > 0
            ranking = label_ranking_loss(Y[rows][ranked], scores[ranked])
            by_fold.append(((decisions != Y[rows]).mean() + ranking) / 2)
        assert loss == pytest.approx(np.mean(by_fold), abs=1e-6)


def test_tied_scores_are_errors():
    X, Y = problem()
    held_out = HeldOut(np.ones_like(X), Y, 3, 1.0)
    held_out.prior[:] = -1.0  # every label of every row equally likely
    wrong = (Y.mean() + 1.0) / 2  # no label is assigned, all pairs are tied
    assert held_out.losses(np.ones((1, 6), dtype=bool))[0] == pytest.approx(wrong, abs=1e-12)


def test_single_columns_written_out():
    X, Y = problem()
    held_out = HeldOut(X, Y, 5, 1.0)
    quality = held_out.single_columns()
    for f in range(6):
        right = []
        for label, y in enumerate(Y.T):
            says = held_out.ratios[:, label, f] > 0
            right.append((says[y == 1].mean() + (~says[y == 0]).mean()) / 2)
        assert quality[f] == pytest.approx(np.mean(right), abs=1e-6)
    assert set(np.argsort(-quality)[:3]) == {0, 1, 2}


def test_the_search_finds_a_known_subset_and_never_forgets_it():
    target = np.random.default_rng(1).random(24) < 0.4
    evaluated = []

    def loss(subsets: np.ndarray) -> np.ndarray:
        evaluated.extend(subset.tobytes() for subset in subsets)
        return (subsets != target).sum(axis=1).astype(float)

    best, path = genetic_search(loss, 24, np.random.RandomState(0), 20, 100)
    assert (best != target).sum() <= 1
    assert len(path) == 101
    assert (np.diff(path) <= 0).all()
    assert path[-1] == (best != target).sum()
    assert len(evaluated) == len(set(evaluated))


def test_every_generation_keeps_the_best_two_and_replaces_the_others():
    evaluated = []

    def loss(subsets: np.ndarray) -> np.ndarray:
        evaluated.append(subsets)
        return subsets.mean(axis=1)

    genetic_search(loss, 2000, np.random.RandomState(0), 20, 3)  # with 2000 columns no two subsets are the same
    assert [len(subsets) for subsets in evaluated] == [20, 18, 18, 18]


def test_the_search_leaves_out_what_misleads():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 16))
    Y = (X[:, :4] + 0.3 * rng.normal(size=(300, 4)) > 0).astype(np.uint8)
    X[:, 10:] = X[:, :1] + 0.05 * rng.normal(size=(300, 6))  # six copies of the first: counted seven times
    selector = MLNBSelector(random_state=0).fit(X, Y)
    assert selector.support_[[1, 2, 3]].all()
    assert selector.support_[[0, *range(10, 16)]].sum() < 4
    assert selector.losses_[-1] < selector.losses_[0]
    kept = selector.ranking_ <= selector.support_.sum()
    np.testing.assert_array_equal(kept, selector.support_)
    np.testing.assert_array_equal(selector.scores_ > 1, selector.support_)


def test_the_classifier_uses_what_the_search_keeps():
    X, Y, X_test = make_data()
    model = MLNB(generations=10, random_state=0).fit(X, Y)
    assert model.support_.shape == (3,)  # .3 of 8 features, rounded up
    assert MLNB(components=None, generations=10, random_state=0).fit(X, Y).support_.shape == (8,)
    selector = MLNBSelector(generations=10, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(
        MLNB(components=None, generations=10, random_state=0).fit(X, Y).support_, selector.support_
    )
    plain = MLNB(components=None, generations=0).fit(selector.transform(X), Y)
    chosen = MLNB(components=None, generations=10, random_state=0).fit(X, Y)
    expected = plain.decision_function(selector.transform(X_test))
    np.testing.assert_allclose(chosen.decision_function(X_test), expected, rtol=0, atol=1e-12)
    # new rows are rotated by the training rows' components, one by one
    np.testing.assert_allclose(model.decision_function(X_test[:1]), model.decision_function(X_test)[:1], rtol=1e-12)
    sparse = MLNB(generations=10, random_state=0).fit(sp.csr_array(X), Y).decision_function(sp.csr_array(X_test))
    np.testing.assert_allclose(sparse, model.decision_function(X_test), rtol=0, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_batches_of_rows_give_the_fit_to_all_rows(sparse):
    X, Y = make_rows()
    model = MLNB(components=None, generations=0)
    assert_exact(model, sp.csr_array(X) if sparse else X, Y)
    assert_exact(model, X * 1e-3 + 1e3, Y, rtol=1e-6)  # means far from zero lose no digits
    with pytest.raises(MethodError, match="set components=None and generations=0"):
        MLNB().fit_batches([(X, Y)])
    assert not hasattr(MLNB(), "partial_fit")


def test_wrong_arguments():
    X, Y, _ = make_data()
    for estimator, word in (
        (MLNB(components=0.0), "components=0"),
        (MLNB(s=0.0), "s=0"),
        (MLNB(population=2), "population=2"),
        (MLNB(folds=1), "folds=1"),
        (MLNB(folds=61), "folds=61"),
        (MLNBSelector(s=-1.0), "s=-1"),
        (MLNBSelector(generations=-1), "generations=-1"),
    ):
        with pytest.raises(MethodError, match=word):
            estimator.fit(X, Y)
