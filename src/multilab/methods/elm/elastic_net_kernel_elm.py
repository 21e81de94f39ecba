"""Elastic-net kernel extreme learning machine (ML-EKELM): kernel expansions with sparse, shrunken weights."""

import warnings
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from multilab.methods._weights import Weights
from multilab.methods.base import MethodError, WeightedPartialClassifier
from multilab.methods.elm._elastic_net import KernelLoss, elastic_net
from multilab.methods.elm._targets import ScoreThreshold
from multilab.methods.kernels import kernel_matrix, resolve_gamma
from multilab.methods.labels import is_partial, observed_groups
from multilab.methods.solvers.algorithms import coordinate_descent
from multilab.methods.solvers.certificates import Solution
from multilab.methods.solvers.penalties import RowSparsePenalty
from multilab.methods.ties import merge_ties

__all__ = ["ElasticNetKernelELM"]

_CHOICES = {
    "penalty": ("l1", "l21"),
    "ridge": ("frobenius", "rkhs"),
    "loss_scale": ("sum", "mean"),
    "solver": ("admm", "cd"),
    "stop": ("gap", "step"),
}


class ElasticNetKernelELM(ScoreThreshold, WeightedPartialClassifier):
    r"""Multi-label elastic-net kernel extreme learning machine.

    With Omega_ij = exp(-gamma |x_i - x_j|^2) and Y in {-1, +1} it finds

    .. math:: \min_\beta \tfrac12\|Y - \Omega\beta\|_F^2 + \lambda\bigl(\alpha|\beta| + (1-\alpha)
              \operatorname{tr}(\beta^T R\beta)\bigr),

    eq. (18) of the paper with C = 1 (only lambda / C matters). The score of a label is f(x) = k(x)^T beta_j.

    Parameters
    ----------
    penalty : {"l1", "l21"}, default="l1"
        \|beta\|: sum of the absolute values as printed, or of the norms of the rows, which selects training
        points.
    ridge : {"frobenius", "rkhs"}, default="frobenius"
        R = I as printed, or Omega: then alpha = 0 is `KernelELM` with C = 1 / (2 lambda).
    gamma : float or {"scale", "auto", "median"}, default=1.0
        See `multilab.methods.kernels.resolve_gamma`.
    lam : float, default=0.1
        lambda, positive.
    alpha : float, default=0.02
        Share of the sparse penalty, in [0, 1].
    fit_intercept : bool, default=False
        Unpenalised constants; only for ridge "frobenius".
    loss_scale : {"sum", "mean"}, default="sum"
        "mean" divides the squared error by n, as scikit-learn does. Its ``alpha`` a and ``l1_ratio`` rho are
        lam = a (1 + rho) / 2 and alpha = 2 rho / (1 + rho) then.
    solver : {"admm", "cd"}, default="admm"
        "admm" certifies small gaps in tens of iterations after one eigendecomposition. "cd" is the paper's
        cyclic coordinate descent: for its few sweeps, and for figures; only for ridge "frobenius".
    max_sweeps : int, default=1000
        Bound on the sweeps, or on the iterations of ADMM.
    tol : float, default=1e-4
        Relative duality gap to stop at. 0: run all sweeps.
    stop : {"gap", "step"}, default="gap"
        "step" (solver "cd") is scikit-learn's rule, see `coordinate_descent`.
    threshold : float, default=0.0
        A label is assigned iff its score is >= threshold (the paper: > 0).

    Attributes
    ----------
    coef_ : ndarray of shape (n, p)
        beta, one column for each of the p distinct columns of Y.
    column_ : ndarray of shape (q,)
        Which column of ``coef_`` belongs to each label.
    intercept_ : ndarray of shape (p,)
    gamma_ : float
        The kernel width as a number.
    lambda_max_ : float
        From here on beta = 0, at the given alpha.
    objective_path_ : ndarray
        Objective after each sweep; for "l1" its sum over the distinct columns.
    dual_gap_ : float
        Relative duality gap at ``coef_``. Coordinate descent uses the residual as it is, which bounds little
        where lambda is small.
    kkt_ : float
        KKT residual divided by max |Omega^T Y|.
    n_iter_ : int
        0 where beta is known in closed form (alpha = 0, or beta = 0).
    zero_shares_ : tuple of float
        Shares of zero weights and of training points without any weight.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The printed update, eq. (20), lacks the norm of the kernel column and the 2 of the ridge, and diverges; see
    `coordinate_descent`. Equal label columns, above all those without a positive, are solved once and get bit-identical
    scores; under "l21" they count as often as they are. Scores that differ by rounding errors only are made equal, see
    `multilab.methods.ties.merge_ties`.

    Memory is O(n^2). Weights of the rows, and with "l1" those of the labels of each row, are those of their squared
    errors, and only for ridge "frobenius". A weight of 2 is not the row twice, since the penalty is on one coefficient
    per row.

    **Missing labels**: with "l1" the problem of a label is that of the rows that observe it, its weights 0 on the
    others; gaps, KKT residuals and iterations are the largest of these problems, ``objective_path_`` holds the sum of
    their objectives. So it is with weights of the labels of each row. A width "scale" or "median" is that of all rows.

    Objective and gap belong to the convex problem. The printed results come from a few sweeps, far from its minimum;
    what comes nearest to them is ``penalty="l21"`` with an intercept, ``solver="cd"``, ``stop="step"`` and ``tol=0.4``
    (conf/method/mlekelm_rowsparse.yaml).

    References
    ----------
    Y.-B. Wang, G.-S. Pei, Y.-S. Cheng. Multi-label learning algorithm of an elastic net kernel extreme learning
    machine. CAAI Transactions on Intelligent Systems 14(4), 2019, 831-842, doi:10.11992/tis.201806005.

    Examples
    --------
    >>> from multilab.methods import ElasticNetKernelELM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = ElasticNetKernelELM(lam=0.5, alpha=0.5).fit(X, y)
    >>> model.coef_.shape
    (60, 3)
    >>> bool(model.dual_gap_ <= model.tol)
    True
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 0, 0]])
    """

    def __init__(
        self,
        penalty: Literal["l1", "l21"] = "l1",
        ridge: Literal["frobenius", "rkhs"] = "frobenius",
        gamma: float | Literal["scale", "auto", "median"] = 1.0,
        lam: float = 0.1,
        alpha: float = 0.02,
        fit_intercept: bool = False,
        loss_scale: Literal["sum", "mean"] = "sum",
        solver: Literal["admm", "cd"] = "admm",
        max_sweeps: int = 1000,
        tol: float = 1e-4,
        stop: Literal["gap", "step"] = "gap",
        threshold: float = 0.0,
    ) -> None:
        self.penalty = penalty
        self.ridge = ridge
        self.gamma = gamma
        self.lam = lam
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.loss_scale = loss_scale
        self.solver = solver
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.stop = stop
        self.threshold = threshold

    @property
    def _accepts_missing_labels(self) -> bool:  # type: ignore[override]
        return self.penalty == "l1"  # "l21" selects the same training points for all labels

    @property
    def _accepts_cell_weights(self) -> bool:  # type: ignore[override]
        return self.penalty == "l1"

    def fit_watched(self, X: Any, y: Any, watch: Callable[[float], object]) -> Self:
        """Fit by coordinate descent, calling ``watch`` with the objective at beta = 0 and after each sweep.

        There ``coef_``, ``intercept_``, ``column_`` and ``gamma_`` are those of the sweep, so it can ask for scores.

        Raises
        ------
        MethodError
            As `fit`, and if the solver is not "cd".
        """
        if self.solver != "cd":
            raise MethodError(f"solver={self.solver!r}: only the sweeps of 'cd' can be watched")
        X, Y = self._validate_fit(X, y)
        self._fit(X, Y, None, watch)
        return self

    def _fit(
        self, X: Any, Y: np.ndarray, rows: np.ndarray | None, watch: Callable[[float], object] | None = None
    ) -> None:
        self._check_arguments()
        if self.ridge == "rkhs" and rows is not None:
            raise MethodError("sample_weight requires ridge='frobenius'; for ridge='rkhs' use KernelELM")
        self.gamma_ = resolve_gamma(self.gamma, X, Weights.of(rows, None, self.n_labels_).rows)
        self._X = X
        if is_partial(Y) or (rows is not None and rows.ndim == 2):
            if watch:
                raise MethodError("the sweeps can be watched with complete labels only")
            self._solve_observed(X, Y, rows)
            return
        distinct, self.column_, counts = np.unique(Y, axis=1, return_inverse=True, return_counts=True)
        weights = np.sqrt(counts) if self.penalty == "l21" else np.ones(len(counts))
        omega = kernel_matrix(X, kernel="rbf", gamma=self.gamma_)
        targets = weights * (2.0 * distinct - 1.0)
        omega_mean = np.average(omega, axis=0, weights=rows) if self.fit_intercept else np.zeros(len(omega))
        targets_mean = np.average(targets, axis=0, weights=rows) if self.fit_intercept else np.zeros(len(counts))
        if self.fit_intercept:
            omega -= omega_mean
        errors = targets - targets_mean
        if rows is not None:
            omega *= np.sqrt(rows)[:, None]
            errors *= np.sqrt(rows)[:, None]

        def keep(W: np.ndarray) -> None:
            self.coef_ = W / weights
            self.intercept_ = (targets_mean - omega_mean @ W) / weights

        def show(W: np.ndarray, objective: float) -> None:
            keep(W)
            if watch:
                watch(objective)

        solution = self._solve(omega, errors, weights, show, None if rows is None else float(rows.sum()))
        keep(solution.W)
        self.objective_path_, self.n_iter_ = solution.objective_path, solution.n_iter
        self.dual_gap_, self.kkt_ = solution.gap, solution.kkt
        if self.tol > 0 and not solution.converged:
            other = "" if self.solver == "admm" else ", use solver='admm'"
            warnings.warn(
                f"stopped after {solution.n_iter} sweeps at a relative duality gap of {solution.gap:.1e}; raise "
                f"max_sweeps{other}, or ask for a number of sweeps by tol=0",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _solve_observed(self, X: Any, Y: np.ndarray, weight: np.ndarray | None) -> None:
        """Solve for the labels that the same rows observe with the same weights at a time, on these rows alone."""
        cells = weight if weight is not None and weight.ndim == 2 else None
        keys = Y if cells is None else np.vstack([Y, cells])
        _, first, self.column_ = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        distinct, cells = Y[:, first], None if cells is None else cells[:, first]
        self.coef_, self.intercept_ = np.zeros(distinct.shape), np.zeros(distinct.shape[1])
        parts = []
        for columns, rows in observed_groups(distinct) if cells is None else _weighted_groups(cells):
            of_rows = weight if cells is None else cells[:, columns[0]]
            part = clone(self).set_params(gamma=self.gamma_)
            part.fit(X[rows], distinct[np.ix_(rows, columns)], None if of_rows is None else of_rows[rows])
            self.coef_[np.ix_(rows, columns)] = part.coef_[:, part.column_]
            self.intercept_[columns] = part.intercept_[part.column_]
            parts.append(part)
        self.lambda_max_ = max(part.lambda_max_ for part in parts)
        self.objective_path_ = np.array([sum(part.objective_path_[-1] for part in parts)])
        self.dual_gap_, self.kkt_ = (max(getattr(part, name) for part in parts) for name in ("dual_gap_", "kkt_"))
        self.n_iter_ = max(part.n_iter_ for part in parts)

    def _solve(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray,
        watch: Callable[[np.ndarray, float], object],
        total_weight: float | None,
    ) -> Solution:
        scale = 1.0 / (total_weight or len(design)) if self.loss_scale == "mean" else 1.0
        by_row = self.penalty == "l21"
        self.lambda_max_ = scale * RowSparsePenalty(self.alpha, by_row).alpha_max(design.T @ targets)
        if self.solver == "cd":
            lam = self.lam / scale
            solution = coordinate_descent(
                design,
                targets,
                RowSparsePenalty(lam * self.alpha, by_row),
                2.0 * lam * (1.0 - self.alpha),
                max_sweeps=self.max_sweeps,
                tol=self.tol,
                stop=self.stop,
                scale=weights,
                watch=lambda W, objective: watch(W, scale * objective),
            )
            solution.objective_path[:] *= scale
            return solution
        if self.fit_intercept or total_weight is not None:
            loss = KernelLoss.from_design(design, targets, scale=scale)
        else:
            loss = KernelLoss.from_kernel(design, targets, ridge=self.ridge, scale=scale)
        return elastic_net(loss, self.lam, self.alpha, by_row=by_row, tol=self.tol, max_iter=self.max_sweeps)

    @property
    def zero_shares_(self) -> tuple[float, float]:
        """Shares of zero weights and of training points without any weight."""
        zero = self.coef_[:, self.column_] == 0
        return float(zero.mean()), float(zero.all(axis=1).mean())

    def _scores(self, X: Any) -> np.ndarray:
        kernel = kernel_matrix(X, self._X, kernel="rbf", gamma=self.gamma_)
        return merge_ties(kernel @ self.coef_ + self.intercept_)[:, self.column_]

    def _check_arguments(self) -> None:
        self._check_choices(**_CHOICES)
        self._check_threshold()
        if not (self.lam > 0 and np.isfinite(self.lam)):
            raise MethodError(f"lam={self.lam}: it must be positive and finite")
        if not 0 <= self.alpha <= 1:
            raise MethodError(f"alpha={self.alpha}: it mixes two penalties and lies in [0, 1]")
        if not (self.max_sweeps >= 1 and self.tol >= 0):
            raise MethodError(f"max_sweeps={self.max_sweeps} must be at least 1 and tol={self.tol} at least 0")
        if self.ridge == "rkhs" and (self.fit_intercept or self.solver == "cd"):
            raise MethodError("ridge='rkhs' requires solver='admm' and fit_intercept=False")
        if self.stop == "step" and self.solver != "cd":
            raise MethodError("stop='step' requires solver='cd'")


def _weighted_groups(cells: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the labels that have the same weights in all rows, and the rows in which these are not 0."""
    columns, group = np.unique(cells, axis=1, return_inverse=True)
    return [(np.flatnonzero(group == one), np.flatnonzero(column)) for one, column in enumerate(columns.T)]
