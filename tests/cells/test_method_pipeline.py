"""The pipeline of a method: who gets weights, groups and masks; steps after a classifier; members; clones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from multilab.cells import Columns, MemberScores, MethodPipeline, Scaling, estimator_of, fit_on_rows
from multilab.cells.conf import package_names
from multilab.cells.method import load_method
from multilab.cells.pipeline import out_of_fold, training_folds
from multilab.decision import CalibratedMultiLabelClassifier, TunedThresholdClassifier
from multilab.methods import BinaryRelevance, MethodError, MLkNN, ScoreEnsemble

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5)) * [1, 10, 100, 1, 1]
Y = (X[:, :3] / [1, 10, 100] + RNG.normal(size=(80, 3)) * 0.3 > 0).astype(np.uint8)
WEIGHTS, GROUPS = RNG.uniform(0.5, 2, 80), np.arange(80) % 20


class Watching(TransformerMixin, BaseEstimator):
    """Transformer that notes what its fit gets."""

    def fit(self, X, y=None, sample_weight=None, groups=None):
        self.seen_ = sample_weight, groups
        return self

    def transform(self, X):
        return X


def logistic():
    return BinaryRelevance(LogisticRegression())


@pytest.mark.parametrize("routing", [False, True])
def test_each_step_gets_what_its_fit_takes(routing):
    decided = TunedThresholdClassifier(logistic(), cv=3)
    model = MethodPipeline([("watch", Watching()), ("scale", Scaling("minmax")), ("classifier", decided)])
    with config_context(enable_metadata_routing=routing):
        model.fit(X, Y, WEIGHTS, groups=GROUPS)
    weights, groups = model.named_steps["watch"].seen_
    np.testing.assert_array_equal(weights, WEIGHTS)
    np.testing.assert_array_equal(groups, GROUPS)
    folds = model.classifier.folds_
    assert all(not set(GROUPS[train]) & set(GROUPS[test]) for train, test in folds)
    scaled = MinMaxScaler().fit_transform(X)
    expected = logistic().fit(scaled, Y, sample_weight=WEIGHTS).predict_proba(scaled)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    assert not np.allclose(expected, logistic().fit(scaled, Y).predict_proba(scaled))


def test_weights_that_no_step_takes_are_refused_and_groups_are_not():
    model = MethodPipeline([("classifier", MLkNN(k=3))])
    with pytest.raises(MethodError):
        model.fit(X, Y, WEIGHTS)
    assert model.fit(X, Y, groups=GROUPS).predict(X).shape == Y.shape


def test_weights_of_a_transformer_alone_are_refused():
    model = MethodPipeline([("scale", StandardScaler()), ("classifier", MLkNN(k=3))])  # StandardScaler takes them
    with pytest.raises(MethodError):
        model.fit(X, Y, WEIGHTS)


def test_an_estimator_inside_another_keeps_groups_together_too():
    inner = CalibratedMultiLabelClassifier(logistic(), cv=3)
    model = MethodPipeline([("classifier", TunedThresholdClassifier(inner, cv=3))]).fit(X, Y, groups=GROUPS)
    for train, test in model.classifier.estimator_.folds_:
        assert not set(GROUPS[train]) & set(GROUPS[test])


def test_frames_pass_through_with_their_names():
    frame = pd.DataFrame(X, columns=list("abcde"))
    steps = [("columns", Columns(np.array([0, 2]))), ("scale", Scaling("minmax")), ("classifier", MLkNN(k=3))]
    model = MethodPipeline(steps).set_output(transform="pandas").fit(frame, Y)
    assert model.classifier.feature_names_in_.tolist() == ["a", "c"]
    expected = MLkNN(k=3).fit(MinMaxScaler().fit_transform(X[:, [0, 2]]), Y)
    np.testing.assert_array_equal(model.predict(frame), expected.predict(MinMaxScaler().fit_transform(X[:, [0, 2]])))


def test_base_scores_are_not_scaled():
    method = replace(load_method("mlwse_l1"), preprocessing="minmax")
    assert [name for name, _ in estimator_of(method).steps] == ["classifier"]


def test_a_mask_is_a_missing_label():
    mask = RNG.random(Y.shape) < 0.8
    missing = np.where(mask, Y, -1).astype(np.int8)
    model = MethodPipeline([("classifier", logistic())])
    masked = model.fit(X, Y, y_mask=mask).predict_proba(X)
    np.testing.assert_array_equal(masked, clone(model).fit(X, missing).predict_proba(X))


def test_a_fit_leaves_the_steps_as_they_are_and_a_clone_gives_the_same():
    model = MethodPipeline([("scale", Scaling("standard")), ("classifier", logistic())])
    fitted = model.fit(X, Y)
    assert not hasattr(model.steps[1][1], "n_labels_")
    expected = logistic().fit(StandardScaler().fit_transform(X), Y).predict_proba(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(clone(fitted).fit(X, Y).predict_proba(X), expected, rtol=1e-12)
    other = model.set_params(classifier__estimator__C=0.01).fit(X, Y)
    assert other.get_params()["classifier__estimator__C"] == 0.01
    assert not np.allclose(other.predict_proba(X), expected)


def test_steps_after_the_classifier_learn_from_out_of_fold_scores():
    after = [
        ("calibration", CalibratedMultiLabelClassifier("precomputed", method="sigmoid")),
        ("decisions", TunedThresholdClassifier("precomputed", objective="macro_f1")),
    ]
    steps = [("scale", Scaling("minmax")), ("classifier", logistic())]
    model = MethodPipeline([*steps, *after]).fit(X, Y)
    held = out_of_fold(MethodPipeline(steps), X, Y, training_folds(Y, 5))
    plain = MethodPipeline(steps).fit(X, Y).predict_proba(X)
    expected = clone(after[0][1]).fit(held, Y).predict_proba(plain)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), clone(after[1][1]).fit(held, Y).predict(plain))
    assert model.thresholds_ is None  # they are of the scores before calibration


def test_margins_become_probabilities_before_a_step_that_reads_them():
    from sklearn.svm import LinearSVC

    svm = BinaryRelevance(LinearSVC())
    bare = MethodPipeline([("classifier", svm)]).fit(X, Y)
    assert not hasattr(bare, "predict_proba")
    model = MethodPipeline([("classifier", svm), ("calibration", "passthrough")]).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(-bare.decision_function(X))), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), bare.predict(X))


def test_members_are_fitted_on_all_rows_and_the_next_step_learns_from_out_of_fold_scores():
    members = [
        MethodPipeline([("scale", Scaling("minmax")), ("classifier", each)]) for each in (MLkNN(k=3), logistic())
    ]
    model = MethodPipeline([("members", MemberScores(members, folds=3)), ("classifier", ScoreEnsemble(random_state=0))])
    model.fit(X, Y)
    folds = training_folds(Y, 3)
    held = np.hstack([out_of_fold(member, X, Y, folds) for member in members])
    shown = np.hstack([clone(member).fit(X, Y).predict_proba(X) for member in members])
    expected = ScoreEnsemble(random_state=0).fit(held, Y).predict_proba(shown)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    np.testing.assert_allclose(clone(model).fit(X, Y).predict_proba(X), expected, rtol=1e-12)


def test_scales_and_columns_read_no_label_and_are_learned_once():
    model = MethodPipeline([("columns", Columns(np.array([0, 1]))), ("scale", Scaling("minmax")), ("k", MLkNN(k=3))])
    folds = training_folds(Y, 4)
    scaled = MinMaxScaler().fit_transform(X[:, :2])
    expected = out_of_fold(MLkNN(k=3), scaled, Y, folds)
    np.testing.assert_array_equal(out_of_fold(model, X, Y, folds), expected)
    before, rest = model.label_free()
    assert [name for name, _ in before] == ["columns", "scale"]
    assert [name for name, _ in rest.steps] == ["k"]


def test_sparse_rows_keep_their_zeros():
    rows = sp.random(30, 6, 0.3, format="csr", random_state=0)
    for kind in ("minmax", "standard"):
        scaled = Scaling(kind).fit_transform(rows)
        assert sp.issparse(scaled)
        assert scaled.nnz == rows.nnz


@pytest.mark.parametrize("name", package_names("method"))
def test_every_method_file_is_a_pipeline_that_can_be_cloned(name):
    model = estimator_of(name, 0, "data")
    names = [step for step, _ in model.steps]
    assert repr(clone(model).get_params(deep=False)) == repr(model.get_params(deep=False))
    assert len(set(names)) == len(names)


def test_a_fit_gives_scores_decisions_and_costs():
    fit = fit_on_rows(estimator_of("mlknn"), X[:60], Y[:60], X[60:])
    assert fit.scores.shape == fit.decisions.shape == (20, 3)
    assert fit.costs()["model_bytes"] > 0
    np.testing.assert_array_equal(fit.model.predict(X[60:]), fit.decisions)


def test_labels_that_are_not_observed_need_a_method_that_learns_from_them():
    missing = np.where(RNG.random(Y.shape) < 0.1, -1, Y).astype(np.int8)
    with pytest.raises(MethodError, match="RAkELd"):
        fit_on_rows(estimator_of("rakel_d"), X, missing)
