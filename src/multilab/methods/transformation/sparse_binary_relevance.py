"""Binary relevance of linear models for very many labels: pruned weights in one sparse matrix."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import delayed
from sklearn.base import BaseEstimator, clone
from sklearn.svm import LinearSVC

from multilab.core.parallel import parallel
from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.labels import Layout, label_columns
from multilab.methods.transformation._binary import quiet_fit, seeded

__all__ = ["SparseBinaryRelevance"]


class SparseBinaryRelevance(MultiLabelClassifier):
    """Binary relevance of linear models whose small weights are dropped and the others kept in one sparse matrix.

    For thousands of labels and many sparse features, where the dense weights of `BinaryRelevance` do not fit into
    memory: 4,000 labels x 186,000 features are 5.5 GiB.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Binary and linear: has ``coef_``, ``intercept_`` and ``decision_function``. Cloned for each label;
        ``LinearSVC(tol=0.1)`` when None.
    weight_threshold : float, default=0.01
        Weights below it in absolute value are dropped; 0 drops none. The default is that of the reference, for rows of
        length 1. A larger value saves memory and costs precision.
    n_jobs : int, optional
        Labels fitted at the same time, in processes; does not change the result.
    random_state : int or RandomState, optional
        Seed of the base classifiers, the same for all labels; None leaves theirs.

    Attributes
    ----------
    weights_ : csr_array of shape (d, q)
        The weights that were kept.
    intercept_ : ndarray of shape (q,)
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Labels are assigned at margin >= 0. A label with one class in training has the margin +1 or -1.

    A sparse Y stays sparse: one dense column of it exists at a time, and the dense weights of the labels that are being
    fitted. With ``weight_threshold=0`` scores are those of ``BinaryRelevance(estimator)``.
    `multilab.methods.sparse_scores.top_scores` gives the best labels of each row as a sparse matrix.

    The cost is one fit on all rows per label. With some ten thousand labels, or rows by the million, take
    a method that trains each label on the rows of similar ones, such as `Omikuji`.

    References
    ----------
    R. Babbar, B. Schoelkopf. DiSMEC: distributed sparse machines for extreme multi-label classification. WSDM 2017.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from multilab.methods import SparseBinaryRelevance
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=40, n_classes=30, random_state=0)
    >>> model = SparseBinaryRelevance(random_state=0).fit(sp.csr_array(X), sp.csr_array(y))
    >>> model.weights_.shape
    (40, 30)
    >>> model.predict_sparse(sp.csr_array(X)).shape
    (60, 30)
    """

    _sparse_labels: ClassVar[Layout | None] = "csc"

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        weight_threshold: float = 0.01,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.weight_threshold = weight_threshold
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        if not self.weight_threshold >= 0:
            raise MethodError(f"`weight_threshold` must be >= 0, got {self.weight_threshold!r}")
        base = seeded(LinearSVC(tol=0.1) if self.estimator is None else self.estimator, self.random_state, None)
        # processes: the threads of one would share liblinear's random numbers
        labels = parallel(self.n_jobs)(delayed(_fit_label)(base, X, y, self.weight_threshold) for y in label_columns(Y))
        self.intercept_ = np.array([label.intercept for label in labels])
        starts = np.cumsum([0, *(len(label.features) for label in labels)])
        if starts[-1] <= np.iinfo(np.int32).max:  # else SciPy makes all indices as wide
            starts = starts.astype(np.int32)
        weights = np.concatenate([label.weights for label in labels])
        features = np.concatenate([label.features for label in labels])
        self.weights_ = sp.csc_array((weights, features, starts), shape=(X.shape[1], len(labels))).tocsr()

    def _score_kind(self) -> str:
        return "margin"

    def _scores(self, X: Any) -> np.ndarray:
        products = X @ self.weights_
        return (products.toarray() if sp.issparse(products) else products) + self.intercept_


class _Label(NamedTuple):
    weights: np.ndarray
    features: np.ndarray
    intercept: float


def _fit_label(base: BaseEstimator, X: Any, y: np.ndarray, threshold: float) -> _Label:
    """Fit one label and keep the weights that are not below the threshold."""
    if y.all() or not y.any():
        return _Label(np.zeros(0), np.zeros(0, dtype=np.int32), 1.0 if y.all() else -1.0)
    model = quiet_fit(clone(base), X, y)
    if not hasattr(model, "coef_"):
        raise MethodError(f"{type(model).__name__} has no `coef_`: SparseBinaryRelevance takes linear models")
    weights = np.asarray(model.coef_, dtype=np.float64).ravel()
    features = np.flatnonzero((np.abs(weights) >= threshold) & (weights != 0)).astype(np.int32)
    return _Label(weights[features], features, float(np.ravel(model.intercept_)[0]))
