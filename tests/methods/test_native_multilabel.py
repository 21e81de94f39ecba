"""Baselines without features, and the wrapper of classifiers that learn all labels at once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from helpers.batches import batches_of, make_rows
from multilab.methods import BinaryRelevance, DenseFeatures, FrequentLabels, NativeMultiLabel, NoLabels
from multilab.methods.base import MethodError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
Y = (X[:, :4] + 0.2 * RNG.normal(size=(60, 4)) > 0).astype(np.uint8)


class Strict(ClassifierMixin, BaseEstimator):
    """A classifier that refuses constant labels and a single label, as CatBoost does, and returns one table."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        assert y.ndim == 2
        assert y.shape[1] > 1
        assert ((y.mean(axis=0) > 0) & (y.mean(axis=0) < 1)).all()
        assert not sp.issparse(X) or isinstance(X, sp.spmatrix)
        self.share_ = y.mean(axis=0)
        return self

    def predict_proba(self, X):
        return np.tile(self.share_, (X.shape[0], 1))


class Hidden(Strict):
    """Lists only arguments that have a value, as CatBoost does."""

    def get_params(self, deep=True):
        return {"random_state": self.random_state} if self.random_state is not None else {}

    def set_params(self, random_state):
        self.random_state = random_state
        return self


@pytest.mark.parametrize("constant", [[], [0], [0, 2], [0, 1, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("value", [0, 1])
def test_constant_labels_are_left_out(constant, value):
    labels = Y.copy()
    labels[:, constant] = value
    model = NativeMultiLabel(Strict()).fit(X, labels)
    scores, decisions = model.predict_with_scores(X[:3])
    np.testing.assert_allclose(scores, np.tile(labels.mean(axis=0), (3, 1)))
    np.testing.assert_array_equal(decisions, scores >= 0.5)
    assert list(model.varying_) == [label for label in range(4) if label not in constant]


def test_one_table_per_label_is_put_together():
    tables = NativeMultiLabel(KNeighborsClassifier(3)).fit(X, Y)
    np.testing.assert_allclose(
        tables.predict_proba(X), np.column_stack([t[:, 1] for t in KNeighborsClassifier(3).fit(X, Y).predict_proba(X)])
    )


def test_a_single_label_has_the_scores_of_the_binary_classifier():
    column = Y[:, :1]
    score = NativeMultiLabel(KNeighborsClassifier(3)).fit(X, column).predict_proba(X)
    np.testing.assert_allclose(score[:, 0], KNeighborsClassifier(3).fit(X, column[:, 0]).predict_proba(X)[:, 1])


def test_a_sparse_array_reaches_the_classifier_as_a_matrix():
    assert NativeMultiLabel(Strict()).fit(sp.csr_array(X), Y).predict(sp.csr_array(X)).shape == Y.shape


def test_the_seed_reaches_arguments_that_are_not_listed():
    assert NativeMultiLabel(Hidden(), random_state=3).fit(X, Y).estimator_.random_state is not None
    forest = NativeMultiLabel(RandomForestClassifier(3), random_state=0)
    np.testing.assert_array_equal(forest.fit(X, Y).predict_proba(X), forest.fit(X, Y).predict_proba(X))
    assert NativeMultiLabel(KNeighborsClassifier(), random_state=0).fit(X, Y).estimator_.n_neighbors == 5


def test_a_classifier_without_probabilities_is_refused():
    with pytest.raises(MethodError, match="SVC has no predict_proba"):
        NativeMultiLabel(SVC()).fit(X, Y)


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_xgboost_learns_from_batches_through_its_external_memory(strategy):
    xgboost = pytest.importorskip("xgboost", reason="the extra arena is not installed")
    X, Y = make_rows()
    Y[:, 3] = 1
    base = xgboost.XGBClassifier(n_estimators=5, multi_strategy=strategy, tree_method="hist", n_jobs=1)
    model = NativeMultiLabel(base, random_state=1)
    whole = clone(model).fit(X, Y).predict_proba(X)
    # the sketch of so few rows keeps all values
    np.testing.assert_array_equal(model.fit_batches(batches_of(X, Y)).predict_proba(X), whole)
    single = clone(model).fit_batches(batches_of(X, Y[:, [0, 3]]))
    assert single.varying_.tolist() == [0]
    assert (single.predict(X) == Y[:, [0, 3]]).mean() > 0.9
    with pytest.raises(MethodError, match="several passes"):
        model.fit_batches(iter(batches_of(X, Y)))


def test_other_classifiers_need_all_rows():
    with pytest.raises(MethodError, match="except on an XGBClassifier"):
        NativeMultiLabel().fit_batches([(X, Y)])


def test_label_frequencies_are_those_of_the_dummy():
    scores = NativeMultiLabel(DummyClassifier(strategy="prior")).fit(X, Y).predict_proba(X[:2])
    np.testing.assert_allclose(scores, np.tile(Y.mean(axis=0), (2, 1)))


def test_no_labels():
    scores, decisions = NoLabels().fit(X, Y).predict_with_scores(X)
    assert not scores.any()
    assert not decisions.any()


@pytest.mark.parametrize(("k", "assigned"), [(0, []), (1, [1]), (2, [1, 0]), (None, [1, 0]), (9, [1, 0, 3, 2])])
def test_frequent_labels(k, assigned):
    labels = np.array([[1, 1, 0, 0], [1, 1, 0, 1], [0, 1, 0, 0]])  # cardinality 2
    model = FrequentLabels(k).fit(X[:3], labels)
    assert list(model.labels_) == assigned
    scores, decisions = model.predict_with_scores(X[:1])
    assert sorted(np.flatnonzero(decisions[0])) == sorted(assigned)
    np.testing.assert_allclose(scores[0], [2 / 3, 1, 0, 1 / 3])


def test_equally_frequent_labels_are_taken_in_order():
    assert list(FrequentLabels(1).fit(X[:2], [[0, 1, 1], [0, 1, 1]]).labels_) == [1]


def test_frequent_labels_refuses_a_negative_number():
    with pytest.raises(MethodError, match="k=-1: give the number of labels"):
        FrequentLabels(-1).fit(X, Y)


def test_dense_features_are_those_of_the_classifier():
    base = BinaryRelevance(LogisticRegression())
    dense = DenseFeatures(base).fit(sp.csr_array(X), Y)
    np.testing.assert_array_equal(dense.predict_proba(sp.csr_array(X)), base.fit(X, Y).predict_proba(X))
    margins = DenseFeatures(BinaryRelevance(SVC())).fit(X, Y)
    assert not hasattr(margins, "predict_proba")
    np.testing.assert_array_equal(margins.predict(X), margins.decision_function(X) >= 0)
