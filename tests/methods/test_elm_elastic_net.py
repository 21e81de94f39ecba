"""ML-EKELM: the optimum against closed forms, optimality conditions and scikit-learn; its certificates."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, MultiTaskElasticNet

from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.elm._elastic_net import KernelLoss, elastic_net
from multilab.methods.elm.elastic_net_kernel_elm import ElasticNetKernelELM
from multilab.methods.elm.kernel_elm import KernelELM
from multilab.methods.kernels import kernel_matrix
from multilab.methods.solvers import solve as solving
from multilab.methods.solvers.certificates import Solution
from multilab.methods.solvers.penalties import RowSparsePenalty
from multilab.methods.solvers.solve import solve, solve_sparse

GAMMA = 1.5
# As far as rounding allows: a gap of 1e-13 alone leaves weights uncertain by 1e-6.
EXACT = {"admm": {"tol": 0.0, "max_sweeps": 3000}, "cd": {"tol": 1e-14, "max_sweeps": 20_000}}


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X, 0/1 labels, the kernel matrix and -1/+1 targets."""
    X, Y, _ = make_data(seed=seed)
    return X, Y, kernel_matrix(X, gamma=GAMMA), 2.0 * Y - 1.0


def fitted(X: np.ndarray, Y: np.ndarray, **arguments) -> tuple[ElasticNetKernelELM, np.ndarray]:
    """Return the model and beta with one column per label."""
    model = ElasticNetKernelELM(gamma=GAMMA, **arguments).fit(X, Y)
    return model, model.coef_[:, model.column_]


def objective(omega, targets, beta, lam, alpha, penalty="l1", ridge="frobenius") -> float:
    size = np.abs(beta).sum() if penalty == "l1" else np.linalg.norm(beta, axis=1).sum()
    square = (beta**2).sum() if ridge == "frobenius" else np.vdot(beta, omega @ beta)
    return 0.5 * ((targets - omega @ beta) ** 2).sum() + lam * (alpha * size + (1 - alpha) * square)


@pytest.mark.parametrize("solver", ["admm", "cd"])
@pytest.mark.parametrize(("lam", "alpha"), [(1.0, 0.5), (2.0, 0.9), (3.0, 0.1), (2.0, 1.0)])
def test_l1_is_scikit_learns_elastic_net_label_by_label(lam: float, alpha: float, solver: str) -> None:
    X, Y, omega, targets = problem()
    model, beta = fitted(X, Y, lam=lam, alpha=alpha, solver=solver, **EXACT[solver])
    peer = ElasticNet(alpha=lam * (2 - alpha) / len(X), l1_ratio=alpha / (2 - alpha), fit_intercept=False)
    peer.set_params(tol=1e-14, max_iter=100_000)
    expected = np.column_stack([peer.fit(omega, column).coef_ for column in targets.T])
    np.testing.assert_allclose(beta, expected, rtol=0, atol=2e-7)
    assert model.dual_gap_ <= 1e-11
    assert model.zero_shares_[0] == pytest.approx((expected == 0).mean(), abs=0.02)
    assert model.objective_path_[-1] == pytest.approx(objective(omega, targets, beta, lam, alpha), rel=1e-12)


