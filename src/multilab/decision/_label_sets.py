# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Probabilities of the label sets of the training rows, and the sets with the largest expected metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit, softmax

_MOST_SETS = 1000
_SMALL = 1e-6


@dataclass(frozen=True, eq=False)
class LabelSetModel:
    """Label sets of training rows with what their frequencies say beyond independent labels.

    Attributes
    ----------
    sets : ndarray of shape (k, q)
        Distinct rows of Y; the 1,000 most frequent if there are more.
    dependence : ndarray of shape (k,)
        Log of the share of rows with a set, minus its log-probability if labels were independent.
    """

    sets: np.ndarray
    dependence: np.ndarray

    @classmethod
    def of(cls, Y: np.ndarray) -> LabelSetModel:
        """Return the model of the rows of Y."""
        sets, counts = np.unique(Y, axis=0, return_counts=True)
        most = np.sort(np.argsort(-counts, kind="stable")[:_MOST_SETS])
        sets, counts = sets[most].astype(np.float64), counts[most]
        share = (Y.sum(axis=0) + 1.0) / (len(Y) + 2.0)
        independent = sets @ logit(share) + np.log1p(-share).sum()
        return cls(sets, np.log(counts / len(Y)) - independent)

    def posterior(self, probabilities: np.ndarray, strength: float) -> np.ndarray:
        """Return the probability of each set, shape (n, k), from those of the labels, shape (n, q).

        Labels are independent given the row for ``strength`` 0, but other sets are impossible; with 1 the dependence
        between labels is that of all training rows.
        """
        margins = logit(np.clip(probabilities, _SMALL, 1 - _SMALL))
        return softmax(margins @ self.sets.T + strength * self.dependence, axis=1)

    def n_pairs(self) -> np.ndarray:
        """Return the number of pairs of a label inside and one outside of each set, at least 1, shape (k, 1)."""
        size = self.sets.sum(axis=1, keepdims=True)
        return np.maximum(size * (self.sets.shape[1] - size), 1.0)


def _sizes(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return A @ B.T, A.sum(axis=1)[:, None], B.sum(axis=1)[None, :]


def _ratio(numerator: np.ndarray, denominator: np.ndarray, empty: float) -> np.ndarray:
    return np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), empty)


def equal_sets(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return 1.0 where predicted set (row) and true set (column) are equal."""
    hits, predicted, true = _sizes(A, B)
    return ((hits == predicted) & (hits == true)).astype(np.float64)


def set_jaccard(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return intersection / union of predicted sets (rows) and true sets (columns), 1 for two empty ones."""
    hits, predicted, true = _sizes(A, B)
    return _ratio(hits, predicted + true - hits, 1.0)


def set_f1(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return F1 of predicted sets (rows) and true sets (columns), 1 for two empty ones."""
    hits, predicted, true = _sizes(A, B)
    return _ratio(2.0 * hits, predicted + true, 1.0)


def set_f1_zero(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return F1 of predicted sets (rows) and true sets (columns), 0 for two empty ones."""
    hits, predicted, true = _sizes(A, B)
    return _ratio(2.0 * hits, predicted + true, 0.0)


def set_precision(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return precision of predicted sets (rows) for true sets (columns); an empty set is right if both are empty."""
    hits, predicted, true = _sizes(A, B)
    return np.where(predicted + true == 0, 1.0, _ratio(hits, predicted, 0.0))


def set_recall(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return recall of predicted sets (rows) for true sets (columns); 0 for labels where none is true."""
    hits, predicted, true = _sizes(A, B)
    return np.where(predicted + true == 0, 1.0, _ratio(hits, true, 0.0))


def set_precision_and_recall(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the mean of precision and recall of predicted sets (rows) for true sets (columns)."""
    return 0.5 * (set_precision(A, B) + set_recall(A, B))
