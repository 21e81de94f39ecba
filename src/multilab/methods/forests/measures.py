"""The six measures that a deep forest is grown by: the loss of each row or label, and how sure a prediction is of it.

A *unit* is what a measure averages: a label for Hamming loss and macro AUC, a row for the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp
from scipy.stats import rankdata

__all__ = ["BY_LABEL", "MEASURES", "log_confidences", "losses"]

BY_LABEL = frozenset({"hamming_loss", "macro_auc"})
"""The measures whose units are labels."""


def losses(measure: str, scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the loss of each unit, smaller is better; NaN where it is not defined.

    The rules are those of the default conventions of `multilab.metrics`: ties are errors but for macro AUC (half an
    error) and one-error (right if any of the best is relevant). Average precision and AUC are subtracted from 1.

    Parameters
    ----------
    measure : str
        One of `MEASURES`.
    scores : ndarray of shape (n, q)
    Y : ndarray of shape (n, q), 0/1
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return _LOSSES[measure](scores, Y.astype(bool))


def log_confidences(measure: str, scores: np.ndarray) -> np.ndarray:
    """Return the logarithm of the confidence of each unit (Table 1 of the MLDF paper), from probabilities alone.

    With p sorted in descending order: for ranking loss and average precision the probability, under independent
    labels, that the relevant labels are a prefix of the ranking; for macro AUC the same down the column; for coverage
    1 - E[largest rank of a relevant label] / q; for one-error the largest p; for Hamming loss the mean of max(p, 1 - p)
    over the rows. In logarithms, since a product over thousands of rows is 0 in double precision.
    """
    with np.errstate(divide="ignore"):
        return _CONFIDENCES[measure](scores)


def _hamming(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.mean((scores >= 0.5) != Y, axis=0)


def _one_error(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    right = np.where(Y, scores, -np.inf).max(axis=1) == scores.max(axis=1)
    return np.where(Y.any(axis=1), ~right, np.nan)


def _coverage(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    last = np.where(Y, _ranks(scores), 0).max(axis=1)
    return np.where(Y.any(axis=1), (last - 1) / Y.shape[1], np.nan)


def _ranking_loss(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    relevant = Y.sum(axis=1)
    before = np.where(Y, _ranks(scores) - _ranks_among(scores, Y), 0).sum(axis=1)
    return before / (relevant * (Y.shape[1] - relevant))  # 0 / 0 is NaN


def _average_precision(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return 1.0 - np.where(Y, _ranks_among(scores, Y) / _ranks(scores), 0).sum(axis=1) / Y.sum(axis=1)


def _macro_auc(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    positive = Y.sum(axis=0)
    won = np.where(Y, rankdata(scores, axis=0), 0).sum(axis=0) - positive * (positive + 1) / 2
    return 1.0 - won / (positive * (len(Y) - positive))


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Return the rank of each label in its row, 1 for the largest score; of equal ones the worst."""
    return rankdata(-scores, method="max", axis=1)


def _ranks_among(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the rank among the relevant labels of the row, for these."""
    return rankdata(np.where(Y, -scores, np.inf), method="max", axis=1)


def _sure_of_prefix(scores: np.ndarray) -> np.ndarray:
    relevant, others = _log_products(scores)
    return logsumexp(relevant + others, axis=1)


def _sure_of_coverage(scores: np.ndarray) -> np.ndarray:
    q = scores.shape[1]
    ordered = -np.sort(-scores, axis=1)
    _, others = _log_products(scores)
    expected = (np.arange(1, q + 1) * ordered * np.exp(others[:, 1:])).sum(axis=1)
    return np.log(np.maximum(1.0 - expected / q, 0.0))


def _log_products(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log prod_{k <= j} p_(k) and log prod_{k > j} (1 - p_(k)) for j = 0..q, p descending in each row."""
    ordered = -np.sort(-scores, axis=1)
    zero = np.zeros((len(scores), 1))
    relevant = np.hstack([zero, np.cumsum(np.log(ordered), axis=1)])
    others = np.hstack([np.cumsum(np.log1p(-ordered)[:, ::-1], axis=1)[:, ::-1], zero])
    return relevant, others


_LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "hamming_loss": _hamming,
    "one_error": _one_error,
    "coverage": _coverage,
    "ranking_loss": _ranking_loss,
    "average_precision": _average_precision,
    "macro_auc": _macro_auc,
}
_CONFIDENCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hamming_loss": lambda p: np.log(np.maximum(p, 1.0 - p).mean(axis=0)),
    "one_error": lambda p: np.log(p.max(axis=1)),
    "coverage": _sure_of_coverage,
    "ranking_loss": _sure_of_prefix,
    "average_precision": _sure_of_prefix,
    "macro_auc": lambda p: _sure_of_prefix(p.T),
}
MEASURES = tuple(_LOSSES)
"""Their names, as in `multilab.metrics`."""
