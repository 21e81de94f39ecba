"""Kernel extreme learning machine: ridge regression of -1/+1 labels on a kernel matrix, in closed form."""

from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve
from scipy.special import expit

from multilab.methods._array_api import keep_namespace
from multilab.methods._weights import LabelWeight, Weights
from multilab.methods.base import MethodError, WeightedPartialClassifier
from multilab.methods.elm._targets import ScoreThreshold, Targets
from multilab.methods.kernels import kernel_matrix, resolve_gamma
from multilab.methods.ties import merge_ties

__all__ = ["KernelELM"]


class KernelELM(ScoreThreshold, WeightedPartialClassifier):
    """Multi-label kernel extreme learning machine (ML-KELM).

    Solves beta = (Omega + I / C)^(-1) Y with Omega_ij = K(x_i, x_j) and Y in {-1, +1}; the score of a label
    is f(x) = k(x)^T beta_j.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "sigmoid"}, default="rbf"
        rbf is exp(-gamma |x - z|^2). Programs that divide by a width instead have gamma = 1 / width.
    gamma : float or {"scale", "auto", "median"}, default=1.0
        See `multilab.methods.kernels.resolve_gamma`.
    C : float, default=1.0
        Weight of the training error, positive; the ridge is 1 / C.
    degree : float, default=3
        Of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial and sigmoid kernels.
    threshold : float, default=0.0
        A label is assigned iff its score is >= threshold.
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        Weights of the squared errors by the value of each label, as in `BinaryRelevance`;
        with them, each distinct label column has a system of its own to solve.

    Attributes
    ----------
    coef_ : ndarray of shape (n, p)
        beta, one column for each of the p distinct columns of Y.
    column_ : ndarray of shape (q,)
        Which column of ``coef_`` belongs to each label.
    gamma_ : float
        The kernel width as a number.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label is assigned iff f >= threshold (the paper: f > 0; they differ only at 0 exactly). ``decision_function``
    is f, whatever the threshold. ``predict_proba``, and with it the scores of ``predict_with_scores``, is
    1 / (1 + exp(-2 (f - threshold))): it has the same order and the same decisions at 0.5 and lies in (0, 1), but it is
    a squashed regression and not calibrated.

    Weights multiply the squared errors, beta = (Omega + diag(1 / (C w)))^(-1) Y: a weight of 2 is the row twice. With
    weights of the labels of each row, each label has a system of its own; a width "scale" or "median" counts a row by
    the mean of its weights.

    Labels with equal training columns, above all those without a positive, get bit-identical scores: each
    distinct column is solved and multiplied once. So ties are ties whatever the order of the labels or the
    BLAS.
    Scores that differ by rounding errors only are made equal, see `multilab.methods.ties.merge_ties`.

    **Missing labels**: the expansion of a label is the solution on the rows that observe it, 0 on the others: one
    factorisation per set of rows. A width "scale" or "median" is that of all rows.

    References
    ----------
    The comparator of the ML-EKELM paper, its eq. (22); G.-B. Huang, H. Zhou, X. Ding, R. Zhang. Extreme
    learning machine for regression and multiclass classification. IEEE Trans. SMC-B 42(2), 2012, eq. (38).

    Examples
    --------
    >>> from multilab.methods import KernelELM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = KernelELM(C=10.0).fit(X, y)
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 0, 0]])
    """

    _accepts_cell_weights = True

    def __init__(
        self,
        kernel: Literal["rbf", "linear", "poly", "sigmoid"] = "rbf",
        gamma: float | Literal["scale", "auto", "median"] = 1.0,
        C: float = 1.0,
        degree: float = 3,
        coef0: float = 0.0,
        threshold: float = 0.0,
        label_weight: LabelWeight = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.degree = degree
        self.coef0 = coef0
        self.threshold = threshold
        self.label_weight = label_weight

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        if not self.C > 0:
            raise MethodError(f"C={self.C}: it must be positive")
        self._check_threshold()
        weights = Weights.of(weight, self.label_weight, self.n_labels_)
        self.gamma_ = resolve_gamma(self.gamma, X, weights.rows)
        self._X = X
        targets = Targets.of(Y, weights)
        self.column_ = targets.column
        omega = self._kernel(X)
        diagonal = omega.diagonal().copy()

        def coefficients(values: np.ndarray, weight: np.ndarray | None, rows: np.ndarray | None) -> np.ndarray:
            ridge = 1.0 / (self.C if weight is None else self.C * weight)
            if rows is None:
                omega.flat[:: len(omega) + 1] = diagonal + ridge
                return _solve_symmetric(omega, values)
            part = omega[np.ix_(rows, rows)]
            part.flat[:: len(part) + 1] += ridge
            solution = np.zeros((len(omega), values.shape[1]))
            solution[rows] = _solve_symmetric(part, values)
            return solution

        self.coef_ = targets.solve(coefficients)

    @keep_namespace
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return 1 / (1 + exp(-2 (f - threshold))), shape (m, q): ordered as f, 0.5 at the threshold."""
        return self._as_probabilities(expit(2.0 * (self._scores(self._validate_predict(X)) - self.threshold)))

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        scores = self._scores(X)
        # those of predict_proba: whoever stacks this classifier must not see two scales
        return expit(2.0 * (scores - self.threshold)), self._decide(scores)

    def _scores(self, X: Any) -> np.ndarray:
        return merge_ties(self._kernel(X, self._X) @ self.coef_)[:, self.column_]

    def _kernel(self, X: Any, Z: Any = None) -> np.ndarray:
        return kernel_matrix(X, Z, kernel=self.kernel, gamma=self.gamma_, degree=self.degree, coef0=self.coef0)


def _solve_symmetric(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve by Cholesky; the sigmoid kernel and odd polynomials may be indefinite and take LDL^T."""
    try:
        return cho_solve(cho_factor(matrix, lower=True), right)
    except LinAlgError:
        pass
    try:
        return solve(matrix, right, assume_a="sym")
    except LinAlgError as error:
        raise MethodError(f"Omega + I / C is singular ({error}); choose another C or kernel") from error
