"""Partially observed labels: every estimator learns from the observed ones alone, or refuses in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from helpers.multilabel_checks import make_data
from methods.test_estimators import quick_instances
from multilab.decision._held_out import HeldOutClassifier
from multilab.methods import (
    EBR,
    ECC,
    ELM,
    MDDM,
    MLNB,
    MLRBF,
    MLWSE,
    RELM,
    AdaBoostMH,
    BinaryRelevance,
    ClassifierChain,
    ElasticNetKernelELM,
    KernelELM,
    LabelPowerset,
    LSKernelMDDM,
    MLkNN,
    MLkNNReleased,
    NystroemKernelELM,
    ReliefFML,
    StackedMLWSE,
)
from multilab.methods.base import MethodError, MultiLabelClassifier, MultiLabelTransformer
from multilab.methods.bayes._gaussian import HeldOut
from multilab.methods.ensembles._members import draw_rows
from multilab.methods.ensembles.cde import chi_square
from multilab.methods.labels import centred, check_labels
from multilab.methods.stacking.objective import CoupledLoss, StackingLoss, cosine_affinity, label_coupling

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


WEIGHTED = {
    name: e
    for name, e in ACCEPTING.items()
    if has_fit_parameter(e, "sample_weight") and not isinstance(e, HeldOutClassifier)  # their folds are over all rows
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_rows_of_weight_0_are_absent(name: str) -> None:
    X, Y, _, X_test = hidden_data()
    Y[:50, 1] = np.nan  # only rows without weight observe it
    weight = np.r_[np.ones(50), np.zeros(10)]
    expected = output(fitted(WEIGHTED[name], X[:50], Y[:50], sample_weight=np.ones(50)), X_test)
    np.testing.assert_array_equal(output(fitted(WEIGHTED[name], X, Y, sample_weight=weight), X_test), expected)


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


def test_gaussians_equal_the_fits_on_observed_rows() -> None:
    X, Y, observed, X_test = hidden_data()
    method = MLNB(components=None, generations=0)
    scores = output(fitted(method, X, Y), X_test)
    for label, rows in enumerate(observed.T):
        alone = output(fitted(method, X[rows], Y[rows][:, [label]]), X_test)
        np.testing.assert_allclose(scores[:, [label]], alone, rtol=1e-12, atol=1e-12)


def test_held_out_losses_count_observed_labels() -> None:
    X, Y, observed, _ = hidden_data()
    labels = check_labels(Y, missing=True)
    held_out, subsets = HeldOut(X, labels, 3, 1.0), np.eye(X.shape[1], dtype=bool)
    expected = []
    for subset in subsets:
        scores = held_out.ratios[:, :, subset].sum(axis=2) + held_out.prior
        losses = []
        for rows in np.array_split(np.arange(len(X)), 3):
            hamming = ((scores[rows] >= 0) != (labels[rows] == 1))[observed[rows]].mean()
            ranking = [
                np.mean([s_pos <= s_neg for s_pos in s[y == 1] for s_neg in s[y == 0]])
                for s, y in zip(scores[rows], labels[rows], strict=True)
                if (y == 1).any() and (y == 0).any()
            ]
            losses.append((hamming + np.mean(ranking)) / 2)
        expected.append(np.mean(losses))
    np.testing.assert_allclose(held_out.losses(subsets), expected, rtol=1e-9)


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


@pytest.mark.parametrize(
    "method",
    [
        KernelELM(C=10.0),
        KernelELM(kernel="sigmoid", gamma=0.1, C=3.0),
        KernelELM(C=10.0, label_weight="balanced"),
        ELM(n_hidden=10),
        RELM(n_hidden=10, C=10.0),
        RELM(n_hidden=100, C=10.0, label_weight="balanced"),
        ElasticNetKernelELM(lam=0.5, alpha=0.3, tol=1e-10),
        ElasticNetKernelELM(lam=0.5, alpha=0.3, tol=1e-10, fit_intercept=True, loss_scale="mean"),
    ],
    ids=repr,
)
def test_least_squares_equals_the_fits_on_observed_rows(method: Any) -> None:
    X, Y, observed, X_test = hidden_data()
    for weight in (None, np.linspace(0.5, 2.0, len(X))):
        model = clone(method).set_params(**({"random_state": 0} if hasattr(method, "random_state") else {}))
        scores = output(clone(model).fit(X, Y, sample_weight=weight), X_test)
        for label, rows in enumerate(observed.T):
            alone = model.fit(X[rows], Y[rows][:, [label]], sample_weight=None if weight is None else weight[rows])
            np.testing.assert_allclose(scores[:, [label]], output(alone, X_test), rtol=1e-7, atol=1e-7)


def test_rows_selected_for_all_labels_need_all_labels() -> None:
    X, Y, _, _ = hidden_data()
    with pytest.raises(MethodError, match="ElasticNetKernelELM cannot learn from partially observed labels"):
        fitted(ElasticNetKernelELM("l21"), X, Y)
    model = fitted(ElasticNetKernelELM(lam=0.5, alpha=0.3), X, Y)
    assert 0 <= model.dual_gap_ <= model.tol
    assert model.objective_path_.shape == (1,)
    with pytest.raises(MethodError, match="watched with complete labels only"):
        ElasticNetKernelELM(solver="cd").fit_watched(X, Y, print)


def test_the_nystroem_machine_with_all_landmarks_is_the_kernel_machine() -> None:
    X, Y, _, X_test = hidden_data()
    full, landmarks = (
        fitted(model, X, Y).decision_function(X_test) for model in (KernelELM(C=10.0), NystroemKernelELM(60, C=10.0))
    )
    # with all rows as landmarks F F^T is the kernel matrix, and the solution on the observed rows is the same
    np.testing.assert_allclose(landmarks, full, rtol=1e-5, atol=1e-5)


def test_dependence_of_labels_on_the_rows_that_observe_both() -> None:
    _, Y, observed, _ = hidden_data()
    weight = np.linspace(0.5, 2.0, len(Y))
    for given in (None, weight):
        statistic = chi_square(check_labels(Y, missing=True), given)
        for first, second in ((0, 1), (1, 3), (2, 0)):
            both = observed[:, first] & observed[:, second]
            pair = Y[np.ix_(both, [first, second])].astype(np.uint8)
            expected = chi_square(pair, None if given is None else given[both])[0, 1]
            assert statistic[first, second] == pytest.approx(expected, rel=1e-12)


def test_boosting_of_one_label_equals_the_fit_on_observed_rows() -> None:
    X, Y, _ = make_data()
    X = np.vstack([X, X])  # the hidden rows add no other values of a feature, and so no other splits
    Y = np.vstack([Y, np.full(Y.shape, np.nan)])
    for algorithm in ("mh", "adaboost_m1"):
        method = AdaBoostMH(n_rounds=5, algorithm=algorithm)
        scores = output(fitted(method, X, Y[:, [0]]), X)
        np.testing.assert_allclose(scores, output(fitted(method, X[:60], Y[:60, [0]]), X), rtol=1e-12)


@pytest.mark.parametrize("label_weight", [None, "balanced"])
def test_stacking_weights_of_a_label_are_a_lasso_on_observed_rows(label_weight: Any) -> None:
    S, Y, observed, _ = hidden_data()
    model = fitted(MLWSE(alpha=0.5, beta=0.0, tol=1e-12, label_weight=label_weight), S, Y)
    for label, rows in enumerate(observed.T):
        weights = None
        if label_weight:
            ones = Y[rows, label].mean()
            weights = np.where(Y[rows, label] == 1, 0.5 / ones, 0.5 / (1 - ones))
        lasso = Lasso(alpha=0.5 / rows.sum(), fit_intercept=False, tol=1e-14, max_iter=10**5)
        lasso.fit(S[rows], Y[rows, label], sample_weight=weights)
        np.testing.assert_allclose(model.W_[:, label], lasso.coef_, atol=1e-5)


@pytest.mark.parametrize("penalty", ["l1", "l21"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_masked_stacking_with_coupling_is_stationary(penalty: str, fit_intercept: bool) -> None:
    S, Y, observed, _ = hidden_data()
    method = MLWSE(penalty, alpha=0.3, lam=0.5, beta=0.7, fit_intercept=fit_intercept, tol=1e-13, kkt_tol=1e-12)
    model = fitted(method, S, Y)
    residual = np.where(observed, S @ model.W_ + model.intercept_ - np.nan_to_num(Y), 0.0)
    if fit_intercept:
        np.testing.assert_allclose(residual.sum(axis=0), 0.0, atol=1e-9)
    gradient = S.T @ residual + 0.7 * model.W_ @ label_coupling(model.label_affinity_)
    unit = model.unit_penalty(*model.W_.shape).scaled(0.3 if penalty == "l1" else 0.5)
    assert unit.kkt_residual(model.W_, gradient) < 1e-5


def test_the_coupled_loss_of_complete_labels_is_the_ordinary_one() -> None:
    S, Y, _ = make_data()
    H = label_coupling(cosine_affinity(Y))
    coupled = CoupledLoss.from_scores(S, Y.astype(float), np.ones(Y.shape), 0.7 * H)
    ordinary = StackingLoss.from_scores(S, Y.astype(float), H, 0.7)
    W = np.random.default_rng(0).normal(size=(S.shape[1], Y.shape[1]))
    np.testing.assert_allclose(coupled.apply(W), ordinary.apply(W), rtol=1e-10)
    np.testing.assert_allclose(coupled.ridge(0.1), ordinary_ridge(S, Y, 0.7 * H, 0.1), rtol=1e-8)
    assert coupled.value(W, coupled.apply(W)) == pytest.approx(ordinary.value(W, ordinary.apply(W)), rel=1e-12)
    with pytest.raises(MethodError, match="not convex"):
        CoupledLoss.from_scores(S, Y.astype(float), np.ones(Y.shape), -1e3 * H)
    with pytest.raises(MethodError, match="at most 4096"):
        CoupledLoss.from_scores(np.zeros((2, 3000)), Y[:2].astype(float), np.ones((2, 4)), H)


def ordinary_ridge(S: np.ndarray, Y: np.ndarray, coupling: np.ndarray, eta: float) -> np.ndarray:
    p, q = S.shape[1], Y.shape[1]
    Q = np.kron(np.eye(q), S.T @ S) + np.kron(coupling, np.eye(p)) + eta * np.eye(p * q)
    return np.linalg.solve(Q, (S.T @ Y).T.ravel()).reshape(q, p).T


def test_affinity_of_labels_on_the_rows_that_observe_both() -> None:
    _, Y, observed, _ = hidden_data()
    affinity = cosine_affinity(np.nan_to_num(Y), observed)
    both = observed[:, 0] & observed[:, 2]
    assert affinity[0, 2] == pytest.approx(cosine_affinity(Y[np.ix_(both, [0, 2])])[0, 1], rel=1e-12)
    np.testing.assert_array_equal(np.diag(affinity), 1.0)
    np.testing.assert_allclose(
        cosine_affinity(np.nan_to_num(Y), np.ones(Y.shape, dtype=bool)), cosine_affinity(np.nan_to_num(Y)), rtol=1e-12
    )


@pytest.mark.parametrize("cv", [3, "half", "halves"])
def test_a_stack_learns_if_its_members_do(cv: Any) -> None:
    X, Y, observed, X_test = hidden_data()
    members = [("br", BinaryRelevance(LogisticRegression())), ("scaled", make_pipeline(StandardScaler(), MLkNN(k=5)))]
    stack = StackedMLWSE(members, final_estimator=MLWSE(alpha=0.5), cv=cv)
    expected = output(fitted(stack, X, Y), X_test)
    assert np.isfinite(expected).all()
    filled = np.where(observed, Y, 1.0)
    np.testing.assert_array_equal(output(fitted(stack, X, filled, y_mask=observed), X_test), expected)
    for other in (RandomForestClassifier(5), LabelPowerset(), make_pipeline(ReliefFML(k=3), MLkNN(k=5))):
        with pytest.raises(MethodError, match="StackedMLWSE cannot learn from partially observed labels"):
            fitted(StackedMLWSE([*members, ("other", other)], cv=cv), X, Y)
