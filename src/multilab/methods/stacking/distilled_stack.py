"""A forest and a kernel regression trained on the outputs of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.forests.compact_forest import PackedForest
from multilab.methods.kernels import kernel_matrix, resolve_gamma
from multilab.methods.neighbours._search import exact_neighbours
from multilab.methods.out_of_fold import score_matrix
from multilab.methods.stacking._combinations import constant_labels, with_constants
from multilab.methods.stacking.portfolio_stack import PortfolioStack
from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

__all__ = ["DistilledStack"]

_NEIGHBOURS = 5  # nearest rows towards which copies of a row are moved
_FOLDS = 3  # on which width and ridge of the kernel regression are chosen
_SHARES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
_WIDTHS = [1.0, 0.3, 0.1]
_RIDGES = [1.0, 0.1, 0.01]


class DistilledStack(MultiLabelClassifier):
    """Forest and kernel regression trained on the outputs of a stack: a prediction takes at most 2 ms.

    A stack is fitted to the training rows. Kernel ridge regression learns a mean of its out-of-fold scores and the true
    labels on these rows, and its scores on synthetic rows between neighbours. A forest learns the labels. The mean of
    their log-odds has a weight that is best on held-out rows, as have the kernel and its ridge. The stack is not kept.

    Parameters
    ----------
    stack : PortfolioStack, optional
        The teacher, whose second level has ``out_of_fold_scores_`` in [0, 1]. ``PortfolioStack(cv=3)`` when None.
    estimator : multi-output regressor, optional
        100 extremely randomised trees with at least 3 rows per leaf and 30 % of the features per split when None.
    label_share : float, default=0.5
        Weight of the true labels in the targets of the training rows, in [0, 1].
    n_copies : int, default=3
        Synthetic rows per training row.
    random_state : int or RandomState, optional
        Seed of the stack, the synthetic rows and the regressor; 0 for the rows when None.

    Attributes
    ----------
    estimator_ : regressor
        Fitted to the labels.
    kernel_share_, width_, ridge_ : float
        Weight of the kernel regression, of 0, 0.1, ..., 0.8, factor of its gamma, of 1, 0.3 and 0.1, and its ridge, of
        1, 0.1 and 0.01: those with the least log loss in three folds. Both models learn the labels there.
    targets_ : ndarray of shape (n, q)
        What the kernel regression has learnt on the training rows.
    teacher_scores_ : ndarray of shape (n, q)
        Out-of-fold scores of the stack.

    Notes
    -----
    In-sample scores of the stack would teach its memory of the training rows; hence the out-of-fold scores, whose
    models have seen fewer rows. The synthetic rows are scored by the stack of all rows: a row is moved towards one of
    its five nearest neighbours, by up to half of the distance.

    The kernel is Gaussian with gamma = ``width_`` / (d variance) on log-odds, and at most 1,500 evenly spaced training
    rows are centres: standardise the features. Scores are at least .01 and at most .99 in its log-odds.

    A forest of scikit-learn is read as arrays whose trees are all walked at once, with the same predictions. Trees that
    learn scores instead of labels were no better, and depend on the order of the labels and the storage of X: sums of
    fractions change by rounding, which decides between splits that divide the rows equally.

    References
    ----------
    C. Bucila, R. Caruana, A. Niculescu-Mizil. Model compression. KDD 2006.

    Examples
    --------
    >>> from multilab.methods import DistilledStack, MLkNN, PortfolioStack, RFPCT
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=90, n_features=6, n_classes=3, random_state=0)
    >>> stack = PortfolioStack([("mlknn", MLkNN(k=5)), ("forest", RFPCT(n_estimators=10))], cv=3)
    >>> model = DistilledStack(stack, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (90, 3)
    """

    _min_samples = 2

    def __init__(
        self,
        stack: PortfolioStack | None = None,
        estimator: BaseEstimator | None = None,
        label_share: float = 0.5,
        n_copies: int = 3,
        random_state: Any = None,
    ) -> None:
        self.stack = stack
        self.estimator = estimator
        self.label_share = label_share
        self.n_copies = n_copies
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        if not 0 <= self.label_share <= 1:
            raise MethodError(f"label_share={self.label_share!r} must be between 0 and 1")
        if self.n_copies < 0:
            raise MethodError(f"n_copies={self.n_copies!r} must be 0 or more")
        stack = clone(PortfolioStack(cv=3) if self.stack is None else self.stack)
        student = clone(_forest() if self.estimator is None else self.estimator)
        random = check_random_state(0 if self.random_state is None else self.random_state)
        if self.random_state is not None:
            for model in (stack, student):
                seed = int(random.randint(2**31 - 1))
                model.set_params(**{name: seed for name in model.get_params() if name == "random_state"})
        stack.fit(X, Y)
        if not hasattr(stack, "out_of_fold_scores_"):
            raise MethodError(f"{type(stack.final_estimator_).__name__} has no out_of_fold_scores_ to teach with")
        self.teacher_scores_ = np.clip(stack.out_of_fold_scores_, 0.0, 1.0)
        self.targets_ = self.label_share * Y + (1 - self.label_share) * self.teacher_scores_
        rows, targets = X, self.targets_
        if self.n_copies:
            synthetic = _between_neighbours(X, self.n_copies, random)
            rows = sp.vstack([X, synthetic]).tocsr() if sp.issparse(X) else np.vstack([X, synthetic])
            targets = np.vstack([targets, np.clip(score_matrix(stack, synthetic, Y.shape[1]), 0.0, 1.0)])
        self.kernel_share_, self.width_, self.ridge_ = _held_out_choice(student, X, Y)
        (self._kernel,) = KernelRegression.fit(rows, targets, X.shape[0], self.width_, [self.ridge_])
        self.estimator_ = student.fit(X, _targets(Y))
        self._forest = _packed(self.estimator_)
        self._constant = constant_labels(Y)

    def _scores(self, X: Any) -> np.ndarray:
        scores = _mixed(_forest_scores(self._forest, X, self.n_labels_), self._kernel(X), self.kernel_share_)
        return with_constants(scores, self._constant)


def _held_out_choice(student: BaseEstimator, X: Any, Y: np.ndarray) -> tuple[float, float, float]:
    """Return weight, width and ridge of the kernel regression with the least log loss on held-out rows.

    Of equal ones the first: the smaller weight, then the values that come first.
    """
    trees = np.empty(Y.shape)
    margins = {width: np.empty((len(_RIDGES), *Y.shape)) for width in _WIDTHS}
    for train, test in IterativeStratifiedKFold(min(_FOLDS, len(Y)), random_state=0).split(X, Y):
        forest = _packed(clone(student).fit(X[train], _targets(Y[train])))
        trees[test] = _forest_scores(forest, X[test], Y.shape[1])
        for width in _WIDTHS:
            models = KernelRegression.fit(X[train], Y[train].astype(float), len(train), width, _RIDGES)
            margins[width][:, test] = [model(X[test]) for model in models]
    signs = np.where(Y > 0, -1.0, 1.0)
    losses = {
        (share, width, ridge): np.logaddexp(0.0, signs * logit(_mixed(trees, each, share))).mean().round(9)
        for share in _SHARES
        for width in _WIDTHS
        for ridge, each in zip(_RIDGES, margins[width], strict=True)
    }
    return min(losses, key=losses.__getitem__)


def _mixed(trees: np.ndarray, margins: np.ndarray, share: float) -> np.ndarray:
    return expit((1.0 - share) * limited_log_odds(trees) + share * margins)


def _targets(Y: np.ndarray) -> np.ndarray:
    return Y.astype(np.float64) if Y.shape[1] > 1 else Y[:, 0].astype(np.float64)


def _packed(student: BaseEstimator) -> Any:
    forest = isinstance(student, (ExtraTreesRegressor, RandomForestRegressor))
    return PackedForest.of(student) if forest else student


def _forest_scores(forest: Any, X: Any, n_labels: int) -> np.ndarray:
    return np.clip(np.asarray(forest.predict(X)).reshape(X.shape[0], n_labels), 0.0, 1.0)


def _forest() -> ExtraTreesRegressor:
    return ExtraTreesRegressor(n_estimators=100, min_samples_leaf=3, max_features=0.3)


def _between_neighbours(X: Any, n_copies: int, random: np.random.RandomState) -> Any:
    """Return ``n_copies`` rows per row of X, each up to half-way to one of its nearest neighbours."""
    n = X.shape[0]
    near = exact_neighbours(X, min(_NEIGHBOURS, n - 1))[0]
    base = np.tile(np.arange(n), n_copies)
    other = near[base, random.randint(near.shape[1], size=len(base))]
    share = 0.5 * random.random_sample(len(base))
    if sp.issparse(X):
        return (sp.diags_array(1.0 - share) @ X[base] + sp.diags_array(share) @ X[other]).tocsr()
    return (1.0 - share)[:, None] * X[base] + share[:, None] * X[other]


_MOST_CENTRES = 1500  # a row of 1,000 dense features then takes about 2 ms
_LEAST = 0.02  # targets are moved into [.02, .98] before logarithms
_LARGEST = float(logit(0.99))
_NULL = 1e-10  # eigenvalues of the kernel below this share of the largest one are left out
_BLOCK_ROWS = 2000  # rows of the kernel matrix that are held at a time


@dataclass(frozen=True, eq=False)
class KernelRegression:
    """Log-odds of all labels by kernel ridge regression.

    Attributes
    ----------
    centres : ndarray or CSR matrix of shape (m, d)
    gamma : float
    offset : ndarray of shape (q,)
    weights : ndarray of shape (m, q)
    """

    centres: Any
    gamma: float
    offset: np.ndarray
    weights: np.ndarray

    @classmethod
    def fit(
        cls, rows: Any, targets: np.ndarray, n_centres: int, width: float, ridges: Sequence[float]
    ) -> list[KernelRegression]:
        """Return a regression for each ridge.

        Parameters
        ----------
        rows : ndarray or sparse matrix of shape (n, d)
        targets : ndarray of shape (n, q)
            In [0, 1].
        n_centres : int
            The centres are up to 1,500 of that many first rows, evenly spaced.
        width : float
            Gamma is this times 1 / (d times the variance of the centres' values), which is "scale" of scikit-learn's
            support vector machines.
        ridges : sequence of float
            Above 0.
        """
        picked = np.unique(np.linspace(0, n_centres - 1, min(n_centres, _MOST_CENTRES)).astype(int))
        centres = rows[picked]
        gamma = width * resolve_gamma("scale", centres)
        margins = logit(np.clip(targets, _LEAST, 1.0 - _LEAST))
        offset = margins.mean(axis=0)
        values, vectors = np.linalg.eigh(kernel_matrix(centres, gamma=gamma))
        large = values > _NULL * values[-1]
        basis = vectors[:, large] / np.sqrt(values[large])
        gram, cross = np.zeros((basis.shape[1],) * 2), np.zeros((basis.shape[1], targets.shape[1]))
        for start in range(0, len(targets), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            features = kernel_matrix(rows[block], centres, gamma=gamma) @ basis
            gram += features.T @ features
            cross += features.T @ (margins[block] - offset)
        strengths, directions = np.linalg.eigh(gram)
        basis, cross = basis @ directions, directions.T @ cross
        return [cls(centres, gamma, offset, basis @ (cross / (strengths + r)[:, None])) for r in ridges]

    def __call__(self, X: Any) -> np.ndarray:
        """Return log-odds of shape (n, q), between those of .01 and .99."""
        kernel = kernel_matrix(X, self.centres, gamma=self.gamma)
        return np.clip(kernel @ self.weights + self.offset, -_LARGEST, _LARGEST)


def limited_log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Return the log-odds of probabilities, between those of .01 and .99."""
    return logit(np.clip(probabilities, 0.01, 0.99))
