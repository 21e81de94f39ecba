"""MLARAM: prototypes, the formula of activation, decisions at the largest gap."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.neighbours import mlaram
from multilab.methods.neighbours.mlaram import MLARAM


def test_vigilance_1_keeps_one_prototype_per_distinct_row() -> None:
    X, Y, _ = make_data()
    doubled = MLARAM(vigilance=1.0).fit(np.vstack([X, X[:20]]), np.vstack([Y, Y[:20]]))
    assert len(doubled.prototypes_) == len(X)
    assert doubled.counts_.sum() == len(X) + 20
    activation = doubled._activation(X)
    np.testing.assert_allclose(activation.max(axis=1), 1.0)
    np.testing.assert_array_equal(doubled.label_sets_[activation.argmax(axis=1)], Y)


def test_prototypes_of_a_worked_example() -> None:
    # one feature in [0, 1]; rows 0, .3, 1 of one label set, .5 of another
    X, Y = np.array([[0.0], [0.3], [1.0], [0.5]]), np.array([[1, 0], [1, 0], [1, 0], [0, 1]])
    model = MLARAM(vigilance=0.6).fit(X, Y)
    # min((0, 1), (.3, .7)) = (0, .7), match .7 >= .6: they merge; then (1, 0) matches by 0 and stands alone
    np.testing.assert_allclose(model.prototypes_, [[0.0, 0.7], [1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_array_equal(model.counts_, [2, 1, 1])
    # the query .2 = (.2, .8): activations .7 / .7, .2 / 1, .7 / 1; within .02 * .8 of the best only the first
    np.testing.assert_allclose(model._activation(np.array([[0.2]])), [[1.0, 0.2, 0.7]])
    scores, decisions = model.predict_with_scores([[0.2]])
    np.testing.assert_allclose(scores, [[1.0, 0.0]])
    np.testing.assert_array_equal(decisions, [[1, 0]])
    # all categories vote: weights 2 * 1, 1 * .2, 1 * .7
    scores, decisions = MLARAM(vigilance=0.6, threshold=2.0).fit(X, Y).predict_with_scores([[0.2]])
    np.testing.assert_allclose(scores, [[2.2 / 2.9, 0.7 / 2.9]])
    np.testing.assert_array_equal(decisions, [[1, 0]])


def test_fewer_prototypes_with_less_vigilance_and_each_holds_its_rows() -> None:
    X, Y, _ = make_data(n=200)
    counts = [len(MLARAM(vigilance=v).fit(X, Y).prototypes_) for v in (0.0, 0.6, 0.8, 1.0)]
    assert counts == sorted(counts)
    assert counts[0] == len(np.unique(Y, axis=0)) < counts[-1]
    model = MLARAM(vigilance=0.6).fit(X, Y)
    # a prototype is below every row it took in: some prototype of the row's own labels is fully activated
    own = (model.label_sets_[None] == Y[:, None]).all(axis=2)
    np.testing.assert_allclose((model._activation(X) * own).max(axis=1), 1.0)


def test_the_order_of_features_is_no_matter_and_each_has_its_own_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y, X_test = make_data()
    expected = MLARAM().fit(X, Y).predict_proba(X_test)
    order = np.random.default_rng(0).permutation(X.shape[1])
    scale = 10.0 ** np.arange(X.shape[1])
    monkeypatch.setattr(mlaram, "_BLOCK_ENTRIES", 200)  # several blocks
    np.testing.assert_allclose(MLARAM().fit(X[:, order], Y).predict_proba(X_test[:, order]), expected, atol=1e-12)
    np.testing.assert_allclose(MLARAM().fit(scale * X, Y).predict_proba(scale * X_test), expected, atol=1e-9)


def test_labels_before_the_largest_gap_are_assigned() -> None:
    scores = np.array([[0.9, 0.1, 0.8], [0.0, 0.0, 0.0], [0.4, 0.4, 0.4], [0.2, 0.9, 0.2]])
    expected = [[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]]
    np.testing.assert_array_equal(mlaram._before_largest_gap(scores), expected)


def test_vigilance_is_a_share() -> None:
    X, Y, _ = make_data()
    with pytest.raises(MethodError, match=r"vigilance=1\.5"):
        MLARAM(vigilance=1.5).fit(X, Y)


def test_one_range_of_a_matrix_is_that_of_its_own_rows() -> None:
    X, Y, X_test = make_data()
    model = MLARAM(scale="matrix").fit(100 * X - 3, Y)
    X = 100 * X - 3
    low, high = X.min(), X.max()
    expected = MLARAM(scale="matrix").fit((X - low) / (high - low), Y)
    np.testing.assert_allclose(model.prototypes_, expected.prototypes_)
    rows = 7 * X_test + 50
    within = (rows - rows.min()) / (rows.max() - rows.min())  # scaled by nothing: it is in [0, 1]
    np.testing.assert_allclose(model.predict_proba(rows), expected.predict_proba(within), atol=1e-9)
    alone = np.vstack([model.predict_proba(row[None]) for row in rows])
    assert not np.allclose(alone, model.predict_proba(rows))  # it depends on the other rows


def test_other_ranges_are_refused() -> None:
    X, Y, _ = make_data()
    with pytest.raises(MethodError, match="scale='range'"):
        MLARAM(scale="range").fit(X, Y)  # type: ignore[arg-type]