def test_the_printed_update_diverges() -> None:
    """Eq. (20) literally: no norm of the kernel column, 1 + lambda (1 - alpha) below. See the specification."""
    _, _, omega, targets = problem()
    lam, alpha = 1.0, 0.5
    beta = np.zeros_like(targets)
    sizes = []
    for _ in range(3):
        for j in range(len(omega)):
            pull = omega[j] @ (targets - omega @ beta + np.outer(omega[:, j], beta[j]))
            beta[j] = np.sign(pull) * np.maximum(np.abs(pull) - lam * alpha, 0) / (1 + lam * (1 - alpha))
        sizes.append(np.abs(beta).max())
    assert sizes[2] > 10 * sizes[0] > 100
    model = ElasticNetKernelELM(gamma=GAMMA, lam=lam, alpha=alpha, solver="cd", tol=0, max_sweeps=3)
    path = model.fit(*problem()[:2]).objective_path_
    assert (np.diff(path) < 0).all()
    assert path[0] < 0.5 * (targets**2).sum()


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0])
def test_alpha_zero_is_a_closed_form(lam: float) -> None:
    X, Y, omega, targets = problem(seed=1)
    model, beta = fitted(X, Y, lam=lam, alpha=0.0)
    expected = np.linalg.solve(omega @ omega + 2 * lam * np.eye(len(X)), omega @ targets)
    np.testing.assert_allclose(beta, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    assert model.n_iter_ == 0
    assert model.lambda_max_ == np.inf
    again, swept = fitted(X, Y, lam=20.0, alpha=0.0, solver="cd", tol=0, max_sweeps=500)
    exact = np.linalg.solve(omega @ omega + 40 * np.eye(len(X)), omega @ targets)
    np.testing.assert_allclose(swept, exact, rtol=0, atol=1e-9)
    assert again.n_iter_ == 500


def test_alpha_zero_with_the_rkhs_ridge_is_the_kernel_machine() -> None:
    X, Y, X_test = make_data(seed=2)
    for lam in (1e-3, 0.1, 5.0):
        ours = ElasticNetKernelELM(ridge="rkhs", gamma=GAMMA, lam=lam, alpha=0.0).fit(X, Y)
        ridge = KernelELM(gamma=GAMMA, C=1 / (2 * lam)).fit(X, Y)
        np.testing.assert_allclose(ours.decision_function(X_test), ridge.decision_function(X_test), rtol=0, atol=1e-9)
        frobenius = ElasticNetKernelELM(gamma=GAMMA, lam=lam, alpha=0.0).fit(X, Y)
        assert np.abs(frobenius.decision_function(X_test) - ours.decision_function(X_test)).max() > 1e-2


@pytest.mark.parametrize("ridge", ["frobenius", "rkhs"])
@pytest.mark.parametrize("penalty", ["l1", "l21"])
def test_optimality_conditions(penalty: str, ridge: str) -> None:
    X, Y, omega, targets = problem(seed=3)
    lam, alpha = 3.0, 0.8
    model, beta = fitted(X, Y, penalty=penalty, ridge=ridge, lam=lam, alpha=alpha, tol=1e-14, max_sweeps=20_000)
    R = np.eye(len(X)) if ridge == "frobenius" else omega
    q = -omega @ (targets - omega @ beta) + 2 * lam * (1 - alpha) * R @ beta
    slack = 1e-5 * np.abs(omega @ targets).max()
    size = np.abs(beta) if penalty == "l1" else np.linalg.norm(beta, axis=1, keepdims=True)
    strength = np.abs(q) if penalty == "l1" else np.linalg.norm(q, axis=1, keepdims=True)
    zero = size == 0
    assert 0 < zero.sum() < zero.size
    assert (strength[zero] <= lam * alpha + slack).all()
    sign = beta / np.where(zero, 1.0, size)
    assert np.abs(np.where(zero, 0.0, q + lam * alpha * sign)).max() < slack
    assert model.kkt_ < 1e-5


@pytest.mark.parametrize("solver", ["admm", "cd"])
@pytest.mark.parametrize("penalty", ["l1", "l21"])
def test_beta_is_zero_from_lambda_max_on(penalty: str, solver: str) -> None:
    X, Y, omega, targets = problem(seed=4)
    arguments = {"penalty": penalty, "alpha": 0.4, "solver": solver, "tol": 1e-4, "max_sweeps": 20_000}
    most = fitted(X, Y, lam=10.0, **arguments)[0].lambda_max_
    size = np.abs(omega @ targets) if penalty == "l1" else np.linalg.norm(omega @ targets, axis=1)
    assert most == pytest.approx(size.max() / 0.4)
    assert not fitted(X, Y, lam=1.0001 * most, **arguments)[1].any()
    assert fitted(X, Y, lam=0.99 * most, **arguments)[1].any()


@pytest.mark.parametrize("solver", ["admm", "cd"])
@pytest.mark.parametrize("penalty", ["l1", "l21"])
def test_the_gap_bounds_the_distance_to_the_minimum(penalty: str, solver: str) -> None:
    X, Y, omega, targets = problem(seed=5)
    for lam, alpha in ((2.0, 0.5), (0.05, 0.2), (0.5, 1.0)):
        best = objective(
            omega, targets, fitted(X, Y, penalty=penalty, lam=lam, alpha=alpha, tol=1e-12)[1], lam, alpha, penalty
        )
        for sweeps in (1, 2, 5, 20):
            arguments = {"penalty": penalty, "lam": lam, "alpha": alpha, "solver": solver}
            model, beta = fitted(X, Y, tol=0, max_sweeps=sweeps, **arguments)
            value = objective(omega, targets, beta, lam, alpha, penalty)
            assert model.n_iter_ == sweeps == len(model.objective_path_)
            assert model.objective_path_[-1] == pytest.approx(value, rel=1e-10)
            assert value - best <= model.dual_gap_ * value + 1e-9 * value
            assert best <= value * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["admm", "cd"])
