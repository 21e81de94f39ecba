"""Binary relevance, classifier chains and label powerset against scikit-learn's plain classifiers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from helpers.batches import batches_of, make_rows
from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.transformation._binary import fit_sigmoid
from multilab.methods.transformation._label_sets import one_vs_rest_scores
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.transformation.classifier_chain import ClassifierChain
from multilab.methods.transformation.label_powerset import LabelPowerset

# Fixed widths, so that a chain's added columns do not change "scale"; coef0 makes poly and sigmoid proper.
MACHINES = [
    SVC(gamma=0.7),
    SVC(kernel="linear", C=0.5),
    SVC(kernel="poly", degree=2, gamma=0.5, coef0=1.0),
    SVC(kernel="sigmoid", gamma=0.05, coef0=0.1),
    SVC(gamma=0.7, class_weight="balanced"),
]
MACHINE_IDS = ["rbf", "linear", "poly", "sigmoid", "balanced"]


def chain_written_out(make: Any, X: np.ndarray, Y: np.ndarray, X_test: np.ndarray, order: Any) -> np.ndarray:
    """Return a chain's scores from plain classifiers on [X, labels so far]; ``make`` fits a link."""
    known, guessed = X, X_test
    scores = np.empty((len(X_test), Y.shape[1]))
    for label in order:
        score, threshold = make(known, Y[:, label])
        scores[:, label] = score(guessed)
        known = np.column_stack([known, Y[:, label]])
        guessed = np.column_stack([guessed, scores[:, label] >= threshold])
    return scores


@pytest.mark.parametrize("machine", MACHINES, ids=MACHINE_IDS)
def test_shared_kernel_gives_the_margins_of_plain_machines(machine: SVC) -> None:
    X, Y, X_test = make_data(seed=3)
    ours = BinaryRelevance(machine).fit(X, Y).decision_function(X_test)
    plain = np.column_stack([SVC(**machine.get_params()).fit(X, y).decision_function(X_test) for y in Y.T])
    np.testing.assert_allclose(ours, plain, rtol=0, atol=1e-8)


def test_gamma_scale_and_auto_are_those_of_the_features() -> None:
    X, Y, X_test = make_data(seed=4)
    for gamma, number in (("scale", 1 / (X.shape[1] * X.var())), ("auto", 1 / X.shape[1])):
        for given, reference in ((X, X_test), (sp.csr_array(X), sp.csr_array(X_test))):
            ours = ClassifierChain(SVC(gamma=gamma)).fit(given, Y).decision_function(reference)
            fixed = ClassifierChain(SVC(gamma=number)).fit(X, Y).decision_function(X_test)
            np.testing.assert_allclose(ours, fixed, rtol=0, atol=1e-8)


@pytest.mark.parametrize("order", [None, [2, 0, 3, 1]])
@pytest.mark.parametrize("machine", MACHINES, ids=MACHINE_IDS)
def test_chain_on_a_kernel_is_plain_machines_on_features_and_labels(machine: SVC, order: Any) -> None:
    X, Y, X_test = make_data(seed=5)

    def make(known: np.ndarray, y: np.ndarray) -> Any:
        return SVC(**machine.get_params()).fit(known, y).decision_function, 0.0

    expected = chain_written_out(make, X, Y, X_test, order or [0, 1, 2, 3])
    scores, decisions = ClassifierChain(machine, order=order).fit(X, Y).predict_with_scores(X_test)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(decisions, expected >= 0)


def test_chain_predicts_with_its_own_decisions() -> None:
    # the second label equals the first, the third is its contrary: only the chain can tell them
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 1))
    first = (X[:, 0] > 0).astype(int)
    first[:12] = 1 - first[:12]  # noise, so that features alone are not enough in training
    Y = np.column_stack([first, first, 1 - first])
    model = ClassifierChain(DecisionTreeClassifier(max_depth=1)).fit(X, Y)
    predicted = model.predict(X)
    assert (predicted[:, 0] != first).any()
    np.testing.assert_array_equal(predicted[:, 1], predicted[:, 0])
    np.testing.assert_array_equal(predicted[:, 2], 1 - predicted[:, 0])


def test_chain_of_calibrated_machines_passes_calibrated_decisions() -> None:
    X, Y, X_test = make_data(seed=6)

    def make(known: np.ndarray, y: np.ndarray) -> Any:
        model = CalibratedClassifierCV(SVC(gamma=0.7), ensemble=False, cv=5).fit(known, y)
        return (lambda rows: model.predict_proba(rows)[:, 1]), 0.5

    expected = chain_written_out(make, X, Y, X_test, [0, 1, 2, 3])
    scores, decisions = ClassifierChain(SVC(gamma=0.7), calibration="sigmoid").fit(X, Y).predict_with_scores(X_test)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)  # where L-BFGS stops
    np.testing.assert_array_equal(decisions, expected >= 0.5)


