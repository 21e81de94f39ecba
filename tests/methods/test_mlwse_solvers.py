"""The minimisers of MLWSE against definitions, other libraries and each other."""

import itertools

import numpy as np
import pytest
from scipy.linalg import solve_sylvester
from scipy.optimize import minimize
from sklearn.linear_model import Lasso

from multilab.methods.base import MethodError
from multilab.methods.solvers.certificates import duality_gap
from multilab.methods.solvers.penalties import RowSparsePenalty, SparseGroupPenalty
from multilab.methods.solvers.problem import Penalty, SmoothTerm, require
from multilab.methods.solvers.solve import ALGORITHMS, solve, solve_path
from multilab.methods.stacking.objective import (
    StackingLoss,
    classifier_rows,
    cosine_affinity,
    diagonal_support,
    label_coupling,
    unit_l1,
    unit_l21,
)

n, m, q = 120, 3, 4
ROWS = classifier_rows(m * q, q)
EXACT = {"tol": 0.0, "kkt_tol": 1e-12, "max_iter": 200_000}


def problem(beta=0.5, seed=0, collinear=False):
    """Return S, Y, H and the loss; with ``collinear`` G is singular, as it is for real scores."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, q)) + 0.7 * rng.normal(size=(n, 1))
    Y = (latent > 0.3).astype(float)
    S = 1 / (1 + np.exp(-np.tile(latent, m) - rng.normal(size=(n, m * q))))
    if collinear:
        S[:, q] = S[:, 0]
    H = label_coupling(cosine_affinity(Y))
    return S, Y, H, StackingLoss.from_scores(S, Y, H, beta)


def objective(S, Y, H, beta, penalty, W):
    """F(W) as printed, over the n rows."""
    return 0.5 * np.linalg.norm(S @ W - Y) ** 2 + 0.5 * beta * np.trace(W @ H @ W.T) + penalty.value(W)


def l1(alpha, support=None):
    return unit_l1(ROWS, support).scaled(alpha)


def l21(alpha, lam, **options):
    return unit_l21(ROWS, q, alpha, **options).scaled(lam)


PENALTIES = {
    "l1": l1(2.0),
    "l1-tiny": l1(1e-4),
    "l21": l21(0.05, 4.0),
    "l21-half": l21(0.5, 3.0),
    "group": l21(0.0, 2.0),
    "size": l21(0.1, 2.0, group_weight="size"),
    "diagonal": l1(1.0, diagonal_support(ROWS, q)),
    "diagonal-l21": l21(0.3, 2.0, support=diagonal_support(ROWS, q)),
}


@pytest.fixture(params=PENALTIES)
def penalty(request):
    return PENALTIES[request.param]


def test_coupling_is_a_laplacian_and_sums_squared_differences():
    _, Y, H, _ = problem()
    R = cosine_affinity(Y)
    assert np.allclose(R, (Y / np.linalg.norm(Y, axis=0)).T @ (Y / np.linalg.norm(Y, axis=0)), atol=1e-14)
    assert np.abs(H @ np.ones(q)).max() < 1e-14
    assert np.linalg.eigvalsh(H).min() > -1e-14
    W = np.random.default_rng(1).normal(size=(m * q, q))
    pairs = sum(0.5 * R[j, k] * np.sum((W[:, j] - W[:, k]) ** 2) for j in range(q) for k in range(q))
    assert np.trace(W @ H @ W.T) == pytest.approx(pairs, rel=1e-13)


def test_a_label_that_never_occurs_couples_to_nothing():
    Y = problem()[1]
    Y[:, 1] = 0
    R = cosine_affinity(Y)
    assert not R[1].any()
    assert not R[:, 1].any()
    assert not label_coupling(R)[1].any()
    assert np.isfinite(R).all()


def test_loss_value_and_gradient_from_the_gram_matrix():
    S, Y, H, loss = problem(beta=0.7)
    W = np.random.default_rng(2).normal(size=(m * q, q))
    nothing = SparseGroupPenalty(0.0, np.zeros(m), ROWS)
    QW = loss.apply(W)
    assert loss.value(W, QW) == pytest.approx(objective(S, Y, H, 0.7, nothing, W), rel=1e-12)
    assert loss.value_rotated(loss.rotate(W)) == pytest.approx(loss.value(W, QW), rel=1e-12)
    gradient = QW - loss.cross
    for i, j in [(0, 0), (3, 2), (7, 1), (11, 3)]:
        step = np.zeros_like(W)
        step[i, j] = 1e-5
        up, down = (objective(S, Y, H, 0.7, nothing, W + s * step) for s in (1, -1))
        assert gradient[i, j] == pytest.approx((up - down) / 2e-5, rel=1e-6)


def test_step_size_is_exact():
    _, _, H, loss = problem(beta=3.0)
    hessian = np.kron(np.eye(q), loss.gram) + 3.0 * np.kron(H, np.eye(m * q))
    assert loss.lipschitz == pytest.approx(np.linalg.eigvalsh(hessian)[-1], rel=1e-12)


def test_prox_of_zeros_divides_by_no_norm(penalty):
    zeros = np.zeros((m * q, q))
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(penalty.prox(zeros, 1.0), zeros)


def test_prox_minimises_its_definition(penalty):
    rng = np.random.default_rng(3)
    X, step = 3 * rng.normal(size=(m * q, q)), 0.6
    P = penalty.prox(X, step)

    def value(W):
        return 0.5 * np.sum((W - X) ** 2) + step * penalty.value(W)

    free = np.ones(P.shape, bool) if penalty.support is None else penalty.support
    assert not P[~free].any()
    # stationarity in the form of the penalty's own optimality conditions, and no better point nearby
    assert penalty.kkt_residual(P, (P - X) / step) < 1e-13
    for scale in (1e-3, 1e-1, 1.0):
        for _ in range(50):
            assert value(P + scale * rng.normal(size=P.shape) * free) >= value(P)


@pytest.mark.parametrize(("a", "b"), [(0.4, 0.0), (0.0, 1.1), (0.3, 0.8), (0.5, 4.0)])
def test_prox_agrees_with_a_general_minimiser(a, b):
    X = np.array([[1.0, -0.2], [0.5, 2.0]])
    one = SparseGroupPenalty(a, np.array([b]), [slice(0, 2)])

    def smooth(z):  # W = positive part - negative part makes all but the norm smooth
        W = (z[:4] - z[4:]).reshape(2, 2)
        return 0.5 * np.sum((W - X) ** 2) + a * z.sum() + b * np.sqrt(np.sum(W**2) + 1e-14)

    best = minimize(smooth, np.full(8, 0.3), bounds=[(0, None)] * 8, method="L-BFGS-B", tol=1e-15)
    assert np.allclose(one.prox(X, 1.0), (best.x[:4] - best.x[4:]).reshape(2, 2), atol=2e-4)
    P = one.prox(X, 1.0)
    assert 0.5 * np.sum((P - X) ** 2) + one.value(P) <= best.fun + 1e-9


def test_prox_of_zero_is_zero(penalty):
    assert not penalty.prox(np.zeros((m * q, q)), 1.0).any()


def test_dual_scale_is_the_largest(penalty):
    A = 5 * np.random.default_rng(4).normal(size=(m * q, q))

    def feasible(X):  # the dual ball is where the prox of step 1 vanishes
        return not penalty.prox(X, 1.0).any()

    s = penalty.dual_scale(A, 1.0)
    assert 0 < s < 1
    assert feasible((1 - 1e-9) * s * A)
    assert not feasible((1 + 1e-9) * s * A)
    assert penalty.dual_scale(1e-9 * A, 2.0) == 2.0


@pytest.mark.parametrize("collinear", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_algorithms_agree_and_satisfy_the_optimality_conditions(algorithm, penalty, collinear):
    S, Y, H, loss = problem(collinear=collinear)
    if algorithm == "bcd" and penalty.l1 == 1e-4:
        options = {"tol": 1e-9, "kkt_tol": 0.0, "max_iter": 2000}
    else:
        options = {"tol": 0.0, "kkt_tol": 1e-9, "max_iter": 30_000}
    start = loss.ridge(0.1)
    solution = solve(loss, penalty, start, algorithm=algorithm, **options)
    reference = solve(loss, penalty, start, tol=1e-12, kkt_tol=1e-12, max_iter=30_000)
    F = objective(S, Y, H, 0.5, penalty, solution.W)
    assert solution.converged
    assert solution.objective_path[-1] == pytest.approx(F, rel=1e-10)
    assert reference.objective_path[-1] == pytest.approx(F, rel=1e-8)
    if penalty.l1 != 1e-4:
        assert penalty.kkt_residual(solution.W, loss.apply(solution.W) - loss.cross) < 1e-8 * np.abs(loss.cross).max()


def test_kkt_of_the_sparse_group_penalty_written_out():
    S, Y, H, loss = problem(beta=0.01)
    alpha, lam, c = 0.3, 12.0, np.sqrt(q)
    W = solve(loss, l21(alpha, lam), loss.ridge(0.1), **EXACT).W
    gradient = S.T @ (S @ W - Y) + 0.01 * W @ H
    active = [k for k, r in enumerate(ROWS) if W[r].any()]
    for k, r in enumerate(ROWS):
        g, w = gradient[r], W[r]
        if k not in active:
            assert np.linalg.norm(np.sign(g) * np.maximum(np.abs(g) - alpha * lam, 0)) <= (1 - alpha) * lam * c
            continue
        pull = g + (1 - alpha) * lam * c * w / np.linalg.norm(w)
        assert np.abs(pull + alpha * lam * np.sign(w))[w != 0].max() < 1e-8
        assert np.abs(pull[w == 0]).max(initial=0) <= alpha * lam + 1e-8
    assert active


def test_without_coupling_l1_is_the_lasso_column_by_column():
    S, Y, _, loss = problem(beta=0.0)
    alpha = 1.5
    W = solve(loss, l1(alpha), loss.ridge(0.1), **EXACT).W
    for j in range(q):
        lasso = Lasso(alpha=alpha / n, fit_intercept=False, tol=1e-14, max_iter=1_000_000).fit(S, Y[:, j])
        assert np.abs(W[:, j] - lasso.coef_).max() < 1e-9


def test_l1_is_one_lasso_on_the_augmented_design():
    S, Y, H, loss = problem(beta=2.0)
    alpha = 1.0
    values, vectors = np.linalg.eigh(H)
    C = vectors * np.sqrt(np.maximum(values, 0))
    design = np.vstack([np.kron(np.eye(q), S), np.sqrt(2.0) * np.kron(C.T, np.eye(m * q))])
    target = np.concatenate([Y.T.ravel(), np.zeros(m * q * q)])
    lasso = Lasso(alpha=alpha / len(target), fit_intercept=False, tol=1e-14, max_iter=1_000_000)
    reference = lasso.fit(design, target).coef_.reshape(q, m * q).T
    W = solve(loss, l1(alpha), loss.ridge(0.1), **EXACT).W
    assert np.abs(W - reference).max() < 1e-9
    # and the duality gap written out on that design, without and with a common scaling only
    some = 0.9 * W + 0.01
    r1, r2 = Y - S @ some, -np.sqrt(2.0) * some @ C
    A = S.T @ r1 + np.sqrt(2.0) * r2 @ C.T
    s = min(1.0, alpha / np.abs(A).max())
    dual = 0.5 * np.sum(Y**2) - 0.5 * np.sum((s * r1 - Y) ** 2) - 0.5 * np.sum((s * r2) ** 2)
    printed = objective(S, Y, H, 2.0, l1(alpha), some) - dual
    # ours takes the best feasible multiple, so it can only be tighter
    assert duality_gap(loss, l1(alpha), some, corrected=False) <= printed + 1e-10
    assert duality_gap(loss, l1(alpha), W) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("beta", [0.3, 40.0])
def test_without_penalty_w_solves_the_sylvester_equation(beta):
    _, _, H, loss = problem(beta=beta)
    solution = solve(loss, l1(0.0), loss.ridge(0.1))
    assert np.abs(solution.W - solve_sylvester(loss.gram, beta * H, loss.cross)).max() < 5e-12
    assert solution.n_iter == 0
    assert solution.gap < 1e-14


def test_without_penalty_and_coupling_w_is_the_minimum_norm_least_squares_solution():
    S, Y, _, loss = problem(beta=0.0, collinear=True)
    assert np.linalg.matrix_rank(S) == m * q - 1
    W = solve(loss, l1(0.0), loss.ridge(0.1)).W
    assert np.abs(W - np.linalg.lstsq(S, Y, rcond=None)[0]).max() < 1e-9


@pytest.mark.parametrize("unit", [unit_l1(ROWS), unit_l21(ROWS, q, 0.05), unit_l21(ROWS, q, 0.5)])
def test_alpha_max_is_where_the_weights_vanish(unit):
    _, _, _, loss = problem()
    strongest = unit.alpha_max(loss.cross)
    if not unit.group.any():
        assert strongest == np.abs(loss.cross).max()
    for algorithm in ALGORITHMS:
        options = {"algorithm": algorithm, "tol": 0.0, "kkt_tol": 1e-11, "max_iter": 20_000}
        start = loss.ridge(0.1)
        assert not solve(loss, unit.scaled(1.000001 * strongest), start, **options).W.any()
        assert solve(loss, unit.scaled(0.999 * strongest), start, **options).W.any()


def test_l21_with_alpha_one_is_l1():
    _, _, _, loss = problem()
    pair = [solve(loss, p, loss.ridge(0.1), **EXACT).W for p in (l21(1.0, 1.7), l1(1.7))]
    assert np.abs(pair[0] - pair[1]).max() < 1e-9


def test_strong_coupling_draws_the_columns_together_within_components():
    S, Y, _, _ = problem()
    Y[:, :2] *= (np.arange(n) < n // 2)[:, None]  # labels 0, 1 and labels 2, 3 never occur together
    Y[:, 2:] *= (np.arange(n) >= n // 2)[:, None]
    H = label_coupling(cosine_affinity(Y))
    spreads = []
    for beta in (1.0, 1e2, 1e4, 1e6):
        loss = StackingLoss.from_scores(S, Y, H, beta)
        W = solve(loss, l1(0.5), loss.ridge(0.1), tol=1e-10, kkt_tol=0).W
        spreads.append(np.abs(W[:, 0] - W[:, 1]).max() + np.abs(W[:, 2] - W[:, 3]).max())
    assert all(later < 0.5 * earlier for earlier, later in itertools.pairwise(spreads))
    assert spreads[-1] < 1e-3
    assert np.abs(W[:, 0] - W[:, 2]).max() > 0.05


def test_permuting_labels_permutes_the_weights(penalty):
    S, Y, _, loss = problem()
    order = np.array([2, 0, 3, 1])
    rows = np.concatenate([order + k * q for k in range(m)])
    other = StackingLoss.from_scores(S[:, rows], Y[:, order], label_coupling(cosine_affinity(Y[:, order])), 0.5)
    W = solve(loss, penalty, loss.ridge(0.1), **EXACT).W
    permuted = solve(other, penalty, other.ridge(0.1), **EXACT).W
    assert np.abs(permuted - W[np.ix_(rows, order)]).max() < 1e-8


def test_block_descent_never_rises(penalty):
    _, _, _, loss = problem(collinear=True)
    path = solve(loss, penalty, loss.ridge(0.1), algorithm="bcd", tol=0.0, kkt_tol=0.0, max_iter=60).objective_path
    assert len(path) == 60
    assert np.all(np.diff(path) <= 1e-12 * path[0])


@pytest.mark.parametrize("collinear", [False, True])
def test_the_gap_bounds_the_suboptimality_everywhere(penalty, collinear):
    S, Y, H, loss = problem(collinear=collinear)
    best = solve(loss, penalty, loss.ridge(0.1), tol=1e-13, kkt_tol=1e-12, max_iter=30_000)
    minimum = objective(S, Y, H, 0.5, penalty, best.W)
    rng = np.random.default_rng(5)
    for scale in (1e-4, 1e-2, 1.0, 10.0):
        W = penalty.prox(best.W + scale * rng.normal(size=best.W.shape), 0.0)
        excess = objective(S, Y, H, 0.5, penalty, W) - minimum
        for corrected in (True, False):
            assert duality_gap(loss, penalty, W, corrected=corrected) >= excess - 1e-9 * minimum
    assert duality_gap(loss, penalty, best.W) < 1e-6 * minimum


def test_the_path_of_fista_is_that_of_the_algorithm_written_out():
    """Algorithm 1 of the MLWSE paper; the momentum starts again from nothing where it points uphill."""
    S, Y, H, loss = problem(beta=0.5)
    penalty, start = PENALTIES["l21"], np.zeros((m * q, q))
    W = before = start
    b_before, b, path, restarts = 1.0, 1.0, [], 0
    for _ in range(80):
        V = W + (b_before - 1) / b * (W - before)
        new = penalty.prox(V - (S.T @ (S @ V - Y) + 0.5 * V @ H) / loss.lipschitz, 1 / loss.lipschitz)
        uphill = np.vdot(V - new, new - W) > 0
        b_before, b = (1.0, 1.0) if uphill else (b, (1 + np.sqrt(1 + 4 * b**2)) / 2)
        before, W, restarts = W, new, restarts + uphill
        path.append(objective(S, Y, H, 0.5, penalty, W))
    assert 0 < restarts < 10
    solution = solve(loss, penalty, start, algorithm="fista", tol=0, kkt_tol=0, max_iter=80)
    np.testing.assert_allclose(solution.objective_path, path, rtol=1e-12)


def test_the_corrected_gap_is_useful_for_tiny_penalties_and_the_plain_one_is_not():
    _, _, _, loss = problem(collinear=True)
    tiny = l1(1e-4)
    W = solve(loss, tiny, loss.ridge(0.1), algorithm="fista", tol=0, kkt_tol=0, max_iter=40).W
    F = solve(loss, tiny, loss.ridge(0.1), tol=1e-12, kkt_tol=0).objective_path[-1]
    excess = loss.value(W, loss.apply(W)) + tiny.value(W) - F
    assert duality_gap(loss, tiny, W) < 20 * excess + 1e-6 * F
    assert duality_gap(loss, tiny, W, corrected=False) > 100 * duality_gap(loss, tiny, W)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_reported_gap_holds(algorithm):
    _, _, _, loss = problem()
    minimum = solve(loss, l1(2.0), loss.ridge(0.1), tol=1e-13, kkt_tol=0).objective_path[-1]
    for tol in (1e-2, 1e-4, 1e-6):
        solution = solve(loss, l1(2.0), loss.ridge(0.1), algorithm=algorithm, tol=tol, kkt_tol=0.0)
        assert solution.gap <= tol
        assert 0 <= solution.objective_path[-1] - minimum + 1e-12 <= tol * solution.objective_path[-1]


def test_a_path_serves_a_grid_as_single_fits_do():
    _, _, _, loss = problem()
    strengths = unit_l1(ROWS).alpha_max(loss.cross) * np.array([1.1, 0.3, 0.01])
    options = {"tol": 1e-11, "kkt_tol": 0.0}
    for beta in (0.0, 0.1, 10.0):
        at_beta, penalties = loss.with_beta(beta), [l1(a) for a in strengths]
        path = solve_path(at_beta, penalties, loss.ridge(0.1), **options)
        for penalty, solution in zip(penalties, path, strict=True):
            cold = solve(at_beta, penalty, loss.ridge(0.1), **options)
            assert solution.objective_path[-1] == pytest.approx(cold.objective_path[-1], rel=1e-9)
        assert not path[0].W.any()


def test_solvers_leave_their_input_alone(penalty):
    S, Y, H, _ = problem()
    copies = S.copy(), Y.copy(), H.copy()
    loss = StackingLoss.from_scores(S, Y, H, 0.5)
    start = loss.ridge(0.1)
    began = start.copy()
    for algorithm in ALGORITHMS:
        solve(loss, penalty, start, algorithm=algorithm, max_iter=5)
        assert np.array_equal(start, began)
    for now, before in zip((S, Y, H), copies, strict=True):
        assert np.array_equal(now, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda S, Y, H: StackingLoss.from_scores(S[:-1], Y, H, 1.0), "119 rows"),
        (lambda S, Y, H: StackingLoss.from_scores(S, Y, H[1:, 1:], 1.0), "4 labels"),
        (lambda S, Y, H: StackingLoss.from_scores(S, Y, H, -1.0), "beta"),
        (lambda S, Y, H: classifier_rows(11, 4), "not a multiple"),
        (lambda S, Y, H: classifier_rows(12, 4, [4, 4]), "sum to the 12"),
        (lambda S, Y, H: diagonal_support(classifier_rows(12, 4, [5, 7]), 4), "diagonal"),
        (lambda S, Y, H: label_coupling(H, "distance"), "cosine_distance"),
    ],
)
def test_an_input_that_does_not_fit_is_explained_in_one_line(call, message):
    S, Y, H, _ = problem()
    with pytest.raises(MethodError, match=message) as error:
        call(S, Y, H)
    assert "\n" not in str(error.value)


def test_a_starting_point_of_the_wrong_shape_and_an_unknown_algorithm_are_refused():
    loss = problem()[3]
    with pytest.raises(MethodError, match="shape"):
        solve(loss, l1(1.0), np.zeros((m * q, q + 1)))
    with pytest.raises(MethodError, match="admm, fista, apg, bcd"):
        solve(loss, l1(1.0), loss.ridge(0.1), algorithm="newton")


@pytest.mark.parametrize("by_row", [False, True])
def test_the_row_sparse_penalty_is_a_sparse_group_penalty_with_one_group_per_row(by_row):
    rows = [slice(i, i + 1) for i in range(m * q)]
    groups = SparseGroupPenalty(0.0 if by_row else 1.3, np.full(m * q, 1.3 if by_row else 0.0), rows)
    single = RowSparsePenalty(1.3, by_row)
    X, gradient = np.random.default_rng(6).normal(size=(2, m * q, q))
    W = groups.prox(X, 1.0)
    assert 0 < np.mean(W.any(axis=1)) < 1 or not by_row
    assert np.abs(single.prox(X, 1.0) - W).max() < 1e-15
    assert single.value(W) == pytest.approx(groups.value(W), rel=1e-14)
    assert single.dual_scale(X, 1.0) == pytest.approx(groups.dual_scale(X, 1.0), rel=1e-12)
    assert single.alpha_max(X) == pytest.approx(groups.alpha_max(X), rel=1e-14)
    if not by_row:  # rows count by their norms, groups by the largest entry
        assert single.kkt_residual(W, gradient) == pytest.approx(groups.kkt_residual(W, gradient), rel=1e-12)


class Ridge(SmoothTerm):
    """||W - T||^2 / 2: the least a smooth term must have."""

    def __init__(self, T):
        self.cross = self.cross_rotated = T
        self.target_square, self.curvature, self.null = float(np.vdot(T, T)), np.ones_like(T), 0.0

    def rotate(self, W):
        return W

    def rotate_back(self, rotated):
        return rotated


@pytest.mark.parametrize("algorithm", ["admm", "fista", "apg"])
@pytest.mark.parametrize("row_sparse", [None, False, True])
def test_any_smooth_term_goes_with_any_penalty(algorithm, row_sparse, penalty):
    T = 3 * np.random.default_rng(7).normal(size=(m * q, q))
    chosen = penalty if row_sparse is None else RowSparsePenalty(1.5, row_sparse)
    solution = solve(Ridge(T), chosen, np.zeros_like(T), algorithm=algorithm, **EXACT)
    assert np.abs(solution.W - chosen.prox(T, 1.0)).max() < 1e-8  # the definition of the proximal operator
    assert solution.kkt <= 1e-12 or solution.n_iter == 0


def test_terms_that_lack_a_member_are_refused_by_name():
    loss = Ridge(np.ones((m * q, q)))
    with pytest.raises(MethodError, match="Ridge is not a SmoothTerm for this solver: it lacks gram, beta, coupling"):
        solve(loss, l1(1.0), loss.cross, algorithm="bcd")
    with pytest.raises(
        MethodError, match="RowSparsePenalty is not a Penalty for this solver: it lacks rows, prox_group"
    ):
        solve(problem()[3], RowSparsePenalty(1.0), loss.cross, algorithm="bcd")
    with pytest.raises(MethodError, match=r"int is not a Penalty .* is_zero, value, prox, dual_scale, kkt_residual"):
        require(1, Penalty)
    with pytest.raises(MethodError, match="lacks cross, cross_rotated, target_square, curvature, null, rotate"):
        require(object(), SmoothTerm)
