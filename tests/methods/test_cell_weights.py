"""Weights of the labels of each row: repeated rows label by label, and labels that were not observed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import has_fit_parameter

from helpers.multilabel_checks import make_data
from methods.test_estimators import quick_instances
from multilab import AutoMultiLabel
from multilab.cells import MethodPipeline
from multilab.comparison import ComparisonError
from multilab.decision import CalibratedMultiLabelClassifier, TunedThresholdClassifier
from multilab.methods import (
    ELM,
    RELM,
    BinaryRelevance,
    ClassifierChain,
    ElasticNetKernelELM,
    KernelELM,
    MLkNN,
    NystroemKernelELM,
)
from multilab.methods.base import MethodError, WeightedClassifier

X, Y, X_TEST = make_data(n=40)
RNG = np.random.default_rng(0)
TIMES = RNG.integers(1, 4, Y.shape)
WEIGHTS = RNG.uniform(0.2, 3.0, Y.shape)
LR = LogisticRegression(tol=1e-10, max_iter=2000)
# Independent labels: a label's fit is that of its rows, each repeated as often as its weight says.
LABELWISE = [
    BinaryRelevance(LR),
    BinaryRelevance(SVC(gamma=0.5, tol=1e-9)),
    BinaryRelevance(DecisionTreeClassifier(max_depth=3, random_state=0)),
    BinaryRelevance(make_pipeline(StandardScaler(), LR), label_weight="balanced"),
    ELM(6, random_state=0),
    RELM(6, random_state=0, label_weight=[1.0, 2.0, 0.5, 3.0]),
    RELM(90, random_state=0),
    KernelELM(C=3.0, gamma=0.7),
    KernelELM(kernel="sigmoid", gamma=0.7, label_weight="balanced"),
]
# Landmarks are drawn by row numbers, and the penalty of ML-EKELM is one per row: equal to fits with weights of rows.
WEIGHTED = [
    *LABELWISE,
    BinaryRelevance(SVC(gamma=0.5, tol=1e-9), calibration="sigmoid"),
    NystroemKernelELM(30, random_state=0, gamma=0.7),
    ElasticNetKernelELM(lam=0.5, alpha=0.5, tol=1e-12, gamma=0.7),
    ElasticNetKernelELM(lam=0.5, alpha=0.5, fit_intercept=True, loss_scale="mean", tol=1e-12, gamma=0.7),
]
CHAINS = [ClassifierChain(LR, order=[2, 0, 3, 1]), ClassifierChain(SVC(gamma=0.5), calibration="sigmoid")]
SHARED = [KernelELM(gamma="median"), NystroemKernelELM(30, gamma="scale", random_state=0), BinaryRelevance(SVC())]


def scores_of(model: Any) -> np.ndarray:
    return model.predict_with_scores(X_TEST)[0]


def of_label(model: Any, label: int) -> Any:
    """Return the estimator for one label alone."""
    value = getattr(model, "label_weight", None)
    return clone(model).set_params(label_weight=[value[label]]) if isinstance(value, list) else clone(model)


def test_all_estimators_that_take_weights_of_labels_are_tested() -> None:
    takes = {type(model) for model in quick_instances().values() if getattr(model, "_accepts_cell_weights", False)}
    assert takes == {type(model) for model in [*WEIGHTED, *CHAINS]}


@pytest.mark.parametrize("model", LABELWISE, ids=repr)
def test_an_integer_weight_is_a_number_of_equal_rows_label_by_label(model: Any) -> None:
    together = scores_of(clone(model).fit(X, Y, sample_weight=TIMES))
    for label, times in enumerate(TIMES.T):
        if isinstance(getattr(model, "estimator", None), type(make_pipeline(LR))):
            continue  # its scaler counts a row once, whatever the weight
        alone = of_label(model, label).fit(X.repeat(times, axis=0), Y[:, [label]].repeat(times, axis=0))
        np.testing.assert_allclose(together[:, label], scores_of(alone)[:, 0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("model", WEIGHTED, ids=repr)
def test_weights_of_a_label_are_those_of_the_rows_for_it_alone(model: Any) -> None:
    together = scores_of(clone(model).fit(X, Y, sample_weight=WEIGHTS))
    for label, weight in enumerate(WEIGHTS.T):
        alone = of_label(model, label).fit(X, Y[:, [label]], sample_weight=weight)
        np.testing.assert_allclose(together[:, label], scores_of(alone)[:, 0], rtol=0, atol=1e-6)


def test_a_link_is_weighted_by_its_label_and_sees_the_labels_before_it() -> None:
    chain = ClassifierChain(LR, order=[2, 0, 3, 1]).fit(X, Y, sample_weight=TIMES)
    features, new = X, X_TEST
    for label in (2, 0, 3, 1):
        times = TIMES[:, label]
        link = clone(LR).fit(features.repeat(times, axis=0), Y[:, label].repeat(times))
        np.testing.assert_allclose(chain.predict_proba(X_TEST)[:, label], link.predict_proba(new)[:, 1], atol=1e-6)
        features = np.column_stack([features, Y[:, label]])
        new = np.column_stack([new, link.predict(new)])


@pytest.mark.parametrize("model", [*WEIGHTED, *CHAINS, *SHARED], ids=repr)
def test_weight_0_is_a_label_that_was_not_observed(model: Any) -> None:
    seen = np.random.default_rng(1).random(Y.shape) < 0.7
    seen[3] = False  # a row without any label
    expected = scores_of(clone(model).fit(X, np.where(seen, Y, np.nan)))
    for labels in (Y, np.where(seen, Y, 1 - Y), np.where(seen, Y, np.nan), sp.csr_array(Y)):
        np.testing.assert_allclose(
            scores_of(clone(model).fit(X, labels, sample_weight=seen.astype(float))), expected, rtol=0, atol=1e-7
        )
    some = seen | (np.arange(Y.size).reshape(Y.shape) % 2 == 0)  # hidden by the mask or by the weight
    masked = clone(model).fit(X, Y, sample_weight=(seen | ~some).astype(float), y_mask=some)
    np.testing.assert_allclose(scores_of(masked), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("model", [*WEIGHTED, *CHAINS, *SHARED], ids=repr)
def test_equal_weights_of_the_labels_of_a_row_are_that_of_the_row(model: Any) -> None:
    rows = WEIGHTS[:, 0]
    by_row = scores_of(clone(model).fit(X, Y, sample_weight=rows))
    by_cell = scores_of(clone(model).fit(X, Y, sample_weight=np.tile(rows[:, None], (1, Y.shape[1]))))
    np.testing.assert_allclose(by_cell, by_row, rtol=0, atol=1e-6)
    unweighted = scores_of(clone(model).fit(X, Y))
    np.testing.assert_allclose(scores_of(clone(model).fit(X, Y, sample_weight=np.ones(Y.shape))), unweighted, atol=1e-7)
    assert np.abs(scores_of(clone(model).fit(X, Y, sample_weight=WEIGHTS)) - unweighted).max() > 1e-3


@pytest.mark.parametrize("model", [BinaryRelevance(LR), ClassifierChain(LR), KernelELM()], ids=repr)
def test_a_label_without_any_weight_is_one_that_no_row_has(model: Any) -> None:
    weights = WEIGHTS.copy()
    weights[:, 1] = 0
    never = Y.copy()
    never[:, 1] = 0
    expected = scores_of(clone(model).fit(X, never, sample_weight=np.where(weights > 0, weights, 1.0)))
    np.testing.assert_allclose(scores_of(clone(model).fit(X, Y, sample_weight=weights)), expected, rtol=0, atol=1e-9)


def test_all_forms_of_the_weights_are_one() -> None:
    expected = scores_of(KernelELM().fit(X, Y, sample_weight=WEIGHTS))
    names = list("abcd")
    frame = pd.DataFrame(Y, columns=names)
    for labels, weights in (
        (Y, WEIGHTS.tolist()),
        (frame, pd.DataFrame(WEIGHTS, columns=names)),
        (Y, sp.csr_array(WEIGHTS)),
    ):
        np.testing.assert_array_equal(scores_of(KernelELM().fit(X, labels, sample_weight=weights)), expected)
    with pytest.raises(MethodError):
        KernelELM().fit(X, frame, sample_weight=pd.DataFrame(WEIGHTS, columns=names)[names[::-1]])
    before = WEIGHTS.copy()
    BinaryRelevance(LR).fit(X, np.where(Y == 1, Y, np.nan), sample_weight=WEIGHTS)
    np.testing.assert_array_equal(WEIGHTS, before)
    one = X[:, 0] > np.median(X[:, 0])
    by_row = BinaryRelevance(LR).fit(X, one, sample_weight=WEIGHTS[:, 0])
    by_cell = BinaryRelevance(LR).fit(X, one, sample_weight=WEIGHTS[:, [0]])
    np.testing.assert_array_equal(by_row.predict_proba(X), by_cell.predict_proba(X))


@pytest.mark.parametrize(
    "weights",
    [
        np.ones((40, 3)),
        np.ones((39, 4)),
        -WEIGHTS,
        np.where(WEIGHTS > 1, np.nan, WEIGHTS),
        np.zeros((40, 4)),
        np.ones((40, 4, 1)),
    ],
    ids=lambda w: f"{w.shape} {w.flat[0]:g}",
)
@pytest.mark.parametrize("mask", [None, np.ones((40, 4), dtype=bool)], ids=["", "mask"])
def test_wrong_weights_of_labels_are_refused(weights: np.ndarray, mask: Any) -> None:
    for model in (BinaryRelevance(LR), KernelELM()):
        with pytest.raises(ValueError):  # by scikit-learn where it is NaN or has three dimensions
            clone(model).fit(X, Y, sample_weight=weights, y_mask=mask)


REFUSING = {
    name: model
    for name, model in quick_instances().items()
    if has_fit_parameter(model, "sample_weight") and not getattr(model, "_accepts_cell_weights", False)
}


@pytest.mark.parametrize(
    "model",
    [
        *REFUSING.values(),
        ElasticNetKernelELM("l21"),
        BinaryRelevance(KNeighborsClassifier()),
        TunedThresholdClassifier(BinaryRelevance(LR)),
        CalibratedMultiLabelClassifier(BinaryRelevance(LR)),
        AutoMultiLabel(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_others_refuse_weights_of_labels(model: Any) -> None:
    assert isinstance(model, WeightedClassifier) or type(model) in {
        TunedThresholdClassifier,
        CalibratedMultiLabelClassifier,
        AutoMultiLabel,
    }
    with pytest.raises((MethodError, ComparisonError), match="sample_weight"):
        clone(model).fit(X, Y, sample_weight=WEIGHTS)


def test_weights_of_labels_go_through_pipelines_and_folds() -> None:
    direct = BinaryRelevance(LR).fit(X, Y, sample_weight=WEIGHTS)
    pipeline = MethodPipeline([("classifier", BinaryRelevance(LR))]).fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(pipeline.predict_proba(X_TEST), direct.predict_proba(X_TEST))
    rows = np.arange(20)
    folds = [(rows, np.setdiff1d(np.arange(len(X)), rows))]
    with config_context(enable_metadata_routing=True):
        result = cross_validate(
            BinaryRelevance(LR).set_fit_request(sample_weight=True),
            X,
            Y,
            cv=folds,
            scoring=get_scorer("f1_macro").set_score_request(sample_weight=False),
            params={"sample_weight": WEIGHTS},
            return_estimator=True,
        )
    part = BinaryRelevance(LR).fit(X[rows], Y[rows], sample_weight=WEIGHTS[rows])
    np.testing.assert_array_equal(result["estimator"][0].predict_proba(X), part.predict_proba(X))


def test_an_estimator_without_weights_has_no_argument_for_them() -> None:
    with pytest.raises(TypeError):
        MLkNN().fit(X, Y, sample_weight=WEIGHTS)