def test_chain_order() -> None:
    X, Y, X_test = make_data()
    random = ClassifierChain(order="random", random_state=3).fit(X, Y)
    assert sorted(random.order_) == [0, 1, 2, 3]
    assert {tuple(ClassifierChain(order="random", random_state=s).fit(X, Y).order_) for s in range(8)} != {
        tuple(random.order_)
    }
    given = ClassifierChain(order=random.order_.tolist()).fit(X, Y)
    np.testing.assert_array_equal(given.decision_function(X_test), random.decision_function(X_test))
    moved = ClassifierChain(order=[0, 1, 2, 3]).fit(X, Y[:, random.order_])
    np.testing.assert_allclose(
        moved.decision_function(X_test), given.decision_function(X_test)[:, random.order_], rtol=0, atol=1e-8
    )
    for wrong in ([0, 1, 2], [0, 1, 2, 2], "best"):
        with pytest.raises(MethodError, match="order="):
            ClassifierChain(order=wrong).fit(X, Y)


@pytest.mark.parametrize("base", [SVC(gamma=0.7), SVC(gamma=0.7, class_weight="balanced"), LinearSVC(C=0.1)])
def test_sigmoid_calibration_is_that_of_scikit_learn(base: Any) -> None:
    X, Y, X_test = make_data(seed=7)
    Y[:, 3] = 0
    Y[[5, 20, 41], 3] = 1  # three folds
    ours = BinaryRelevance(base, calibration="sigmoid", random_state=0).fit(X, Y).predict_proba(X_test)
    for label, folds in enumerate((5, 5, 5, 3)):
        plain = CalibratedClassifierCV(base, ensemble=False, cv=folds).fit(X, Y[:, label])
        expected = plain.predict_proba(X_test)[:, 1]
        np.testing.assert_allclose(ours[:, label], expected, rtol=0, atol=1e-6)


def test_sigmoid_is_the_maximum_of_platts_likelihood() -> None:
    rng = np.random.default_rng(8)
    for scale in (1e-3, 1.0, 1e3):
        y = (rng.random(300) < 0.2).astype(int)
        margins = scale * (y + rng.normal(size=300))
        ones, zeros = y.sum(), (1 - y).sum()
        target = np.where(y == 1, (ones + 1) / (ones + 2), 1 / (zeros + 2))
        residual = fit_sigmoid(margins, y)(margins) - target
        # the likelihood is strictly concave: where both derivatives vanish is its maximum
        assert abs(residual.sum()) < 1e-7
        assert abs(residual @ margins) < 1e-7 * scale
    flat = fit_sigmoid(np.zeros(10), np.arange(10) < 3)
    assert flat(np.zeros(1))[0] == pytest.approx((3 * 4 / 5 + 7 / 9) / 10, abs=1e-9)


def test_labels_with_too_few_of_a_class_are_constant() -> None:
    X, Y, X_test = make_data()
    Y[:] = 0
    Y[:, 1] = 1
    Y[7, 2] = 1  # one positive
    Y[:, 3] = 1
    Y[7, 3] = 0  # one negative
    for method in (BinaryRelevance, ClassifierChain, LabelPowerset):
        scores, decisions = method(SVC(), calibration="sigmoid").fit(X, Y).predict_with_scores(X_test)
        np.testing.assert_array_equal(scores, np.tile([0.0, 1.0, 0.0, 1.0], (len(X_test), 1)))
        np.testing.assert_array_equal(decisions, scores)
    margins = BinaryRelevance(SVC()).fit(X, Y).decision_function(X_test)
    np.testing.assert_array_equal(margins[:, :2], np.tile([-1.0, 1.0], (len(X_test), 1)))
    assert len(np.unique(margins[:, 2])) > 1  # without calibration one positive is enough


@pytest.mark.parametrize("method", [BinaryRelevance, ClassifierChain, LabelPowerset])
@pytest.mark.parametrize(
    "base",
    [DecisionTreeClassifier(max_depth=3), KNeighborsClassifier(3), LogisticRegression(), RidgeClassifier()],
)
def test_any_classifier_serves(method: Any, base: Any) -> None:
    X, Y, X_test = make_data(seed=9)
    for calibration in (None, "none", "sigmoid"):
        model = method(base, calibration=calibration, random_state=0).fit(X, Y)
        scores, decisions = model.predict_with_scores(X_test)
        kind = "decision_function"
        if calibration == "sigmoid" or hasattr(base, "predict_proba") or method is LabelPowerset:
            kind = "predict_proba"
            assert scores.min() >= 0
            assert scores.max() <= 1
        np.testing.assert_array_equal(getattr(model, kind)(X_test), scores)
        assert not hasattr(model, {"predict_proba": "decision_function"}.get(kind, "predict_proba"))
        np.testing.assert_array_equal(model.predict(X_test), decisions)
    assert not hasattr(base, "classes_")  # a clone was fitted


