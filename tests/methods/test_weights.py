"""Weights of rows and of label values: scikit-learn's semantics in every estimator that takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import has_fit_parameter

from helpers.multilabel_checks import make_data
from multilab import methods
from multilab.methods import (
    CDE,
    EBR,
    ECC,
    ELM,
    EPS,
    ERFPCT,
    MLS,
    MLWSE,
    RELM,
    RFPCT,
    AdaBoostMH,
    BinaryRelevance,
    ClassifierChain,
    ElasticNetKernelELM,
    KernelELM,
    LabelPowerset,
    MLkNN,
    NystroemKernelELM,
    PrunedSets,
    RAkEL,
    RAkELd,
    StackedMLWSE,
)
from multilab.methods._weights import Weights
from multilab.methods.base import MethodError
from multilab.methods.kernels import resolve_gamma

LR = LogisticRegression(tol=1e-10, max_iter=2000)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
# Equal to rows that are repeated; the others draw row numbers or count rows.
EXACT = [
    BinaryRelevance(LR),
    BinaryRelevance(SVC(gamma="scale", tol=1e-9)),
    BinaryRelevance(LR, label_weight="balanced"),
    ClassifierChain(LR, order=[2, 0, 3, 1]),
    ClassifierChain(SVC(kernel="linear", tol=1e-9), label_weight=[1.0, 2.0, 0.5, 3.0]),
    LabelPowerset(LR),
    PrunedSets(LR, p=2),
    RAkEL(LR, random_state=0),
    RAkELd(LR, random_state=0),
    CDE(LR, n_candidates=20, random_state=0),
    AdaBoostMH(5),
    AdaBoostMH(5, algorithm="adaboost_m1", label_weight="balanced"),
    ELM(6, random_state=0),
    RELM(6, random_state=0),
    RELM(90, random_state=0, label_weight="balanced"),
    KernelELM(C=3.0, gamma="median"),
    KernelELM(kernel="sigmoid", gamma="scale", label_weight=[[1, 2], [2, 1], [1, 1], [0.5, 3]]),
    NystroemKernelELM(1000, label_weight="balanced", random_state=0),
    MLWSE(alpha=0.5, tol=1e-10),
    MLWSE("l21", alpha=0.5, lam=0.3, loss_scale="mean", fit_intercept=True, tol=1e-10),
    MLWSE(alpha=0.5, beta=0.0, label_weight="balanced", tol=1e-10),
]
DRAWING = [
    EBR(TREE, 3, random_state=0),
    ECC(TREE, 3, random_state=0, label_weight="balanced"),
    EPS(TREE, 3, random_state=0),
    MLS(TREE, cv=3, random_state=0, label_weight="balanced"),
    RFPCT(3, random_state=0),
    ERFPCT(3, random_state=0),
    StackedMLWSE([("br", BinaryRelevance(TREE))], cv=3, random_state=0),
    StackedMLWSE([("br", BinaryRelevance(TREE))], cv="halves", random_state=0),
    ElasticNetKernelELM(lam=0.5, alpha=0.5, tol=1e-10),
    ElasticNetKernelELM(lam=0.5, alpha=0.5, fit_intercept=True, loss_scale="mean", tol=1e-10),
    BinaryRelevance(SVC(gamma=0.5), calibration="sigmoid"),
    LabelPowerset(SVC(gamma=0.5), calibration="sigmoid"),
]


def scores_of(model: Any, X: Any) -> np.ndarray:
    return model.predict_with_scores(X)[0]


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, Y, X_test = make_data(n=40)
    return X, Y, X_test


def test_all_estimators_that_take_weights_are_tested() -> None:
    classes = [
        c for c in methods.all_estimators() if c.__module__.startswith("multilab.methods")
    ]  # others: tests/decision
    takes = {c for c in classes if has_fit_parameter(c, "sample_weight")}
    assert takes == {type(model) for model in [*EXACT, *DRAWING]}


@pytest.mark.parametrize("model", EXACT, ids=repr)
def test_a_weight_is_a_number_of_equal_rows(model: Any) -> None:
    X, Y, X_test = data()
    weight = np.random.default_rng(3).integers(0, 4, size=len(X))
    weighted = clone(model).fit(X, Y, sample_weight=weight)
    repeated = clone(model).fit(X.repeat(weight, axis=0), Y.repeat(weight, axis=0))
    np.testing.assert_allclose(scores_of(weighted, X_test), scores_of(repeated, X_test), rtol=0, atol=1e-5)


@pytest.mark.parametrize("model", [*EXACT, *DRAWING], ids=repr)
def test_a_row_of_weight_zero_is_absent_and_weight_one_is_none(model: Any) -> None:
    X, Y, X_test = data()
    kept = np.random.default_rng(4).random(len(X)) < 0.8
    weighted = clone(model).fit(X, Y, sample_weight=kept.astype(float))
    plain = clone(model).fit(X[kept], Y[kept])
    np.testing.assert_allclose(scores_of(weighted, X_test), scores_of(plain, X_test), rtol=0, atol=1e-7)


@pytest.mark.parametrize("model", [*EXACT, *DRAWING], ids=repr)
def test_weights_change_the_result(model: Any) -> None:
    X, Y, X_test = data()
    weight = np.where(Y[:, 0] == 1, 5.0, 0.2)
    weighted = scores_of(clone(model).fit(X, Y, sample_weight=weight), X_test)
    assert np.abs(weighted - scores_of(clone(model).fit(X, Y), X_test)).max() > 1e-3


@pytest.mark.parametrize(
    "model",
    [
        BinaryRelevance(LR),
        BinaryRelevance(SVC(gamma=0.5), calibration="sigmoid"),
        ELM(5, random_state=0),
        RELM(random_state=0),
        KernelELM(),
        NystroemKernelELM(20, random_state=0),
        MLWSE(alpha=0.3, beta=0.0, tol=1e-14, kkt_tol=1e-12),
    ],
    ids=repr,
)
def test_label_weights_are_the_sample_weights_of_each_label(model: Any) -> None:
    X, Y, X_test = data()
    rows = np.random.default_rng(5).uniform(0.5, 2.0, size=len(X))
    pairs = np.array([[1.0, 3.0], [0.5, 0.5], [2.0, 1.0], [1.0, 9.0]])
    together = scores_of(clone(model).set_params(label_weight=pairs).fit(X, Y, sample_weight=rows), X_test)
    for label, (zero, one) in enumerate(pairs):
        weight = rows * np.where(Y[:, label] == 1, one, zero)
        alone = scores_of(clone(model).fit(X, Y[:, [label]], sample_weight=weight), X_test)[:, 0]
        np.testing.assert_allclose(together[:, label], alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [BinaryRelevance, ClassifierChain])
def test_balanced_is_class_weight_of_the_base_classifier(kind: Any) -> None:
    X, Y, X_test = data()
    Y[:30, 1] = 0
    ours = kind(LR, label_weight="balanced").fit(X, Y)
    theirs = kind(clone(LR).set_params(class_weight="balanced")).fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X_test), theirs.predict_proba(X_test), rtol=0, atol=1e-6)
    values = kind(LR, label_weight=[1, 2, 3, 4]).fit(X, Y).predict_proba(X_test)
    pairs = kind(LR, label_weight=[[1, 1], [1, 2], [1, 3], [1, 4]]).fit(X, Y).predict_proba(X_test)
    np.testing.assert_array_equal(values, pairs)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 10)), min_size=2, max_size=30))
def test_balanced_values_have_equal_total_weight(rows: list[tuple[bool, float]]) -> None:
    y, weight = np.array([int(v) for v, _ in rows]), np.array([w for _, w in rows])
    balanced = Weights.of(weight, "balanced", 1).of_label(0, y)
    assert balanced is not None
    present = np.unique(y)
    for value in present:
        assert balanced[y == value].sum() == pytest.approx(weight.sum() / len(present))
    unweighted = Weights.of(None, "balanced", 1).of_label(0, y)
    expected = dict(zip(present, compute_class_weight("balanced", classes=present, y=y), strict=True))
    np.testing.assert_allclose(unweighted, [expected[v] for v in y])


def test_boosting_starts_at_the_product_of_both_weights() -> None:
    X, Y, X_test = data()
    Y = Y[:, :1]
    balanced = compute_class_weight("balanced", classes=np.array([0, 1]), y=Y[:, 0])[Y[:, 0]]
    for algorithm in ("mh", "adaboost_m1"):
        by_label = AdaBoostMH(6, algorithm, label_weight="balanced").fit(X, Y)
        by_row = AdaBoostMH(6, algorithm).fit(X, Y, sample_weight=balanced)
        np.testing.assert_allclose(by_label.predict_proba(X_test), by_row.predict_proba(X_test), atol=1e-9)


def test_calibration_is_weighted_like_scikit_learn_s() -> None:
    X, Y, X_test = data()
    weight = np.random.default_rng(6).uniform(0.5, 3.0, size=len(X))
    ours = BinaryRelevance(SVC(gamma=0.5, tol=1e-9), calibration="sigmoid").fit(X, Y, sample_weight=weight)
    for label, y in enumerate(Y.T):
        theirs = CalibratedClassifierCV(SVC(gamma=0.5, tol=1e-9), ensemble=False, cv=5).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(
            ours.predict_proba(X_test)[:, label], theirs.predict_proba(X_test)[:, 1], rtol=0, atol=1e-4
        )


@pytest.mark.parametrize("calibration", [None, "sigmoid"])
def test_the_last_step_of_a_pipeline_gets_the_weights(calibration: Any) -> None:
    X, Y, X_test = data()
    weight = np.random.default_rng(7).uniform(0.5, 3.0, size=len(X))
    scaled = StandardScaler().fit(X)
    model = BinaryRelevance(make_pipeline(StandardScaler(), clone(LR)), calibration=calibration)
    given = scores_of(model.fit(X, Y, sample_weight=weight), X_test)
    if calibration is None:
        direct = BinaryRelevance(LR).fit(scaled.transform(X), Y, sample_weight=weight)
        np.testing.assert_allclose(given, scores_of(direct, scaled.transform(X_test)), rtol=0, atol=1e-8)
    assert np.abs(given - scores_of(clone(model).fit(X, Y), X_test)).max() > 1e-3


@pytest.mark.parametrize(
    "model",
    [
        BinaryRelevance(KNeighborsClassifier()),
        BinaryRelevance(make_pipeline(StandardScaler(), KNeighborsClassifier()), label_weight="balanced"),
        ClassifierChain(KNeighborsClassifier()),
        LabelPowerset(KNeighborsClassifier()),
        PrunedSets(KNeighborsClassifier()),
        EBR(KNeighborsClassifier()),
        RAkEL(KNeighborsClassifier()),
        CDE(KNeighborsClassifier(), n_candidates=10),
        MLS(KNeighborsClassifier()),
        StackedMLWSE([("mlknn", MLkNN())]),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_base_that_takes_no_weights_is_refused(model: Any) -> None:
    X, Y, _ = data()
    with pytest.raises(MethodError, match="takes no sample_weight"):
        clone(model).fit(X, Y, sample_weight=np.ones(len(X)))
    assert clone(model).set_params(**({"label_weight": None} if hasattr(model, "label_weight") else {})).fit(X, Y)


def test_the_second_level_of_mls_is_asked_for_weights_before_the_first_is_fitted() -> None:
    X, Y, _ = data()
    model = MLS(LR, meta_estimator=KNeighborsClassifier())
    with pytest.raises(MethodError, match=r"KNeighborsClassifier\.fit takes no sample_weight; choose another base"):
        model.fit(X, Y, sample_weight=np.ones(len(X)))
    assert not hasattr(model, "base_scores_")


@pytest.mark.parametrize(
    ("label_weight", "message"),
    [("even", "'even'"), ([1, 2], r"shape \(2,\)"), ([1, 1, 1, -2], "holds -2"), ([1, 1, 1, np.nan], "holds nan")],
)
def test_wrong_label_weights_are_explained(label_weight: Any, message: str) -> None:
    X, Y, _ = data()
    for model in (BinaryRelevance(LR), KernelELM(), AdaBoostMH()):
        with pytest.raises(MethodError, match=message):
            model.set_params(label_weight=label_weight).fit(X, Y)


@pytest.mark.parametrize("weight", [np.ones(7), np.ones((40, 2)), -np.ones(40), np.zeros(40), np.full(40, np.nan)])
def test_wrong_sample_weights_are_explained(weight: np.ndarray) -> None:
    X, Y, _ = data()
    with pytest.raises(ValueError, match=r"(?i)weight"):
        BinaryRelevance(LR).fit(X, Y, sample_weight=weight)


def test_weights_that_an_estimator_cannot_use_are_refused() -> None:
    X, Y, _ = data()
    with pytest.raises(MethodError, match="ridge='frobenius'"):
        ElasticNetKernelELM(ridge="rkhs").fit(X, Y, sample_weight=np.ones(len(X)))
    with pytest.raises(MethodError, match="beta=0"):
        MLWSE(label_weight="balanced").fit(X, Y)


@pytest.mark.parametrize("base", [LR, SVC(gamma=0.5)], ids=lambda b: type(b).__name__)
@pytest.mark.parametrize("calibration", [None, "sigmoid"])
def test_weights_of_partially_observed_labels_are_those_of_the_observed_rows(base: Any, calibration: Any) -> None:
    X, Y, X_test = data()
    rng = np.random.default_rng(11)
    mask, rows = rng.random(Y.shape) < 0.7, rng.uniform(0.5, 2.0, size=len(X))
    model = BinaryRelevance(base, calibration=calibration, label_weight="balanced")
    together = scores_of(clone(model).fit(X, Y, sample_weight=rows, y_mask=mask), X_test)
    for label, seen in enumerate(mask.T):
        alone = clone(model).fit(X[seen], Y[seen][:, [label]], sample_weight=rows[seen])
        np.testing.assert_allclose(together[:, label], scores_of(alone, X_test)[:, 0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("gamma", ["scale", "median"])
def test_kernel_widths_count_rows_by_weight(gamma: Any) -> None:
    X = np.random.default_rng(8).normal(size=(15, 3))
    weight = np.random.default_rng(9).integers(1, 5, size=15)
    expected = resolve_gamma(gamma, X.repeat(weight, axis=0))
    assert resolve_gamma(gamma, X, weight.astype(float)) == pytest.approx(expected, rel=1e-12)
    assert resolve_gamma(gamma, X, np.ones(15)) == pytest.approx(resolve_gamma(gamma, X), rel=1e-12)


def test_metadata_routing_passes_the_weights_of_the_training_rows() -> None:
    X, Y, _ = data()
    weight = np.random.default_rng(10).uniform(0.1, 5.0, size=len(X))
    rows = np.arange(20)
    folds = [(rows, np.setdiff1d(np.arange(len(X)), rows))]
    bases = [LR, make_pipeline(StandardScaler(), clone(LR))]
    with config_context(enable_metadata_routing=True):
        scorer = get_scorer("f1_macro").set_score_request(sample_weight=False)
        for base in bases:
            model = BinaryRelevance(base, calibration="sigmoid").set_fit_request(sample_weight=True)
            result = cross_validate(
                model, X, Y, cv=folds, scoring=scorer, params={"sample_weight": weight}, return_estimator=True
            )
            direct = BinaryRelevance(base, calibration="sigmoid").fit(X[rows], Y[rows], sample_weight=weight[rows])
            np.testing.assert_array_equal(result["estimator"][0].predict_proba(X), direct.predict_proba(X))
        search = GridSearchCV(
            KernelELM().set_fit_request(sample_weight=True), {"C": [1.0, 10.0]}, cv=folds, scoring=scorer
        ).fit(X, Y, sample_weight=weight)
        best = KernelELM(**search.best_params_).fit(X, Y, sample_weight=weight)
        np.testing.assert_array_equal(search.best_estimator_.decision_function(X), best.decision_function(X))
