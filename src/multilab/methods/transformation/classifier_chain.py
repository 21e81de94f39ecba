"""Classifier chain: each label's classifier also sees the labels before it."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from multilab.methods._weights import LabelWeight, Weights
from multilab.methods.base import MethodError, WeightedPartialClassifier
from multilab.methods.labels import Layout, label_column
from multilab.methods.transformation._binary import (
    Calibration,
    check_base,
    fit_label,
    has_own_threshold,
    score_kind,
    seeded,
)
from multilab.methods.transformation._inputs import make_inputs

__all__ = ["ClassifierChain"]


class ClassifierChain(WeightedPartialClassifier):
    """Classifier chain: binary classifiers with the preceding labels as additional features.

    Training uses the true labels before the link, prediction the chain's own decisions.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each link; ``SVC()`` when None. An SVC with a named kernel computes the kernel matrix of
        the features once; a link's label column then multiplies (rbf) or adds to it.
    order : {None, "random"} or sequence of int, default=None
        Chain order: the order of the columns of Y, a random permutation drawn from ``random_state``, or the
        labels' numbers in the order wanted.
    calibration : {None, "none", "sigmoid", "libsvm"}, default=None
        As in `BinaryRelevance`. The decisions passed on along the chain are those of the calibrated scores.
    random_state : int or RandomState, optional
        Seed of the random order and of the base classifiers; None leaves theirs.
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        Weights of the values of each label in its classifier, as ``class_weight`` of scikit-learn; they multiply
        ``sample_weight``. "balanced": n / (2 n_c) for the value c that n_c of the n rows have. Shape (q,): of the value
        1, the value 0 counts 1; shape (q, 2): of the values 0 and 1. The base classifier must take weights.

    Attributes
    ----------
    order_ : ndarray of shape (q,)
        The chain order.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Hard decisions (score >= 0.5, margin >= 0) are passed on, as in the paper and in scikit-multilearn; those of a base
    with a threshold of its own are its own, as in `BinaryRelevance`.

    **Early stopping** of each link: as in `BinaryRelevance`.

    **Missing labels**: a link is fitted on the rows that observe its label. As a feature of later links an unobserved
    label is the decision of its own link, as in prediction; that link has not seen the row.

    **Weights of shape (n, q)**: a link gets the column of its label; a label of weight 0 is not observed.

    ``gamma="scale"`` of an SVC is computed from the features alone and kept for all of the chain. Plain
    ``SVC(gamma="scale")`` on [X, labels], as in scikit-multilearn, recomputes it at each link; the
    difference is of the order of q / d, and one kernel matrix serves all links here.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes, E. Frank. Classifier chains for multi-label classification. Machine
    Learning 85, 2011.

    Examples
    --------
    >>> from multilab.methods import ClassifierChain
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = ClassifierChain(LogisticRegression(), order=[2, 0, 1]).fit(X, y)
    >>> model.order_
    array([2, 0, 1])
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 1, 0]])
    """

    _sparse_labels: ClassVar[Layout | None] = "csc"
    _accepts_cell_weights = True

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        order: Literal["random"] | Sequence[int] | None = None,
        calibration: Calibration = None,
        random_state: Any = None,
        label_weight: LabelWeight = None,
    ) -> None:
        self.estimator = estimator
        self.order = order
        self.calibration = calibration
        self.random_state = random_state
        self.label_weight = label_weight

    def _fit(self, X: Any, Y: Any, sample_weight: np.ndarray | None) -> None:
        base = self._base()
        weights = Weights.of(sample_weight, self.label_weight, Y.shape[1])
        check_base(base, self.calibration, weights)
        self.order_ = self._chain_order()
        self._Y = Y  # its columns are features of later links, complete when they are used
        self._inputs = make_inputs(seeded(base, self.random_state, self.calibration), X, weights.rows)
        table = self._inputs.training()
        self._links = []
        for label in self.order_:
            column = label_column(Y, label)
            weight = weights.of_label(label, column)
            self._links.append(fit_label(self._inputs.base, table.matrix, column, self.calibration, weight))
            if len(self._links) < self.n_labels_:
                self._complete(column, table.matrix)
                table.append(column, column)

    def _complete(self, column: np.ndarray, matrix: Any) -> None:
        """Replace unobserved entries of a label by the decisions of its link, which has been fitted without them.

        The column of a dense Y is a view, so that they are replaced there.
        """
        hidden = column < 0
        if hidden.any():
            column[hidden] = self._links[-1].predict(matrix, self._threshold())[1][hidden]

    def _chain_order(self) -> np.ndarray:
        labels = np.arange(self.n_labels_)
        if self.order is None:
            return labels
        if isinstance(self.order, str):
            if self.order != "random":
                raise MethodError(f"order={self.order!r}: give None, 'random' or the labels' numbers")
            return check_random_state(self.random_state).permutation(labels)
        order = np.asarray(self.order)
        if not np.array_equal(np.sort(order), labels):
            raise MethodError(f"order={self.order!r} must hold each of 0..{self.n_labels_ - 1} once")
        return order

    def _base(self) -> BaseEstimator:
        return SVC() if self.estimator is None else self.estimator

    def _score_kind(self) -> str:
        return score_kind(self._base(), self.calibration)

    def _decides_by_threshold(self) -> bool:
        return not has_own_threshold(self._base())

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        table = self._inputs.query(X)
        scores = np.empty((X.shape[0], self.n_labels_))
        decisions = np.empty(scores.shape, dtype=bool)
        for position, (label, link) in enumerate(zip(self.order_, self._links, strict=True)):
            scores[:, label], decisions[:, label] = link.predict(table.matrix, self._threshold())
            if position + 1 < self.n_labels_:
                table.append(decisions[:, label], label_column(self._Y, label))
        return scores, decisions

    def _scores(self, X: Any) -> np.ndarray:
        return self._predict(X)[0]
