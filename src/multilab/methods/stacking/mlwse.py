"""MLWSE: the scores of several classifiers combined by one sparse weight matrix for all labels."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multilab.methods._weights import LabelWeight, Weights
from multilab.methods.base import MethodError, WeightedPartialClassifier
from multilab.methods.labels import is_partial
from multilab.methods.solvers.penalties import SparseGroupPenalty
from multilab.methods.solvers.solve import solve
from multilab.methods.stacking.objective import (
    CoupledLoss,
    LabelWeightedLoss,
    StackingLoss,
    classifier_rows,
    cosine_affinity,
    diagonal_support,
    label_coupling,
    unit_l1,
    unit_l21,
)

__all__ = ["MLWSE"]

_CHOICES = {
    "penalty": ("l1", "l21"),
    "loss_scale": ("sum", "mean"),
    "group_weight": ("sqrt_labels", "size"),
    "weights": ("full", "diagonal"),
}


class MLWSE(WeightedPartialClassifier):
    r"""Multi-label weighted stacked ensemble on base scores: MLWSE-L1 and MLWSE-L21.

    With S = [S^1 ... S^m] (n x mq, the scores of m classifiers for q labels, classifier by classifier), it
    finds W (mq x q) with column j = the weights of all scores for label j:

    .. math:: \min_W \tfrac12\|SW-Y\|_F^2 + \tfrac\beta2\operatorname{tr}(WHW^T) + \begin{cases}
              \alpha|W|_1 & \text{L1}\\ \alpha\lambda|W|_1 + (1-\alpha)\lambda\sum_k c_k\|W_k\|_F & \text{L21}
              \end{cases}

    where H is the graph Laplacian of the cosine similarities of the label columns. S must be out-of-fold
    scores (`StackedMLWSE` makes them).

    Parameters
    ----------
    penalty : {"l1", "l21"}
    alpha : float
        L1: strength, >= 0. L21: share of the entrywise penalty, in [0, 1].
    lam : float
        Strength of the L21 penalty; not used by L1.
    beta : float
        Strength of the label coupling.
    eta : float
        Ridge of the starting point (S^T S + eta I)^{-1} S^T Y; no effect on the minimum.
    groups : sequence of int, optional
        Columns of S per base classifier; q each when None.
    algorithm : {"admm", "fista", "apg", "bcd"}
        "admm" needs tens of iterations where the others need thousands. "apg" is the paper's Algorithm 1,
        "fista" the same with restarts, "bcd" the paper's Algorithm 2.
    tol, kkt_tol : float
        Stop when the relative duality gap is at most ``tol``, or the KKT residual, relative to
        max |S^T Y|, at most ``kkt_tol``. 0 switches a criterion off.
    max_iter : int
        Bound on iterations (sweeps over the blocks for "bcd").
    fit_intercept : bool
        The paper fits none.
    laplacian : {"laplacian", "cosine_distance"}
        H = D - R as the paper states, or 1 - R as its reference code has it (AiXia520/MLWSE at 3d31453,
        ``lasso.py``; indefinite, refused where the objective would not be convex).
    loss_scale : {"sum", "mean"}
        "mean" divides the squared error by n, as ``util/blockwise_descent_semisparse.py`` there does: its lam is
        lam here / n.
    group_weight : {"sqrt_labels", "size"}
        c_k = sqrt(q) as printed, or the root of the number of weights in the block.
    weights : {"full", "diagonal"}
        "diagonal": a label's scores serve this label only, eq. (2) read literally.
    threshold : float
        A label is assigned iff its score >= threshold (eq. 10).
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        Weights of the squared errors by the value of each label, as in `BinaryRelevance`; only for beta = 0 and without
        an intercept. One eigendecomposition per label.

    Attributes
    ----------
    W_ : ndarray of shape (mq, q)
    intercept_ : ndarray of shape (q,)
        Zero unless ``fit_intercept``.
    label_affinity_ : ndarray of shape (q, q)
        Cosine similarities of the label columns.
    objective_path_ : ndarray
        Objective after each iteration.
    dual_gap_ : float
        Relative duality gap at ``W_``.
    kkt_ : float
        KKT residual at ``W_`` divided by max |S^T Y|.
    n_iter_ : int
        0 where ``W_`` is known in closed form (nothing penalised, or W = 0).
    alpha_max_ : float
        L1 only: from here on W = 0.
    lambda_max_ : float
        L21 only: from here on W = 0, at the given alpha.

    Notes
    -----
    Deviations from the paper: exact step size for the malformed eq. (16), proximal step of eq. (20) for eq.
    (17), alpha lambda in eqs. (6), (8), label coupling in the gradient of eqs. (23)-(25), an all-zero label
    couples to nothing. Scores S W are real numbers around [0, 1], not confined to it: ``decision_function`` returns
    them, and there is no ``predict_proba``.

    X are S, out-of-fold scores of shape (n, mq), classifier by classifier. Of float32 scores the products are summed in
    float64, block by block; with weights, intercepts or unobserved labels they become float64 at once. Weights of the
    rows count in the squared errors and in the label affinity.

    **Missing labels**: the squared error is the sum over the observed labels, and the similarity of two labels is that
    of the rows that observe both. With label coupling or intercepts that takes an eigendecomposition of all mq q
    weights (up to 4096) instead of one per label, and not the algorithm "bcd".

    References
    ----------
    J. Xiao, M. Liu. Weighted superposition ensemble multiple label classification based on sparse
    regularization. Computer Applications and Software 41(5), 2024, doi:10.3969/j.issn.1000-386x.2024.05.042.
    English version with reference code (github.com/AiXia520/MLWSE, commit 3d31453): Y. Xia, K. Chen, Y. Yang.
    Multi-label classification with weighted classifier selection and stacked ensemble. Information Sciences 557, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.methods import MLWSE, BinaryRelevance, MLkNN
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_predict
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> members = MLkNN(k=5), BinaryRelevance(LogisticRegression())
    >>> scores = [cross_val_predict(member, X, y, cv=3, method="predict_proba") for member in members]
    >>> S = np.hstack(scores)
    >>> model = MLWSE(penalty="l1", alpha=0.5).fit(S, y)
    >>> model.W_.shape
    (6, 3)
    >>> bool(model.dual_gap_ <= model.tol)
    True
    >>> round(model.alpha_max_)
    35
    """

    _accepts_sparse = False
    _feature_types = (np.float64, np.float32)

    def __init__(
        self,
        penalty: Literal["l1", "l21"] = "l1",
        alpha: float = 1e-4,
        lam: float = 1e-3,
        beta: float = 1e-3,
        eta: float = 0.1,
        groups: Sequence[int] | None = None,
        algorithm: Literal["admm", "fista", "apg", "bcd"] = "admm",
        tol: float = 1e-6,
        kkt_tol: float = 1e-9,
        max_iter: int = 5000,
        fit_intercept: bool = False,
        laplacian: Literal["laplacian", "cosine_distance"] = "laplacian",
        loss_scale: Literal["sum", "mean"] = "sum",
        group_weight: Literal["sqrt_labels", "size"] = "sqrt_labels",
        weights: Literal["full", "diagonal"] = "full",
        threshold: float = 0.5,
        label_weight: LabelWeight = None,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.lam = lam
        self.beta = beta
        self.eta = eta
        self.groups = groups
        self.algorithm = algorithm
        self.tol = tol
        self.kkt_tol = kkt_tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.laplacian = laplacian
        self.loss_scale = loss_scale
        self.group_weight = group_weight
        self.weights = weights
        self.threshold = threshold
        self.label_weight = label_weight

    def _fit(self, S: Any, Y: Any, rows: np.ndarray | None) -> None:
        loss, penalty, start = self.problem(S, Y, rows)
        self.label_affinity_ = _affinity(Y, rows)
        unit = self.unit_penalty(*loss.cross.shape)
        setattr(self, "alpha_max_" if self.penalty == "l1" else "lambda_max_", unit.alpha_max(loss.cross))
        solution = solve(
            loss, penalty, start, algorithm=self.algorithm, tol=self.tol, kkt_tol=self.kkt_tol, max_iter=self.max_iter
        )
        if not solution.converged:
            other = "" if self.algorithm == "admm" else " or use algorithm='admm'"
            warnings.warn(
                f"MLWSE ({self.algorithm}) stopped after {solution.n_iter} iterations, relative duality gap "
                f"{solution.gap:.1e}; raise max_iter{other}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.W_ = solution.W
        self.intercept_ = np.zeros(self.n_labels_)
        if self.fit_intercept:
            self.intercept_ = _intercept(S, Y, rows, solution.W)
        self.objective_path_ = solution.objective_path
        self.dual_gap_, self.kkt_, self.n_iter_ = solution.gap, solution.kkt, solution.n_iter

    def problem(
        self, S: np.ndarray, Y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> tuple[Any, SparseGroupPenalty, np.ndarray]:
        """Return smooth term, penalty and starting point of the problem that `fit` solves.

        Parameters
        ----------
        S : ndarray of shape (n, mq)
        Y : ndarray of shape (n, q), 0/1, or int8 with -1 where a label is not observed
        sample_weight : ndarray of shape (n,), optional

        Raises
        ------
        MethodError
            As `fit`.
        """
        self._check_arguments()
        weights = Weights.of(sample_weight, self.label_weight, Y.shape[1])
        partial = is_partial(Y)
        if partial or weights.by_label:
            S = S.astype(np.float64, copy=False)
        H = label_coupling(_affinity(Y, sample_weight), self.laplacian)
        targets = np.where(Y == 1, 1.0, 0.0) if partial else Y.astype(np.float64)
        scale = 1.0
        if self.loss_scale == "mean":
            scale /= len(S) if sample_weight is None else sample_weight.sum()
        loss: StackingLoss | LabelWeightedLoss | CoupledLoss
        if partial and (self.beta or self.fit_intercept):
            observed = weights.matrix(Y) * (Y >= 0)
            loss = CoupledLoss.from_scores(
                S, targets, observed, self.beta * H, intercept=self.fit_intercept, scale=scale
            )
        elif partial:
            loss = LabelWeightedLoss.from_scores(S, targets, weights.matrix(Y) * (Y >= 0), scale)
        elif weights.by_label:
            loss = LabelWeightedLoss.from_scores(S, targets, weights.matrix(Y), scale)
        else:
            if self.fit_intercept or sample_weight is not None:
                S = S.astype(np.float64, copy=False)
            if self.fit_intercept:
                S = S - np.average(S, axis=0, weights=sample_weight)
                targets = targets - np.average(targets, axis=0, weights=sample_weight)
            if sample_weight is not None:
                root = np.sqrt(sample_weight)[:, None]
                S, targets = root * S, root * targets
            loss = StackingLoss.from_scores(S, targets, H, self.beta, scale)
        penalty = self.unit_penalty(*loss.cross.shape).scaled(self.alpha if self.penalty == "l1" else self.lam)
        return loss, penalty, loss.ridge(scale * self.eta)

    def unit_penalty(self, p: int, q: int) -> SparseGroupPenalty:
        """Return the penalty at strength 1 (alpha of L1, lam of L21) for weights of shape (p, q)."""
        if self.penalty == "l1" and self.weights == "full" and self.groups is None and p % q:
            return unit_l1([slice(0, p)])  # the L1 norm has no groups, so any number of columns will do
        rows = classifier_rows(p, q, self.groups)
        support = diagonal_support(rows, q) if self.weights == "diagonal" else None
        if self.penalty == "l1":
            return unit_l1(rows, support)
        return unit_l21(rows, q, self.alpha, self.group_weight, support)

    def _score_kind(self) -> str:
        return "score"

    def _scores(self, X: Any) -> np.ndarray:
        return X @ self.W_ + self.intercept_

    def _check_arguments(self) -> None:
        self._check_choices(**_CHOICES)
        for name in ("alpha", "lam", "beta", "eta", "tol", "kkt_tol"):
            if not (getattr(self, name) >= 0 and np.isfinite(getattr(self, name))):
                raise MethodError(f"{name} must be a finite number >= 0, not {getattr(self, name)!r}")
        if self.penalty == "l21" and self.alpha > 1:
            raise MethodError(f"alpha mixes the two parts of L21 and lies in [0, 1]; it is {self.alpha}")
        if self.eta == 0:
            raise MethodError("eta must be positive: S^T S alone is singular for real scores")
        if self.label_weight is not None and (self.beta or self.fit_intercept or self.algorithm == "bcd"):
            raise MethodError(
                "label_weight requires beta=0, fit_intercept=False and an algorithm other than 'bcd': with weights "
                "per label the problem is diagonal without label coupling only"
            )
        if self.max_iter < 1:
            raise MethodError(f"max_iter must be at least 1, not {self.max_iter}")


def _affinity(Y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
    """Return the cosine similarities of the label columns, each row counted ``sample_weight`` times."""
    if is_partial(Y):
        root = 1.0 if sample_weight is None else np.sqrt(sample_weight)[:, None]
        return cosine_affinity(root * Y, Y >= 0)
    return cosine_affinity(Y if sample_weight is None else np.sqrt(sample_weight)[:, None] * Y)


def _intercept(S: np.ndarray, Y: np.ndarray, sample_weight: np.ndarray | None, W: np.ndarray) -> np.ndarray:
    """Return the intercepts for weights W: those of the means of the rows that observe a label."""
    if not is_partial(Y):
        return np.average(Y, axis=0, weights=sample_weight) - np.average(S, axis=0, weights=sample_weight) @ W
    weight = (Y >= 0) * (1.0 if sample_weight is None else sample_weight[:, None])
    return ((Y == 1) * weight - S @ W * weight).sum(axis=0) / weight.sum(axis=0)