@pytest.mark.parametrize("intercept", [False, True])
def test_l21_is_scikit_learns_multi_task_elastic_net(intercept: bool, solver: str) -> None:
    X, Y, omega, targets = problem(seed=6)
    a, rho = 0.03, 0.7
    arguments = {"lam": a * (1 + rho) / 2, "alpha": 2 * rho / (1 + rho), "loss_scale": "mean", "penalty": "l21"}
    arguments |= {"fit_intercept": intercept, "solver": solver, **EXACT[solver]}
    model, beta = fitted(X, Y, **arguments)
    peer = MultiTaskElasticNet(alpha=a, l1_ratio=rho, fit_intercept=intercept, tol=1e-14, max_iter=100_000)
    peer.fit(omega, targets)
    np.testing.assert_allclose(beta, peer.coef_.T, rtol=0, atol=2e-7)
    assert 0 < model.zero_shares_[1] < 1
    if intercept:
        np.testing.assert_allclose(model.intercept_[model.column_], peer.intercept_, rtol=0, atol=1e-7)


@pytest.mark.parametrize("never_set", [[], [0, 2]])
def test_the_authors_early_stop(never_set: list[int]) -> None:
    X, Y, omega, targets = problem(seed=7)
    Y[:, never_set] = 0
    targets[:, never_set] = -1
    a, rho = 1e-4, 0.01
    peer = MultiTaskElasticNet(alpha=a, l1_ratio=rho, tol=0.4, max_iter=1000).fit(omega, targets)
    released = {"lam": a * (1 + rho) / 2, "alpha": 2 * rho / (1 + rho), "loss_scale": "mean", "penalty": "l21"}
    released |= {"fit_intercept": True, "solver": "cd", "stop": "step", "tol": 0.4}
    model, beta = fitted(X, Y, **released)
    assert model.n_iter_ == peer.n_iter_ < 30
    np.testing.assert_allclose(beta, peer.coef_.T, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.intercept_[model.column_], peer.intercept_, rtol=0, atol=1e-9)
    counted, same = fitted(X, Y, **(released | {"stop": "gap", "tol": 0, "max_sweeps": model.n_iter_}))
    np.testing.assert_array_equal(same, beta)
    assert counted.n_iter_ == model.n_iter_


def test_both_ways_to_scale_the_loss() -> None:
    X, Y, _ = make_data(seed=8)
    for solver in ("admm", "cd"):
        arguments = {"alpha": 0.3, "solver": solver, "tol": 1e-9}
        total, beta = fitted(X, Y, lam=6.0, **arguments)
        mean, same = fitted(X, Y, lam=6.0 / len(X), loss_scale="mean", **arguments)
        np.testing.assert_allclose(same, beta, rtol=0, atol=1e-5)
        assert mean.lambda_max_ == pytest.approx(total.lambda_max_ / len(X))
        assert mean.objective_path_[-1] == pytest.approx(total.objective_path_[-1] / len(X), rel=1e-6)


def test_equal_labels_tie_bit_by_bit_and_count_as_often_as_they_are() -> None:
    rng = np.random.default_rng(5)
    X, X_test = rng.normal(size=(53, 7)), rng.normal(size=(31, 7))
    Y = (rng.random((53, 9)) < 0.3).astype(int)
    Y[:, [0, 4, 8]] = 0
    Y[:, 6] = Y[:, 2]
    for arguments in ({}, {"penalty": "l21"}, {"solver": "cd", "tol": 0, "max_sweeps": 5}):
        model = ElasticNetKernelELM(gamma=0.1, **arguments).fit(X, Y)
        assert model.coef_.shape == (53, 6)
        scores = model.decision_function(X_test)
        for left, right in ((0, 4), (0, 8), (6, 2)):
            np.testing.assert_array_equal(scores[:, left], scores[:, right])
    omega, targets = kernel_matrix(X, gamma=0.1), 2.0 * Y - 1.0
    loss = KernelLoss.from_kernel(omega, targets)  # every column, the equal ones too
    solution = elastic_net(loss, 1.0, 0.5, by_row=True, tol=1e-13, max_iter=20_000)
    model = ElasticNetKernelELM(penalty="l21", gamma=0.1, lam=1.0, alpha=0.5, tol=1e-13, max_sweeps=20_000).fit(X, Y)
    np.testing.assert_allclose(model.coef_[:, model.column_], solution.W, rtol=0, atol=1e-5)


