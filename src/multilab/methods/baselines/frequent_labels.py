"""The baseline that assigns the most frequent labels."""

from typing import Any

import numpy as np

from multilab.methods.base import MethodError, MultiLabelClassifier

__all__ = ["FrequentLabels"]


class FrequentLabels(MultiLabelClassifier):
    """Baseline that assigns the k most frequent training labels to every row.

    Parameters
    ----------
    k : int, optional
        Number of labels, at most q are assigned; when None the label cardinality of the training set, rounded.

    Attributes
    ----------
    frequencies_ : ndarray of shape (q,)
        Share of the training rows that have each label: its score in every row.
    labels_ : ndarray of shape (k,)
        The labels that are assigned, the most frequent first; of equally frequent ones the first column.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Decisions are not ``score >= 0.5``: a label among the k may have a lower frequency.

    Examples
    --------
    >>> from multilab.methods import FrequentLabels
    >>> model = FrequentLabels().fit([[0.0], [1.0], [2.0]], [[0, 1, 0], [0, 1, 1], [1, 1, 0]])
    >>> model.predict([[0.5]])
    array([[1, 1, 0]])
    """

    def __init__(self, k: int | None = None) -> None:
        self.k = k

    def _fit(self, X: Any, Y: Any) -> None:
        if self.k is not None and self.k < 0:
            raise MethodError(f"k={self.k!r}: give the number of labels, 0 or more, or None")
        self.frequencies_ = Y.mean(axis=0, dtype=np.float64)
        k = round(float(self.frequencies_.sum())) if self.k is None else self.k
        self.labels_ = np.argsort(-self.frequencies_, kind="stable")[:k]

    def _scores(self, X: Any) -> np.ndarray:
        return np.tile(self.frequencies_, (X.shape[0], 1))

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        decisions = np.zeros(scores.shape, dtype=bool)
        decisions[:, self.labels_] = True
        return decisions
