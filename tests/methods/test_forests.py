"""RF-PCT and ERF-PCT and the compact form: the criterion, the trees, labels with one class."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from helpers.toy import make_data
from multilab.core.parallel import parallel
from multilab.methods.base import MethodError
from multilab.methods.forests import compact_forest
from multilab.methods.forests.compact_forest import CompactForest, float32_below, grow_forest
from multilab.methods.forests.erf_pct import ERFPCT
from multilab.methods.forests.rf_pct import RFPCT


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "theirs"), [("random", RandomForestRegressor), ("extra", ExtraTreesRegressor)])
def test_trees_and_importances_are_those_of_scikit_learns_forest(kind, theirs, weighted) -> None:
    X, Y = make_data()
    X, weight = X.astype(np.float32), np.arange(1.0, len(X) + 1.0) if weighted else None
    settings = {"n_estimators": 15, "max_features": "sqrt", "min_samples_leaf": 2}
    forest = theirs(**settings, random_state=3).fit(X, Y, weight)
    expected = CompactForest.of([one.tree_ for one in forest.estimators_], np.arange(Y.shape[1]), Y[0], X.shape[1])
    for n_jobs in (1, 2):
        grown, importances = grow_forest(kind, X, Y, 3, n_jobs, weight, **settings)
        for name in ("nodes", "starts", "leaves", "leaf_starts"):
            np.testing.assert_array_equal(getattr(grown, name), getattr(expected, name), strict=True)
        np.testing.assert_array_equal(importances, forest.feature_importances_)


@pytest.mark.parametrize(("n_jobs", "threads"), [(1, 1), (2, 2), (8, 3)])
def test_a_forest_grows_in_the_given_number_of_threads_but_no_more_than_trees(n_jobs, threads, monkeypatch) -> None:
    asked = []

    def noted(n_jobs, **arguments):
        asked.append(n_jobs)
        return parallel(n_jobs, **arguments)

    monkeypatch.setattr(compact_forest, "parallel", noted)
    X, Y = make_data()
    grow_forest("extra", X.astype(np.float32), Y, 0, n_jobs, n_estimators=3)
    assert asked == [threads]


@pytest.mark.parametrize("wrong", [{"max_features": "half"}, {"max_depth": 0}, {"min_samples_leaf": 0}])
@pytest.mark.parametrize("kind", [RFPCT, ERFPCT])
def test_wrong_arguments_of_trees_are_refused(kind, wrong) -> None:
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of .* must be"):
        kind(n_estimators=3, **wrong).fit(*make_data())


@pytest.mark.parametrize(("ours", "theirs"), [(RFPCT, RandomForestRegressor), (ERFPCT, ExtraTreesRegressor)])
def test_scores_are_those_of_scikit_learns_forest(ours, theirs) -> None:
    X, Y = make_data()
    model = ours(n_estimators=15, random_state=3).fit(X[:150], Y[:150])
    seed = np.random.RandomState(3).randint(2**31 - 1)
    forest = theirs(15, max_features="sqrt", random_state=seed).fit(X[:150], Y[:150])
    np.testing.assert_allclose(model.predict_proba(X[150:]), forest.predict(X[150:]), atol=1e-6)


def test_impurity_is_the_mean_gini_index_and_the_root_split_is_the_best_of_all() -> None:
    X, Y = make_data(60, 4, 3)
    X = X.astype(np.float32)
    tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, Y)
    p = Y.mean(axis=0)
    assert tree.tree_.impurity[0] == pytest.approx(np.mean(2 * p * (1 - p)))

    def left_over(feature: int, threshold: float) -> float:
        low = X[:, feature] <= threshold
        return sum(part.sum() * np.sum(Y[part].mean(0) * (1 - Y[part].mean(0))) for part in (low, ~low) if part.any())

    best = min(left_over(f, t) for f, t in product(range(4), np.unique(X)))
    assert left_over(tree.tree_.feature[0], tree.tree_.threshold[0]) == pytest.approx(best)


def test_a_gini_tree_is_the_tree_that_reduces_variance() -> None:
    X, Y = make_data()
    gini = DecisionTreeClassifier(random_state=0).fit(X, Y).tree_
    variance = DecisionTreeRegressor(random_state=0).fit(X, Y.astype(float)).tree_
    np.testing.assert_array_equal(gini.feature, variance.feature)
    np.testing.assert_allclose(gini.impurity, 2 * variance.impurity, atol=1e-12)


@pytest.mark.parametrize("kind", [RFPCT, ERFPCT])
def test_labels_with_one_class_are_that_class_and_change_no_tree(kind) -> None:
    X, Y = make_data()
    plain = kind(n_estimators=10, random_state=0).fit(X, Y)
    wider = np.insert(Y, [0, 2], [[0, 1]], axis=1)  # never, y0, y1, always, ...
    scores = kind(n_estimators=10, random_state=0).fit(X, wider).predict_proba(X)
    assert not scores[:, 0].any()
    np.testing.assert_array_equal(scores[:, 3], 1.0)
    np.testing.assert_array_equal(np.delete(scores, [0, 3], axis=1), plain.predict_proba(X))
    constant = kind(random_state=0).fit(X, np.tile([0, 1], (len(X), 1))).predict_proba(X)
    np.testing.assert_array_equal(constant, np.tile([0.0, 1.0], (len(X), 1)))


def test_the_scale_of_a_feature_changes_no_decision_of_a_tree() -> None:
    X, Y = make_data()
    stretched = X * np.array([1.0, 8.0, 0.25] * 4)  # powers of two: thresholds between values stay between them
    args = {"n_estimators": 10, "random_state": 0}
    np.testing.assert_array_equal(
        RFPCT(**args).fit(X, Y).predict_proba(X), RFPCT(**args).fit(stretched, Y).predict_proba(stretched)
    )


def test_the_compact_form_finds_the_same_leaves_and_is_smaller() -> None:
    X, Y = make_data(400, 20, 12)
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    compact = CompactForest.of([t.tree_ for t in forest.estimators_], np.arange(12), np.zeros(12), 20)
    X32 = X.astype(np.float32)
    for index, one in enumerate(forest.estimators_):
        np.testing.assert_array_equal(compact.tree(index).apply(X32), one.tree_.apply(X32))
    assert len(pickle.dumps(compact, protocol=5)) < len(pickle.dumps(forest, protocol=5)) / 4
    kept = compact.on_disk()
    assert isinstance(kept.leaves, np.memmap)
    for other in (kept, pickle.loads(pickle.dumps(kept))):
        np.testing.assert_array_equal(other.predict(X32), compact.predict(X32))


def test_a_threshold_in_single_precision_parts_single_precision_values_alike() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=2000), [0.0, -0.0, 1e-40, 3e38, -3e38]])
    below = float32_below(values)
    assert below.dtype == np.float32
    for x in (below, np.nextafter(below, np.float32(np.inf)), values.astype(np.float32)):
        np.testing.assert_array_equal(x <= values, x <= below)


def test_the_number_of_trees_must_be_positive() -> None:
    with pytest.raises(MethodError, match="n_estimators=0"):
        RFPCT(n_estimators=0).fit(*make_data())