def test_a_warm_path_is_the_single_solutions() -> None:
    _, _, omega, targets = problem(seed=9)
    before = omega.copy()
    loss = KernelLoss.from_kernel(omega, targets)
    np.testing.assert_array_equal(omega, before)
    for by_row in (False, True):
        most = RowSparsePenalty(0.5, by_row).alpha_max(omega @ targets)
        lams = most * np.geomspace(1.0, 1e-3, 8)
        path: list[Solution] = []
        for lam in lams:
            start = path[-1].W if path else None
            path.append(elastic_net(loss, lam, 0.5, by_row=by_row, tol=1e-11, max_iter=20_000, start=start))
        assert path[0].n_iter == 0
        assert not path[0].W.any()
        for lam, one in zip(lams, path, strict=True):
            alone = elastic_net(loss, lam, 0.5, by_row=by_row, tol=1e-11, max_iter=20_000)
            assert one.converged
            assert alone.converged
            assert one.objective_path[-1] == pytest.approx(alone.objective_path[-1], rel=1e-10)
            np.testing.assert_allclose(one.W, alone.W, rtol=0, atol=1e-3)


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("ridge", ["rkhs", "frobenius"])
@pytest.mark.parametrize(("share", "alone"), [(0.02, False), (0.2, True)])
def test_working_sets_reach_the_minimum_of_the_full_problem(ridge, by_row, share, alone, monkeypatch) -> None:
    rng = np.random.default_rng(12)
    X = rng.uniform(size=(400, 5))
    targets = np.sign(np.column_stack([X[:, 0] - 0.5, X[:, 1] - X[:, 2], np.ones(400)]))
    omega = kernel_matrix(X, gamma=3.0)
    alpha, lam = 0.9, share * RowSparsePenalty(0.9, by_row).alpha_max(omega @ targets)
    loss, penalty = (
        KernelLoss.from_kernel(omega, targets, ridge=ridge).with_ridge(1e-3 * lam),
        RowSparsePenalty(lam * alpha, by_row),
    )
    rows = np.array([3, 17, 200])
    W, zeros = np.zeros_like(targets), np.zeros_like(targets)
    W[rows] = rng.normal(size=(3, 3))
    part = loss.restricted(rows)
    np.testing.assert_allclose(part.apply(W[rows]), loss.apply(W)[rows], rtol=1e-9)
    assert part.value(W[rows], part.apply(W[rows])) == pytest.approx(loss.value(W, loss.apply(W)), rel=1e-12)
    sizes = []

    def solved(part, penalty, start, **arguments):
        sizes.append(len(start))
        return solve(part, penalty, start, **arguments)

    monkeypatch.setattr(solving, "solve", solved)
    fast = solve_sparse(loss, penalty, zeros, tol=1e-7, max_iter=20_000)
    assert (max(sizes) < 0.3 * len(X)) == alone  # else the full problem is solved in the end
    full = solve(loss, penalty, zeros, tol=1e-9, kkt_tol=0.0, max_iter=20_000)
    assert 0 < fast.W.any(axis=1).sum() < 0.3 * len(X)
    assert fast.gap <= 1e-7
    assert fast.objective_path[-1] == pytest.approx(full.objective_path[-1], rel=1.1e-7)
    assert fast.objective_path[-1] == pytest.approx(loss.value(fast.W, loss.apply(fast.W)) + penalty.value(fast.W))
    assert elastic_net(KernelLoss.from_kernel(omega, targets), lam, alpha, tol=1e-6, max_iter=3).n_iter <= 4


@pytest.mark.parametrize("penalty", ["l1", "l21"])
def test_watched_sweeps_are_those_of_the_fit(penalty: str) -> None:
    X, Y, omega, targets = problem()
    model = ElasticNetKernelELM(
        penalty=penalty, gamma=GAMMA, lam=0.3, alpha=0.3, solver="cd", tol=0.0, max_sweeps=5, loss_scale="mean"
    )
    seen: list[tuple[float, np.ndarray]] = []
    model.fit_watched(X, Y, lambda value: seen.append((value, model.coef_[:, model.column_])))
    assert len(seen) == 6
    assert not seen[0][1].any()
    for value, beta in seen:
        expected = objective(omega, targets, beta, 0.3 * len(X), 0.3, penalty) / len(X)
        assert value == pytest.approx(expected, rel=1e-12)
    plain = ElasticNetKernelELM(**model.get_params()).fit(X, Y)
    assert np.array_equal(plain.coef_, model.coef_)
    assert plain.objective_path_.tolist() == [value for value, _ in seen[1:]]
    with pytest.raises(MethodError, match="only the sweeps of 'cd' can be watched"):
        ElasticNetKernelELM().fit_watched(X, Y, print)


