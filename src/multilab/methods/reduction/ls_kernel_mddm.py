"""Kernel MDDM by least squares, without and with a penalty."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.methods.reduction._regression import (
    Regression,
    chosen_eta,
    micro_f1_loss,
    regressions,
    relative_residual,
    squared_error,
)
from multilab.methods.reduction.equations import equations
from multilab.methods.reduction.kernel_reducer import KernelReducer, equal_rows
from multilab.methods.reduction.label_problem import centred_labels, group_means, label_directions

__all__ = ["LSKernelMDDM"]

_SOLVED = 1e-8  # relative residual below which K P = B counts as solved exactly


class LSKernelMDDM(KernelReducer):
    """Least squares kernel MDDM: LSkMDDM (eta = 0) and rLSkMDDM (eta > 0).

    Kernel MDDM maximises the Hilbert-Schmidt independence criterion between the embedding K P and the labels. Its
    eigenproblem K (H L H) K p = lambda K K p (1) is solved in two steps (Theorem 1): the label problem
    H L H b = lambda b (2) by an eigenproblem of c labels (4), then K p = b by least squares (3), in rLSkMDDM with the
    penalty eta |p|^2 (5).

    Parameters
    ----------
    n_components : int or None, default=None
        Number of dimensions r, at most the rank of the centred label matrix; None takes that rank.
    gamma : float or {"median", "scale", "auto"}, default="median"
        Width of the kernel exp(-gamma |x - x'|^2). "median" is 1 / (2 s^2), s the median distance of two training rows
        (of 4096 of them if there are more).
    gamma_factor : float, default=1.0
        Factor on gamma. With 2 the kernel is exp(-|x - x'|^2 / s^2), the other reading of the paper's "standard
        deviation".
    center_kernel : bool, default=False
        Whether H K H replaces K; kernels of new rows are centred accordingly. The paper does not centre.
    eta : float or sequence of float, default=0.0
        Strength of the penalty. Of several, the best one by ``select_by`` in cross-validation is taken.
    penalty : {"l2", "rkhs"}, default="l2"
        "l2" is eta |p|^2 of eq. (5), "rkhs" is eta p^T K p (kernel ridge regression).
    solver : {"cholesky", "cg", "lsqr"}, default="cholesky"
        "lsqr" is the solver of the paper; a small ``max_iter`` regularises. With eta = 0, "cg" needs
        one product per step where "lsqr" needs two, and "cholesky" is the exact solution: a Cholesky factor of the
        kernel of the distinct rows or, if that is numerically singular, the eigendecomposition of K.
    range_projection : bool, default=True
        Whether the centred labels are first projected on the range of K: the mean over equal rows. Without it
        Theorem 1 (least squares is equivalent to kMDDM) does not hold if equal rows have different labels.
    tol : float, default=1e-10
        Tolerance of "cg" and "lsqr" on the relative residual.
    max_iter : int, default=1000
        Maximum number of iterations of "cg" and "lsqr".
    cv : int, default=3
        Number of folds for the choice of eta.
    select_by : {"error", "micro_f1"}, default="error"
        Criterion for the choice of eta on the rows held out: the squared error of the targets, or the micro F1 of
        ``classifier`` on the embedding. The squared error gives all targets the same weight and prefers stronger
        penalties.
    classifier : estimator, optional
        Classifier for "micro_f1"; None takes ML-kNN with ten neighbours.
    reorthogonalise : bool, default=False
        Whether "lsqr" makes each new direction orthogonal to all earlier ones, which takes the memory of two embeddings
        per step: with few steps, rounding errors then do not show in the result.

    Attributes
    ----------
    coef_ : ndarray of shape (n, r)
        Expansion coefficients P.
    eigenvalues_ : ndarray of shape (r,)
        Eigenvalues of the label problem, descending.
    eta_ : float
        The chosen strength of the penalty.
    residual_ : float
        Relative residual |K P - B| / |B|.
    n_iter_ : int
        Number of iterations; 0 for "cholesky".
    gamma_, n_features_in_

    Notes
    -----
    The display formulas are missing from the paper, and it refers to the problems (1) and (2) by the same number. They
    are reconstructed from its text: only K K on the right-hand side of (1) makes its proof of Theorem 1 valid. The
    signs of the columns depend on the labels alone.

    **Missing labels**: an unobserved label counts as its mean among the rows that observe it (its centred value is 0).

    References
    ----------
    J. Qiu. The LSkMDDM paper (Suzhou University of Science and Technology): (1) to (5), Theorem 1, Lemma 1.

    Examples
    --------
    >>> from multilab.methods import LSKernelMDDM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = LSKernelMDDM(n_components=2, eta=0.1).fit(X, y)
    >>> model.transform(X).shape
    (60, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        gamma: float | Literal["median", "scale", "auto"] = "median",
        gamma_factor: float = 1.0,
        center_kernel: bool = False,
        eta: float | Sequence[float] = 0.0,
        penalty: Literal["l2", "rkhs"] = "l2",
        solver: Literal["cholesky", "cg", "lsqr"] = "cholesky",
        range_projection: bool = True,
        tol: float = 1e-10,
        max_iter: int = 1000,
        cv: int = 3,
        select_by: Literal["error", "micro_f1"] = "error",
        classifier: Any = None,
        reorthogonalise: bool = False,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.center_kernel = center_kernel
        self.eta = eta
        self.penalty = penalty
        self.solver = solver
        self.range_projection = range_projection
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.select_by = select_by
        self.classifier = classifier
        self.reorthogonalise = reorthogonalise

    def coefficients(self, K: np.ndarray, X: Any, Y: np.ndarray) -> np.ndarray:
        """See `KernelReducer`."""
        how = Regression(self.solver, self.penalty, self.tol, self.max_iter, self.reorthogonalise)
        etas = [float(eta) for eta in np.atleast_1d(self.eta)]
        if not etas or min(etas) < 0 or (len(etas) > 1 and min(etas) == 0):
            raise MethodError(f"eta={self.eta}: give 0, a positive number, or positive numbers to choose from")
        self._check_choices(select_by=("error", "micro_f1"))
        groups, Q = equal_rows(X), centred_labels(Y)
        if etas == [0.0] and self.solver == "cholesky":
            system = equations(K, groups)  # eq. (3)
            B = self._targets(system.project(Q) if self.range_projection else Q)
            self.eta_, self.n_iter_, P = 0.0, 0, system.solve(B)
        else:
            # iterations and penalties need no factor of K: equal rows alone determine the projection
            B = self._targets(group_means(Q, groups)[groups] if self.range_projection else Q)
            self.eta_ = etas[0] if len(etas) == 1 else self._chosen_eta(how, K, B, Y, etas)
            ((P, self.n_iter_),) = regressions(how, K, B, [self.eta_])
        self.residual_ = relative_residual(K, P, B)
        self._B = B
        return P

    def _chosen_eta(self, how: Regression, K: np.ndarray, B: np.ndarray, Y: np.ndarray, etas: list[float]) -> float:
        """Return the best eta by ``select_by``."""
        if self.select_by == "error":
            return chosen_eta(how, K, B, etas, self.cv, squared_error(B))
        classifier = MLkNN(tie_tol=1e-9) if self.classifier is None else self.classifier
        return chosen_eta(how, K, B, etas, self.cv, micro_f1_loss(Y, classifier))

    def _embedding(self, K: np.ndarray) -> np.ndarray:
        # Solved exactly, K P is B, and rows with equal labels coincide: rounding errors of the product would order
        # such rows at random in a nearest neighbour search.
        return self._B if self.residual_ < _SOLVED else super()._embedding(K)

    def _targets(self, Q: np.ndarray) -> np.ndarray:
        """Return the targets B of K P, shape (n, r), from the centred labels, shape (n, c); eqs. (2) and (4)."""
        directions = label_directions(Q, self.n_components)
        self.eigenvalues_ = directions.eigenvalues
        return directions.B