@pytest.mark.parametrize("method", [BinaryRelevance, ClassifierChain, LabelPowerset])
def test_libsvm_probabilities(method: Any) -> None:
    X, Y, X_test = make_data(seed=10, n=90)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the announcement of its removal is not passed on
        first = method(SVC(gamma=0.7), calibration="libsvm").fit(X, Y).predict_proba(X_test)
        again = method(SVC(gamma=0.7), calibration="libsvm").fit(X, Y).predict_proba(X_test)
    np.testing.assert_array_equal(first, again)
    assert ((first > 0) & (first < 1)).all()
    if method is BinaryRelevance:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            plain = SVC(gamma=0.7, probability=True, random_state=0).fit(X, Y[:, 0]).predict_proba(X_test)[:, 1]
        # libsvm seeds its folds from the number given; ours is drawn from it, so only the level can agree
        assert np.abs(first[:, 0] - plain).mean() < 0.1


def test_powerset_marginals_are_sums_over_label_sets() -> None:
    X, Y, X_test = make_data(seed=11)
    model = LabelPowerset(SVC(gamma=0.7)).fit(X, Y)
    assert {tuple(s) for s in model.label_sets_} == {tuple(y) for y in Y}
    np.testing.assert_array_equal(model.label_sets_[0], Y[0])
    classes = np.array([np.flatnonzero((model.label_sets_ == y).all(axis=1))[0] for y in Y])
    plain = SVC(gamma=0.7, decision_function_shape="ovr").fit(X, classes).decision_function(X_test)
    weights = np.exp(plain) / np.exp(plain).sum(axis=1, keepdims=True)
    scores, decisions = model.predict_with_scores(X_test)
    np.testing.assert_allclose(scores, weights @ model.label_sets_, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(decisions, model.label_sets_[plain.argmax(axis=1)])


def test_powerset_calibration_uses_unseen_rows() -> None:
    # labels are noise and each row has its own label set: in-sample sums would look perfect
    rng = np.random.default_rng(12)
    X, Y = rng.normal(size=(120, 3)), (rng.random((120, 6)) < 0.5).astype(int)
    model = LabelPowerset(DecisionTreeClassifier(random_state=0), calibration="sigmoid").fit(X, Y)
    in_sample = model.predict_proba(X)
    assert LabelPowerset(DecisionTreeClassifier(random_state=0)).fit(X, Y).score(X, Y) == 1.0
    # the sums of unseen rows are 0 or 1 whatever the label, so a sigmoid fitted on them is nearly flat at 1/2
    assert np.abs(in_sample - 0.5).max() < 0.25


@pytest.mark.parametrize("labels", [2, 3, 9])
def test_one_vs_rest_scores_are_those_of_scikit_learn(labels: int) -> None:
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(90, 4)), rng.integers(labels, size=90)
    ours = one_vs_rest_scores(SVC(decision_function_shape="ovo").fit(X, y), X[:40])
    plain = SVC(decision_function_shape="ovr").fit(X, y).decision_function(X[:40])
    if labels == 2:
        assert (ours[:, 1] > ours[:, 0]).tolist() == (plain > 0).tolist()
    else:
        np.testing.assert_allclose(ours, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", [BinaryRelevance, ClassifierChain, LabelPowerset])
def test_wrong_arguments(method: Any) -> None:
    X, Y, _ = make_data()
    with pytest.raises(MethodError, match="calibration='platt'"):
        method(calibration="platt").fit(X, Y)
    with pytest.raises(MethodError, match="needs an SVC"):
        method(LogisticRegression(), calibration="libsvm").fit(X, Y)


def test_binary_relevance_on_batches_is_partial_fit_of_its_base() -> None:
    X, Y = make_rows()
    Y[:, 3] = 1
    base = SGDClassifier(loss="log_loss", random_state=1, average=True)
    batches = batches_of(X, Y)
    model, called = BinaryRelevance(base).fit_batches(batches, epochs=2), BinaryRelevance(base)
    for rows, labels in [*batches] * 2:
        called.partial_fit(rows, labels)
    np.testing.assert_array_equal(called.predict_proba(X), model.predict_proba(X))
    for j in range(3):
        single = clone(base)
        for rows, labels in [*batches] * 2:
            single.partial_fit(rows, labels[:, j], classes=[0, 1])
        np.testing.assert_array_equal(model.predict_proba(X)[:, j], single.predict_proba(X)[:, 1])
    assert (model.predict_proba(X)[:, 3] == 1.0).all()
    with pytest.raises(MethodError, match="epochs=0"):
        model.fit_batches(batches, epochs=0)
    with pytest.raises(MethodError, match="several passes"):
        model.fit_batches(iter(batches), epochs=2)
    with pytest.raises(MethodError, match="LogisticRegression has no partial_fit"):
        BinaryRelevance(LogisticRegression()).fit_batches(batches)
    with pytest.raises(MethodError, match="needs all rows for its calibration"):
        BinaryRelevance(SGDClassifier(), calibration="sigmoid").fit_batches(batches)


def test_seed_reaches_the_base_and_not_its_owner() -> None:
    X, Y, X_test = make_data()
    base = DecisionTreeClassifier(max_features=1)
    first, same, other = (BinaryRelevance(base, random_state=s).fit(X, Y).predict_proba(X_test) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
    assert base.random_state is None