@pytest.mark.parametrize("by_row", [False, True])
def test_a_row_shrinks_as_in_a_matrix(by_row: bool) -> None:
    penalty = RowSparsePenalty(0.8, by_row)
    rows = np.vstack([np.zeros(3), np.random.default_rng(0).normal(size=(20, 3)), [0.8, 0.0, 0.0]])
    one_by_one = np.array([penalty.prox_row(row) for row in rows])
    np.testing.assert_allclose(one_by_one, penalty.prox(rows, 1.0), rtol=1e-14, atol=0)
    assert (one_by_one == 0).all(axis=1).any()


def test_refitting_gives_the_same_bits() -> None:
    X, Y, X_test = make_data(seed=11)
    for arguments in ({}, {"penalty": "l21", "fit_intercept": True}, {"solver": "cd", "max_sweeps": 7, "tol": 0}):
        first, second = (ElasticNetKernelELM(**arguments).fit(X, Y).decision_function(X_test) for _ in range(2))
        np.testing.assert_array_equal(first, second)


def test_wrong_arguments() -> None:
    X, Y, _ = make_data()
    for wrong, word in (
        ({"penalty": "l2"}, "penalty='l2'"),
        ({"ridge": "none"}, "ridge='none'"),
        ({"solver": "fista"}, "solver='fista'"),
        ({"lam": 0.0}, "lam=0"),
        ({"alpha": 1.5}, "alpha=1.5"),
        ({"max_sweeps": 0}, "max_sweeps=0"),
        ({"tol": -1.0}, "tol=-1"),
        ({"gamma": 0.0}, "gamma=0"),
        ({"ridge": "rkhs", "fit_intercept": True}, "rkhs"),
        ({"ridge": "rkhs", "solver": "cd"}, "rkhs"),
        ({"stop": "step"}, "solver='cd'"),
    ):
        with pytest.raises(MethodError, match=word):
            ElasticNetKernelELM(**wrong).fit(X, Y)


@pytest.mark.data
def test_two_sweeps_on_yeast_come_near_the_printed_row(benchmark_data: Path) -> None:
    """The paper prints .1876 .2236 6.1210 .1567 .7750 and no parameters; these come closest."""
    from multilab.datasets import load
    from multilab.metrics import score_all

    data = load("yeast")
    train, test = data.splits["official"]
    a, rho = 1e-3, 0.1
    model = ElasticNetKernelELM(
        penalty="l21",
        gamma=2.0,
        lam=a * (1 + rho) / 2,
        alpha=2 * rho / (1 + rho),
        loss_scale="mean",
        fit_intercept=True,
        solver="cd",
        tol=0,
        max_sweeps=2,
    ).fit(data.X[train], data.Y[train])
    values = score_all(data.Y[test], *model.predict_with_scores(data.X[test]), conventions="matlab")
    five = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
    expected = ".1876 .2225 6.1200 .1571 .7746"
    assert [f"{values[m]:.4f}" for m in five] == [f"{float(p):.4f}" for p in expected.split()]


@pytest.mark.data
def test_the_released_setting_on_arts(benchmark_data: Path) -> None:
    """What scikit-learn's multi-task elastic net gives; of it only the first number is the printed one."""
    from multilab.cells.method import build, load_method
    from multilab.datasets import load
    from multilab.metrics import score_all

    data = load("yahoo-arts")
    train, test = data.splits["official"]
    model = build(load_method("mlekelm_rowsparse")).fit(data.X[train], data.Y[train])
    assert model.n_iter_ == 2
    assert model.zero_shares_[1] == 0.0
    values = score_all(data.Y[test], *model.predict_with_scores(data.X[test]), conventions="matlab")
    five = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
    expected = ".0539 .4680 5.3503 .1366 .6179"
    assert [f"{values[m]:.4f}" for m in five] == [f"{float(p):.4f}" for p in expected.split()]


def test_a_gap_above_the_tolerance_is_reported_unless_a_number_of_sweeps_was_asked_for():
    X, Y, _, _ = problem()
    arguments = {"gamma": GAMMA, "lam": 0.1, "solver": "cd", "max_sweeps": 2}
    with pytest.warns(ConvergenceWarning, match="stopped after 2 sweeps"):
        ElasticNetKernelELM(**arguments, tol=1e-12).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        ElasticNetKernelELM(**arguments, tol=0).fit(X, Y)
