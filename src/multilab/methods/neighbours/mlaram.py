"""MLARAM: prototypes of label sets by fuzzy adaptive resonance."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.transformation.label_powerset import distinct_rows

__all__ = ["MLARAM"]

_BLOCK_ENTRIES = 2**22  # activations held at a time: 32 MiB
_TIE = 1e-9  # activations and gaps that differ by less are equal: rounding errors are about 1e-15
_DECIMALS = 12  # of the scores, so that equal shares are equal numbers


class MLARAM(MultiLabelClassifier):
    """Multi-label fuzzy adaptive resonance associative map.

    Each label set has prototypes, boxes in the space of the scaled features that grow to hold what resonates with
    them. A row's scores come from the label sets of the prototypes that it activates most.

    Parameters
    ----------
    vigilance : float in [0, 1], default=0.9
        How much of a row the prototype must still match to take it in; at 1 every distinct row is a prototype.
    threshold : float, default=0.02
        How far below the best an activation may be, relative to the range of activations, to have a say.
    random_state : int or RandomState, optional
        Seed of the order of the training rows; the order of the data when None.

    Attributes
    ----------
    prototypes_ : ndarray of shape (p, 2d)
        The weights w.
    counts_ : ndarray of shape (p,)
        Training rows in each.
    label_sets_ : ndarray of shape (p, q)
        Their labels.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A row x, each feature scaled to [0, 1] by its range in training (and cut off there), becomes I = (x, 1 - x). With
    ``|.|`` the sum and the minimum taken entry by entry, a prototype is activated by ``|min(w, I)| / |w|``; of those of
    the row's own label set, in that order, the first with ``|min(w, I)| / |I| >= vigilance`` becomes ``min(w, I)``, or
    else I is a new prototype.

    In prediction the prototypes with ``(T_max - T) / T_max <= threshold (T_max - T_min)`` have a say, weighted by
    activation and by the number of their training rows. The score of a label is its share of these weights.
    **Decisions**: the labels before the largest gap of the sorted scores (all of them where all scores are equal and
    positive; one label alone is assigned iff its score >= 0.5).

    **Ties**: numbers that differ by less than 1e-9 count as equal. Of equally activated prototypes the first takes the
    row in; of equally large gaps the first, between the highest scores, decides, so that the fewest labels are
    assigned; labels with equal scores are assigned together. Scores are rounded to 12 decimals. No product of BLAS is
    involved, so all processors give the same scores.

    scikit-multilearn's class scales all features by one range, anew for the test rows, and adds to the caller's Y; its
    scores are not divided by the number of rows, which changes no order.

    References
    ----------
    F. Benites, E. Sapozhnikova. HARAM: a hierarchical ARAM neural network for large-scale text classification. ICDM
    Workshops, 2015, 847-854. The second, clustering layer of HARAM is a matter of speed and not here.
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_decision_rule": "labels are decided by the largest gap between scores",
        "check_classifiers_multilabel_output_format_predict_proba": "a score is exactly 1 or 0 where prototypes agree",
    }

    def __init__(self, vigilance: float = 0.9, threshold: float = 0.02, random_state: Any = None) -> None:
        self.vigilance = vigilance
        self.threshold = threshold
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q).

        Raises
        ------
        MethodError
            If the vigilance is outside [0, 1].
        """
        X, Y = self._validate_fit(X, Y)
        if not 0 <= self.vigilance <= 1:
            raise MethodError(f"vigilance={self.vigilance!r} must be in [0, 1]")
        X = _dense(X)
        self._low = X.min(axis=0)
        span = X.max(axis=0) - self._low
        self._inverse_range = np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)
        if self.random_state is not None:
            order = check_random_state(self.random_state).permutation(len(X))
            X, Y = X[order], Y[order]
        coded = self._coded(X)
        sets, number = distinct_rows(Y)
        grown = [self._resonate(coded[number == one]) for one in range(len(sets))]
        self.prototypes_ = np.concatenate([weights for weights, _ in grown])
        self.counts_ = np.concatenate([counts for _, counts in grown])
        self.label_sets_ = np.repeat(sets, [len(counts) for _, counts in grown], axis=0)
        return self

    def _coded(self, X: np.ndarray) -> np.ndarray:
        scaled = np.clip((X - self._low) * self._inverse_range, 0.0, 1.0)
        return np.hstack([scaled, 1.0 - scaled])

    def _resonate(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return prototypes and how many rows each holds, for the rows of one label set in their order."""
        weights, counts, used = np.empty_like(rows), np.zeros(len(rows)), 0
        needed = self.vigilance * rows.shape[1] / 2  # |I| is the number of features
        needed -= 1e-9 * max(needed, 1.0)
        for row in rows:
            shared = np.minimum(weights[:used], row).sum(axis=1)
            activation = np.where(shared >= needed, shared / _positive(weights[:used].sum(axis=1)), -1.0)
            best = int((activation >= activation.max() - _TIE).argmax()) if used else -1
            if best >= 0 and activation[best] >= 0:
                np.minimum(weights[best], row, out=weights[best])
            else:
                best, used = used, used + 1
                weights[best] = row
            counts[best] += 1
        return weights[:used].copy(), counts[:used]

    def _both(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        scores = np.empty((X.shape[0], self.n_labels_))
        step = max(1, _BLOCK_ENTRIES // len(self.prototypes_))
        votes = np.column_stack([self.label_sets_, np.ones(len(self.prototypes_))]) * self.counts_[:, None]
        for start in range(0, X.shape[0], step):
            activation = self._activation(_dense(X[start : start + step]))
            most, least = activation.max(axis=1, keepdims=True), activation.min(axis=1, keepdims=True)
            weights = activation / _positive(most)
            weights[1.0 - weights > self.threshold * (most - least) + _TIE] = 0.0
            # added up prototype by prototype: a product of BLAS would round differently on each processor
            sums = sp.csr_array(weights) @ votes
            scores[start : start + step] = sums[:, :-1] / _positive(sums[:, -1:])
        scores = np.clip(scores.round(_DECIMALS), 0.0, 1.0)
        return scores, _before_largest_gap(scores)

    def _scores(self, X: Any) -> np.ndarray:
        return self._both(X)[0]

    def _activation(self, X: np.ndarray) -> np.ndarray:
        """Return |min(w, I)| / |w| of every row and prototype: |min(a, b)| is (|a| + |b| - |a - b|) / 2."""
        sizes = self.prototypes_.sum(axis=1)
        apart = cdist(self._coded(X), self.prototypes_, "cityblock")
        return (sizes + X.shape[1] - apart) / (2.0 * _positive(sizes))


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


def _positive(values: np.ndarray) -> np.ndarray:
    return np.maximum(values, np.finfo(float).tiny)


def _before_largest_gap(scores: np.ndarray) -> np.ndarray:
    """Return the labels that come before the largest gap of the sorted scores of their row, the first of equal gaps."""
    if scores.shape[1] == 1:
        return scores >= 0.5
    ordered = -np.sort(-scores, axis=1)
    gaps = ordered[:, :-1] - ordered[:, 1:]
    first = (gaps >= gaps.max(axis=1, keepdims=True) - _TIE).argmax(axis=1)
    last = np.take_along_axis(ordered, first[:, None], axis=1)
    return (scores >= last - _TIE) & (scores > 0)
