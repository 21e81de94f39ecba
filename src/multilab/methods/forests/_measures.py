# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Six measures that control the growth of a deep forest: loss and confidence of each unit.

The *units* of a measure are what it averages over: labels for Hamming loss and macro AUC, rows for the other four.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp
from scipy.stats import rankdata

BY_LABEL = frozenset({"hamming_loss", "macro_auc"})
"""Measures whose units are labels."""


def losses(measure: str, scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the loss of each unit, shape (q,) or (n,); NaN where the measure is not defined.

    The rules are the default conventions of `multilab.metrics`. A tie is an error, except for macro AUC (half an error)
    and one-error (no error if one of the tied best labels is relevant). For average precision and AUC the loss is
    1 - value.

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
    """Return the logarithm of the confidence of each unit, shape (q,) or (n,): Table 1 of the MLDF paper.

    The confidence of a row is, with its probabilities p sorted in descending order and independent labels:

    - ranking loss and average precision: the probability that the relevant labels are a prefix of the ranking,
      sum_{j=0..q} prod_{k<=j} p_(k) prod_{k>j} (1 - p_(k));
    - coverage: 1 - E[largest rank of a relevant label] / q, where
      E = sum_{j=1..q} j p_(j) prod_{k>j} (1 - p_(k));
    - one-error: the largest p.

    The confidence of a label is, for macro AUC, the first formula over the n rows and, for Hamming loss, the mean of
    max(p, 1 - p) over the rows.

    Parameters
    ----------
    measure : str
        One of `MEASURES`.
    scores : ndarray of shape (n, q)
        Probabilities of the labels.

    Notes
    -----
    Logarithms because a product over thousands of rows underflows to 0 in double precision.
    """
    with np.errstate(divide="ignore"):
        return _CONFIDENCES[measure](scores)


def _hamming(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the share of wrong decisions of each label, shape (q,)."""
    return np.mean((scores >= 0.5) != Y, axis=0)


def _one_error(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return 1 for the rows whose best label is not relevant, shape (n,); NaN without a relevant label."""
    right = np.where(Y, scores, -np.inf).max(axis=1) == scores.max(axis=1)
    return np.where(Y.any(axis=1), ~right, np.nan)


def _coverage(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return (worst rank of a relevant label - 1) / q, shape (n,); NaN without a relevant label."""
    last = np.where(Y, _ranks(scores), 0).max(axis=1)
    return np.where(Y.any(axis=1), (last - 1) / Y.shape[1], np.nan)


def _ranking_loss(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the share of wrongly ordered pairs of labels, shape (n,); NaN without or with all labels."""
    relevant = Y.sum(axis=1)
    # rank among all less rank among the relevant ones: the irrelevant labels at or before a relevant one
    before = np.where(Y, _ranks(scores) - _ranks_among(scores, Y), 0).sum(axis=1)
    return before / (relevant * (Y.shape[1] - relevant))  # 0 / 0 is NaN


def _average_precision(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return 1 - average precision, shape (n,); NaN without a relevant label."""
    return 1.0 - np.where(Y, _ranks_among(scores, Y) / _ranks(scores), 0).sum(axis=1) / Y.sum(axis=1)


def _macro_auc(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return 1 - AUC of each label, shape (q,), by the rank sum of the positive rows; NaN with one class."""
    positive = Y.sum(axis=0)
    won = np.where(Y, rankdata(scores, axis=0), 0).sum(axis=0) - positive * (positive + 1) / 2
    return 1.0 - won / (positive * (len(Y) - positive))


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Return the rank of each label in its row, shape (n, q): 1 for the largest score, the worst rank for ties."""
    return rankdata(-scores, method="max", axis=1)


def _ranks_among(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the rank of each relevant label among those of its row, shape (n, q); arbitrary for the others."""
    return rankdata(np.where(Y, -scores, np.inf), method="max", axis=1)


def _sure_of_prefix(scores: np.ndarray) -> np.ndarray:
    """Return the log probability that the relevant labels are a prefix of the ranking, shape (n,)."""
    relevant, others = _log_products(scores)
    return logsumexp(relevant + others, axis=1)


def _sure_of_coverage(scores: np.ndarray) -> np.ndarray:
    """Return log(1 - E[largest rank of a relevant label] / q), shape (n,)."""
    q = scores.shape[1]
    ordered = -np.sort(-scores, axis=1)
    _, others = _log_products(scores)
    expected = (np.arange(1, q + 1) * ordered * np.exp(others[:, 1:])).sum(axis=1)
    return np.log(np.maximum(1.0 - expected / q, 0.0))


def _log_products(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log prod_{k <= j} p_(k) and log prod_{k > j} (1 - p_(k)) for j = 0..q, each of shape (n, q + 1).

    The probabilities p are sorted in descending order in each row.
    """
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
"""Names of the measures, as in `multilab.metrics`."""
