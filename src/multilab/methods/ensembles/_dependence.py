# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Dependence of pairs of labels, unconditional or conditional on the features."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold

from multilab.methods._observed import is_partial
from multilab.methods.base import MethodError
from multilab.methods.transformation.binary_relevance import BinaryRelevance


def chi_square(Y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the chi-square statistic of independence for all pairs of labels.

    Parameters
    ----------
    Y : ndarray of shape (n, q)
        0/1, or int8 with -1: a pair of labels is counted in the rows that observe both.
    weight : ndarray of shape (n,), optional
        How often each row counts; once when None.

    Returns
    -------
    ndarray of shape (q, q)
        n phi^2 with phi = (n n11 - n1 n2) / sqrt(n1 n2 (n - n1)(n - n2)); 0 for a label with one class, and on the
        diagonal.
    """
    if is_partial(Y):
        return _observed_chi_square(Y, np.ones(len(Y)) if weight is None else weight)
    n = float(len(Y) if weight is None else weight.sum())
    counts = (Y.T.astype(np.float64) if weight is None else Y.T * weight) @ Y
    ones = np.diag(counts)
    covariance = n * counts - np.outer(ones, ones)
    spread = ones * (n - ones)
    product = np.outer(spread, spread)
    statistic = np.divide(n * covariance**2, product, out=np.zeros_like(counts), where=product > 0)
    np.fill_diagonal(statistic, 0.0)
    return statistic


def _observed_chi_square(Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return `chi_square` of each pair of labels on the rows that observe both."""
    present, observed = (Y == 1).astype(np.float64), (Y >= 0).astype(np.float64)
    n, both, first = (
        (left.T * weight) @ right for left, right in ((observed,) * 2, (present,) * 2, (present, observed))
    )
    second = first.T
    product = first * (n - first) * second * (n - second)
    statistic = np.divide(n * (n * both - first * second) ** 2, product, out=np.zeros_like(n), where=product > 0)
    np.fill_diagonal(statistic, 0.0)
    return statistic


def conditional_t(
    base: BaseEstimator,
    X: Any,
    Y: np.ndarray,
    n_folds: int,
    seed: int,
    n_jobs: int | None = 1,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """Return how much knowing one label helps to predict the other from the features.

    Parameters
    ----------
    base : scikit-learn classifier
        Fitted on the features, and on the features and one other label, q (q - 1) + q times per fold.
    X : ndarray or CSR matrix of shape (n, d)
    Y : ndarray of shape (n, q)
        0/1.
    n_folds : int
        Shuffled folds, the same for all pairs; no more than rows.
    seed : int
        Of the folds and of the base classifiers.
    weight : ndarray of shape (n,), optional
        Weights of the rows, in the fits and in the accuracies.

    Returns
    -------
    ndarray of shape (q, q), symmetric
        Paired t statistic of the two accuracies over the folds, -1 where the other label makes the mean accuracy
        lower, 0 where the differences are all equal; the larger of the two directions.

    References
    ----------
    L. Tenenboim-Chekina, L. Rokach, B. Shapira. Identification of label dependencies for multi-label classification.
    MLD workshop at ICML 2010.
    """
    if len(Y) < 2:
        raise MethodError(f"conditional dependence is measured on folds, which n_samples = {len(Y)} does not allow")
    folds = list(KFold(min(n_folds, len(Y)), shuffle=True, random_state=seed).split(Y))
    q = Y.shape[1]

    def accuracies(other: int | None) -> np.ndarray:
        columns = [X] if other is None else [X, Y[:, [other]].astype(np.float64)]
        matrix = sp.hstack(columns, format="csr") if sp.issparse(X) else np.hstack(columns)
        labels = np.flatnonzero(np.arange(q) != other) if other is not None else np.arange(q)
        accuracies = np.zeros((len(folds), q))
        for fold, (train, test) in enumerate(folds):
            learned, tested = (None, None) if weight is None else (weight[train], weight[test])
            model = BinaryRelevance(base, random_state=seed).fit(matrix[train], Y[np.ix_(train, labels)], learned)
            hits = model.predict(matrix[test]) == Y[np.ix_(test, labels)]
            accuracies[fold, labels] = np.average(hits, axis=0, weights=tested)
        return accuracies

    alone = accuracies(None)
    helped = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(accuracies)(j) for j in range(q))
    one_way = np.column_stack([_paired_t(with_label - alone) for with_label in helped])
    statistic = np.maximum(one_way, one_way.T)
    np.fill_diagonal(statistic, 0.0)
    return statistic


def _paired_t(gains: np.ndarray) -> np.ndarray:
    """Return t per column of accuracy gains of shape (folds, q)."""
    count = len(gains)
    mean = gains.mean(axis=0)
    spread = ((gains - mean) ** 2).sum(axis=0)
    t = np.divide(mean * np.sqrt(count * (count - 1)), np.sqrt(spread), out=np.zeros_like(mean), where=spread > 1e-20)
    return np.where(mean < 0, -1.0, t)
