"""MLARAM: prototypes of label sets by fuzzy adaptive resonance."""

from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.transformation._label_sets import distinct_rows

__all__ = ["MLARAM"]

_BLOCK_ENTRIES = 2**22  # activations per block: 32 MiB
_TIE = 1e-9  # activations and gaps that differ by less are equal: rounding errors are about 1e-15
_DECIMALS = 12  # of the scores, so that equal shares are equal numbers


class MLARAM(MultiLabelClassifier):
    """Multi-label fuzzy adaptive resonance associative map.

    Each label set has prototypes: boxes in the space of the scaled features, which grow to contain the rows that match
    them. The scores of a row are the weighted frequencies of the labels among the prototypes that it activates most.

    Parameters
    ----------
    vigilance : float in [0, 1], default=0.9
        Minimum match of a row with a prototype that absorbs it; at 1 every distinct row is a prototype.
    threshold : float, default=0.02
        Maximum relative distance of an activation to the largest one, in units of the range of activations, for the
        prototype to count in prediction.
    random_state : int or RandomState, optional
        Seed of the order of the training rows; the order of the data when None.
    scale : {"features", "matrix"}, default="features"
        "features" scales each feature by its range in training. "matrix" scales all values of a matrix by its smallest
        and its largest one, if they are outside [0, 1], as scikit-multilearn does: the test rows by their own.

    Attributes
    ----------
    prototypes_ : ndarray of shape (p, 2d)
        Weights w of the prototypes.
    counts_ : ndarray of shape (p,)
        Number of training rows in each prototype.
    label_sets_ : ndarray of shape (p, q)
        Label set of each prototype.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The features of a row x are scaled to [0, 1] by their ranges in training and clipped; its complement coding is
    I = (x, 1 - x). With ``|.|`` the sum of the entries and ``min`` entry by entry, the activation of a prototype is
    ``T = |min(w, I)| / |w|``. Only prototypes of the label set of the row compete: the one with the largest activation
    among those with ``|min(w, I)| / |I| >= vigilance`` becomes ``min(w, I)``; without one, I is a new prototype.

    In prediction the prototypes with ``(T_max - T) / T_max <= threshold (T_max - T_min)`` count, weighted by activation
    and number of training rows. The score of a label is its share of these weights.
    **Decisions**: the labels before the largest gap of the sorted scores (all of them where all scores are equal and
    positive; one label alone is assigned iff its score >= 0.5).

    **Ties**: numbers that differ by less than 1e-9 count as equal. Of equally activated prototypes the first absorbs
    the row. Of equally large gaps the first one, between the highest scores, decides, so that the fewest labels are
    assigned. Labels with equal scores are assigned together. Scores are rounded to 12 decimals and computed without
    BLAS, so they are the same on all processors.

    The class of scikit-multilearn scales with ``scale="matrix"``, by which the scores of a row depend on the rows
    predicted with it, and modifies the Y of the caller; its scores are not divided by the number of rows, which does
    not change their order.

    References
    ----------
    F. Benites, E. Sapozhnikova. HARAM: a hierarchical ARAM neural network for large-scale text classification. ICDM
    Workshops, 2015, 847-854. The second (clustering) layer of HARAM only saves time; it is not implemented.

    Examples
    --------
    >>> from multilab.methods import MLARAM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = MLARAM(random_state=0).fit(X, y)
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 0, 0]])
    """

    _makes_dense: ClassVar[bool] = True

    def __init__(
        self,
        vigilance: float = 0.9,
        threshold: float = 0.02,
        random_state: Any = None,
        scale: Literal["features", "matrix"] = "features",
    ) -> None:
        self.vigilance = vigilance
        self.threshold = threshold
        self.random_state = random_state
        self.scale = scale

    def _fit(self, X: Any, Y: Any) -> None:
        if not 0 <= self.vigilance <= 1:
            raise MethodError(f"vigilance={self.vigilance!r} must be in [0, 1]")
        self._check_choices(scale=("features", "matrix"))
        X = _dense(X)
        self._low = X.min(axis=0)
        span = X.max(axis=0) - self._low
        self._inverse_range = np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)
        if self.random_state is not None:
            order = check_random_state(self.random_state).permutation(len(X))
            X, Y = X[order], Y[order]
        coded = self._coded(self._one_range(X))
        sets, number = distinct_rows(Y)
        grown = [self._resonate(coded[number == one]) for one in range(len(sets))]
        self.prototypes_ = np.concatenate([weights for weights, _ in grown])
        self.counts_ = np.concatenate([counts for _, counts in grown])
        self.label_sets_ = np.repeat(sets, [len(counts) for _, counts in grown], axis=0)

    def _coded(self, X: np.ndarray) -> np.ndarray:
        """Return the complement coding I of the scaled rows, shape (m, 2 d); `_one_range` was applied to X."""
        scaled = X if self.scale == "matrix" else np.clip((X - self._low) * self._inverse_range, 0.0, 1.0)
        return np.hstack([scaled, 1.0 - scaled])

    def _one_range(self, X: np.ndarray) -> np.ndarray:
        """Return X, with ``scale="matrix"`` scaled to [0, 1] by its own extremes where they are outside."""
        if self.scale == "features":
            return X
        low, high = X.min(), X.max()
        return (X - low) / (high - low) if high > low and (low < 0 or high > 1) else np.clip(X, 0.0, 1.0)

    def _resonate(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the prototypes of one label set, shape (p, 2 d), and their numbers of rows, shape (p,).

        Parameters
        ----------
        rows : ndarray of shape (n_rows, 2 d)
            Complement coding of the rows of the label set, in the order of learning.
        """
        weights, counts, used = np.empty_like(rows), np.zeros(len(rows)), 0
        needed = self.vigilance * rows.shape[1] / 2  # |I| is the number of features
        needed -= 1e-9 * max(needed, 1.0)  # a match that fails by rounding errors only passes
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

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores and the decisions, both (m, q)."""
        scores = np.empty((X.shape[0], self.n_labels_))
        step = max(1, _BLOCK_ENTRIES // len(self.prototypes_))
        X = self._one_range(_dense(X)) if self.scale == "matrix" else X
        votes = np.column_stack([self.label_sets_, np.ones(len(self.prototypes_))]) * self.counts_[:, None]
        for start in range(0, X.shape[0], step):
            # (b, p)
            activation = self._activation(_dense(X[start : start + step]))
            most, least = activation.max(axis=1, keepdims=True), activation.min(axis=1, keepdims=True)
            weights = activation / _positive(most)
            weights[1.0 - weights > self.threshold * (most - least) + _TIE] = 0.0
            # the sparse product adds prototype by prototype: BLAS would round differently on each processor
            sums = sp.csr_array(weights) @ votes
            scores[start : start + step] = sums[:, :-1] / _positive(sums[:, -1:])
        scores = np.clip(scores.round(_DECIMALS), 0.0, 1.0)
        return scores, _before_largest_gap(scores)

    def _scores(self, X: Any) -> np.ndarray:
        return self._predict(X)[0]

    def _activation(self, X: np.ndarray) -> np.ndarray:
        """Return the activations |min(w, I)| / |w|, shape (m, p), by |min(a, b)| = (|a| + |b| - |a - b|) / 2."""
        sizes = self.prototypes_.sum(axis=1)
        apart = cdist(self._coded(X), self.prototypes_, "cityblock")
        return (sizes + X.shape[1] - apart) / (2.0 * _positive(sizes))


def _dense(X: Any) -> np.ndarray:
    """Return X as a dense array."""
    return X.toarray() if sp.issparse(X) else X


def _positive(values: np.ndarray) -> np.ndarray:
    """Return the values, or the smallest positive number where they are not larger: a safe divisor."""
    return np.maximum(values, np.finfo(float).tiny)


def _before_largest_gap(scores: np.ndarray) -> np.ndarray:
    """Return whether a label comes before the largest gap of the sorted scores of its row, bool (m, q).

    Of equal gaps the first one counts.
    """
    if scores.shape[1] == 1:
        return scores >= 0.5
    ordered = -np.sort(-scores, axis=1)
    gaps = ordered[:, :-1] - ordered[:, 1:]
    first = (gaps >= gaps.max(axis=1, keepdims=True) - _TIE).argmax(axis=1)
    last = np.take_along_axis(ordered, first[:, None], axis=1)
    return (scores >= last - _TIE) & (scores > 0)
