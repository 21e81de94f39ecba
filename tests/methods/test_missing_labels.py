"""Partially observed labels: every estimator learns from the observed ones alone, or refuses in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from helpers.multilabel_checks import make_data
from methods.test_estimators import quick_instances
from multilab.methods import EBR, ECC, MDDM, MLRBF, BinaryRelevance, ClassifierChain, LSKernelMDDM, MLkNN, MLkNNReleased
from multilab.methods._observed import centred
from multilab.methods.base import MethodError, MultiLabelClassifier, MultiLabelTransformer, check_labels
from multilab.methods.ensembles._members import draw_rows

ESTIMATORS = {n: e for n, e in quick_instances().items() if isinstance(e, MultiLabelClassifier | MultiLabelTransformer)}
ACCEPTING = {name: e for name, e in ESTIMATORS.items() if e._accepts_missing_labels}


def hidden_data(share: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X, float Y with NaN, the mask of the observed labels, and X_test."""
    X, Y, X_test = make_data()
    observed = np.random.default_rng(seed).uniform(size=Y.shape) >= share
    return X, np.where(observed, Y, np.nan), observed, X_test


def fitted(estimator: Any, X: Any, Y: Any, **arguments: Any) -> Any:
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model.fit(X, Y, **arguments)


def output(model: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(model.transform(X) if hasattr(model, "transform") else model.predict_with_scores(X)[0])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_learns_from_observed_labels_or_refuses(name: str) -> None:
    X, Y, _, X_test = hidden_data()
    if name not in ACCEPTING:
        with pytest.raises(MethodError, match="cannot learn from partially observed labels"):
            fitted(ESTIMATORS[name], X, Y)
        return
    result = output(fitted(ESTIMATORS[name], X, Y), X_test)
    assert np.isfinite(result).all()
    assert np.ptp(result, axis=0).any()


@pytest.mark.parametrize("name", ACCEPTING)
def test_hidden_labels_do_not_matter(name: str) -> None:
    X, Y, observed, X_test = hidden_data()
    expected = output(fitted(ESTIMATORS[name], X, Y), X_test)
    truth = make_data()[1]
    for filler in (truth, 1 - truth):
        filled = np.where(observed, truth, filler)
        for y, mask in ((filled, observed), (sp.csr_array(filled), sp.csr_array(observed))):
            np.testing.assert_array_equal(output(fitted(ESTIMATORS[name], X, y, y_mask=mask), X_test), expected)
    stored = np.where(observed, truth, -1).astype(np.int8)
    np.testing.assert_array_equal(output(fitted(ESTIMATORS[name], X, stored), X_test), expected)


@pytest.mark.parametrize("name", ACCEPTING)
def test_a_mask_that_hides_nothing_changes_nothing(name: str) -> None:
    X, Y, X_test = make_data()
    expected = output(fitted(ESTIMATORS[name], X, Y), X_test)
    np.testing.assert_array_equal(
        output(fitted(ESTIMATORS[name], X, Y, y_mask=np.ones(Y.shape, dtype=bool)), X_test), expected
    )
    np.testing.assert_array_equal(output(fitted(ESTIMATORS[name], X, Y.astype(float)), X_test), expected)


@pytest.mark.parametrize("name", ACCEPTING)
def test_a_label_observed_nowhere_counts_as_never_set(name: str) -> None:
    X, Y, _, X_test = hidden_data()
    Y[:, 1] = np.nan
    never = Y.copy()
    never[:, 1] = 0
    np.testing.assert_array_equal(
        output(fitted(ESTIMATORS[name], X, Y), X_test), output(fitted(ESTIMATORS[name], X, never), X_test)
    )


BASES = [
    (DecisionTreeClassifier(max_depth=3, random_state=0), None),
    (LogisticRegression(), "sigmoid"),
    (SVC(gamma=1.0), None),
    (SVC(gamma=1.0), "sigmoid"),
    (SVC(gamma=1.0), "libsvm"),
]


@pytest.mark.parametrize(("base", "calibration"), BASES)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_binary_relevance_equals_the_fits_on_observed_rows(base: Any, calibration: Any, container: Any) -> None:
    X, Y, observed, X_test = hidden_data()
    scores = fitted(BinaryRelevance(base, calibration=calibration), container(X), Y).predict_with_scores(X_test)[0]
    for label, rows in enumerate(observed.T):
        alone = fitted(BinaryRelevance(base, calibration=calibration), container(X[rows]), Y[rows][:, [label]])
        np.testing.assert_allclose(scores[:, [label]], alone.predict_with_scores(X_test)[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("base", [DecisionTreeClassifier(max_depth=3, random_state=0), SVC(gamma=1.0)])
def test_a_chain_completes_its_features_by_its_own_decisions(base: Any) -> None:
    X, Y, observed, X_test = hidden_data()
    scores = fitted(ClassifierChain(base), X, Y).predict_with_scores(X_test)[0]
    features, tests = X, X_test
    for label, rows in enumerate(observed.T):
        link = fitted(BinaryRelevance(base), features[rows], Y[rows][:, [label]])
        expected, decisions = link.predict_with_scores(tests)
        np.testing.assert_allclose(scores[:, [label]], expected, rtol=1e-12, atol=1e-12)
        complete = np.where(rows, Y[:, label], link.predict(features)[:, 0])
        features, tests = np.column_stack([features, complete]), np.column_stack([tests, decisions])


@pytest.mark.parametrize("method", [MLkNN(k=5), MLkNN(k=5, exclude_self=False, scale="minmax"), MLkNNReleased(k=5)])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_neighbours_equal_the_fits_on_observed_rows(method: Any, container: Any) -> None:
    X, Y, observed, X_test = hidden_data()
    X[:, 0] = np.arange(len(X)) % 2  # the same range in all subsets of rows
    X[:, 1:] = (X[:, 1:] * 4).round() / 4
    method = clone(method).set_params(scale=None) if container is sp.csr_array else method
    model = fitted(method, container(X), Y)
    scores = output(model, X_test)
    for label, rows in enumerate(observed.T):
        assert np.ptp(X[rows], axis=0).tolist() == np.ptp(X, axis=0).tolist()
        alone = fitted(method, container(X[rows]), Y[rows][:, [label]])
        np.testing.assert_array_equal(scores[:, [label]], output(alone, X_test))
        np.testing.assert_array_equal(model.posterior_[[label]], alone.posterior_)


def test_neighbours_of_a_label_that_few_rows_observe() -> None:
    X, Y, _, X_test = hidden_data()
    Y[3:, 0] = Y[1:, 1] = np.nan
    Y[:3, 0] = [0, 1, 1]
    Y[0, 1] = 1
    model = fitted(MLkNN(k=5), X, Y)
    alone = fitted(MLkNN(k=2), X[:3], Y[:3, [0]])
    np.testing.assert_array_equal(output(model, X_test)[:, [0]], output(alone, X_test))
    np.testing.assert_array_equal(output(model, X_test)[:, 1], np.full(len(X_test), 2 / 3))  # the smoothed prior


def test_radial_basis_functions_use_observed_rows() -> None:
    X, Y, observed, _ = hidden_data()
    model = fitted(MLRBF(ratio=0.1), X, Y)
    assert len(model.centres_) == sum(int(np.ceil(0.1 * n)) for n in np.nansum(Y, axis=0))
    basis = model._basis(X)
    for label, rows in enumerate(observed.T):
        expected = np.linalg.lstsq(basis[rows], 2 * Y[rows, label] - 1, rcond=1e-8)[0]
        np.testing.assert_allclose(model.coef_[:, model.column_[label]], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("ensemble", [EBR, ECC])
def test_samples_without_an_observed_row_of_a_label_do_not_assign_it(ensemble: Any) -> None:
    X, Y, _, X_test = hidden_data()
    Y[:, 2] = np.nan
    Y[0, 2] = 1
    model = fitted(ensemble(n_estimators=20), X, Y)
    shares = output(model, X_test)[:, 2]
    with_row_0 = [draw_rows(seed, len(X), 1.0, True)[0] == 0 for seed in _seeds(20)]
    assert 0 < sum(with_row_0) < 20
    np.testing.assert_allclose(shares, sum(with_row_0) / 20)


def _seeds(n: int) -> list[int]:
    return check_random_state(0).randint(2**31 - 1, size=n).tolist()


def test_labels_with_unobserved_entries() -> None:
    labels = check_labels([[0.0, np.nan], [1.0, 1.0]], missing=True)
    assert labels.dtype == np.int8
    assert labels.tolist() == [[0, -1], [1, 1]]
    np.testing.assert_array_equal(check_labels(labels, missing=True), labels)
    assert check_labels([[0, 1], [1, 1]], [[1, 0], [0, 1]], missing=True).tolist() == [[0, -1], [-1, 1]]
    assert check_labels([[7, 1], [1, 0]], [[0, 1], [1, 1]], missing=True).tolist() == [[-1, 1], [1, 0]]
    absent = check_labels([[np.nan, 1], [np.nan, 0]], missing=True)
    assert absent.dtype == np.uint8
    assert absent.tolist() == [[0, 1], [0, 0]]


def test_wrong_labels_are_explained() -> None:
    with pytest.raises(MethodError, match=r"1 of the 4 labels in y are not observed"):
        check_labels([[0, np.nan], [1, 1]])
    with pytest.raises(MethodError, match="pass \\(y > 0\\)"):
        check_labels(np.array([[-1, 1], [1, 1]], dtype=np.int8), missing=True)
    with pytest.raises(MethodError, match="pass \\(y > 0\\)"):
        check_labels([[-1, np.nan], [1, 1]], missing=True)
    with pytest.raises(MethodError, match="no label of y is observed"):
        check_labels([[np.nan], [np.nan]], missing=True)
    with pytest.raises(MethodError, match=r"y_mask has shape \(2, 1\)"):
        check_labels([[0, 1], [1, 1]], [[1], [0]], missing=True)
    with pytest.raises(MethodError, match="y_mask must be True"):
        check_labels([[0, 1], [1, 1]], [[1, 2], [0, 1]], missing=True)
    with pytest.raises(ValueError, match="infinity"):
        check_labels([[0, np.inf], [1, 1]], missing=True)


def test_directions_of_observed_covariances() -> None:
    X, Y, observed, _ = hidden_data()
    columns = [X[rows].T @ (Y[rows, label] - Y[rows, label].mean()) for label, rows in enumerate(observed.T)]
    model = fitted(MDDM(variant="proj"), X, Y)
    left, singular, _ = np.linalg.svd(np.column_stack(columns), full_matrices=False)
    np.testing.assert_allclose(model.eigenvalues_, singular**2, rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(model.components_.T * left, axis=0)), 1.0, rtol=1e-9)


def test_centred_labels_sum_to_zero() -> None:
    _, Y, observed, _ = hidden_data()
    residuals = centred(check_labels(Y, missing=True))
    assert not residuals[~observed].any()
    np.testing.assert_allclose(residuals.sum(axis=0), 0.0, atol=1e-12)
    complete = check_labels(make_data()[1])
    np.testing.assert_array_equal(centred(complete), complete - complete.mean(axis=0))


def test_a_choice_by_f1_counts_observed_labels_only() -> None:
    X, Y, observed, X_test = hidden_data()
    method = LSKernelMDDM(eta=[0.01, 1.0], select_by="micro_f1", classifier=MLkNN(k=3))
    results = [
        output(fitted(method, X, np.where(observed, Y, filler), y_mask=observed), X_test) for filler in (0.0, 1.0)
    ]
    np.testing.assert_array_equal(*results)
    with pytest.raises(MethodError, match="KNeighborsClassifier cannot learn from partially observed labels"):
        fitted(method.set_params(classifier=KNeighborsClassifier(3)), X, Y)
