"""Label sets as the classes of one multi-class classifier."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.svm import SVC

from multilab.methods.transformation._binary import probabilities, quiet_fit

_BLOCK_ENTRIES = 2**22  # pairwise decisions held at a time: 32 MiB


@dataclass(frozen=True)
class SetModel:
    """A fitted multi-class classifier (None where there was one class only) and its classes."""

    model: Any
    classes: np.ndarray

    def probabilities(self, matrix: Any) -> np.ndarray:
        """Return one probability per row and class of ``classes``."""
        if self.model is None:
            return np.ones((matrix.shape[0], 1))
        if hasattr(self.model, "predict_proba"):
            return probabilities(self.model, matrix)
        if isinstance(self.model, SVC):
            return softmax(one_vs_rest_scores(self.model, matrix), axis=1)
        margins = self.model.decision_function(matrix)
        return softmax(np.column_stack([-margins, margins]) if margins.ndim == 1 else margins, axis=1)


def distinct_rows(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows in order of appearance, and the number of each row's distinct row.

    A dictionary of packed rows: for some thousand rows ten times as fast as sorting them.
    """
    packed = np.ascontiguousarray(np.packbits(Y, axis=1))
    keys = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    seen = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    number = np.array([seen[key] for key in keys])
    first = np.searchsorted(np.maximum.accumulate(number), np.arange(len(seen)))
    return Y[first], number


def fit_sets(base: BaseEstimator, matrix: Any, classes: np.ndarray, weight: np.ndarray | None = None) -> SetModel:
    """Fit a clone of ``base`` on class numbers, the rows weighted unless ``weight`` is None."""
    present = np.unique(classes)
    if len(present) == 1:
        return SetModel(None, present)
    model = clone(base)
    if isinstance(model, SVC):
        model.set_params(decision_function_shape="ovo")
    return SetModel(quiet_fit(model, matrix, classes, weight), present)


def one_vs_rest_scores(model: SVC, matrix: Any) -> np.ndarray:
    """Return the scores of ``SVC(decision_function_shape="ovr")`` for a model fitted with "ovo", shape (m, p).

    Votes of the p (p - 1) / 2 pairwise machines plus sum / (3 (|sum| + 1)) of their signed margins. Rows come
    in blocks and the sums are sparse products: with several hundred label sets scikit-learn's loop over pairs
    takes minutes and its table of pairs gigabytes. For two classes the same formula holds here.
    """
    p = len(model.classes_)
    first, second = np.triu_indices(p, 1)
    pairs = np.arange(len(first))
    signs = np.r_[np.ones(len(first)), -np.ones(len(first))]
    incidence = sp.csr_array((signs, (np.r_[pairs, pairs], np.r_[first, second])), shape=(len(first), p))
    lost_all = np.bincount(second, minlength=p)
    scores = np.empty((matrix.shape[0], p))
    step = max(1, _BLOCK_ENTRIES // len(first))
    for start in range(0, matrix.shape[0], step):
        block = slice(start, start + step)
        margins = model.decision_function(matrix[block])
        if p == 2:  # scikit-learn turns the sign for two classes
            margins = -margins[:, None]
        sums = margins @ incidence
        scores[block] = (margins >= 0) @ incidence + lost_all + sums / (3.0 * (np.abs(sums) + 1.0))
    return scores
