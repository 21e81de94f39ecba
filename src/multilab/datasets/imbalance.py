"""Imbalance of the labels of a dataset: IRLbl, MeanIR, CVIR and SCUMBLE."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.core.tables import table_values
from multilab.core.tags import tag_columns

__all__ = ["cvir", "irlbl", "mean_ir", "scumble", "scumble_lbl"]


def irlbl(Y: Any) -> np.ndarray:
    """Return the imbalance ratio of each label: the count of the most frequent label divided by its own.

    Parameters
    ----------
    Y : array-like or sparse matrix of shape (n, q)
        Labels; values other than 1 (0, or -1 and NaN for unobserved labels) do not count.

    Returns
    -------
    ndarray of shape (q,)
        1 for the most frequent label, infinity for a label that no row has, NaN if no label is set at all.

    References
    ----------
    F. Charte, A. J. Rivera, M. J. del Jesus, F. Herrera. Addressing imbalance in multilabel classification: measures
    and random resampling algorithms. Neurocomputing 163, 2015. Definition (3) there.

    Examples
    --------
    >>> from multilab.datasets import irlbl
    >>> irlbl([[1, 1], [1, 0], [1, 0], [1, 1]])
    array([1., 2.])
    """
    counts = _set(Y).sum(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return counts.max(initial=0.0) / counts


def mean_ir(Y: Any) -> float:
    """Return MeanIR, the mean of `irlbl` over the labels that occur; NaN if none does.

    Examples
    --------
    >>> from multilab.datasets import mean_ir
    >>> mean_ir([[1, 1], [1, 0], [1, 0], [1, 1]])
    1.5
    """
    ratios = irlbl(Y)
    ratios = ratios[np.isfinite(ratios)]
    return float(ratios.mean()) if len(ratios) else float("nan")


def cvir(Y: Any) -> float:
    """Return CVIR, the coefficient of variation of `irlbl` over the labels that occur.

    The standard deviation divides by the number of these labels minus one, as in the paper of `irlbl`; NaN for fewer
    than two.

    Examples
    --------
    >>> from multilab.datasets import cvir
    >>> round(cvir([[1, 1], [1, 0], [1, 0], [1, 1]]), 4)
    0.4714
    """
    ratios = irlbl(Y)
    ratios = ratios[np.isfinite(ratios)]
    return float(ratios.std(ddof=1) / ratios.mean()) if len(ratios) > 1 else float("nan")


def scumble(Y: Any) -> float:
    """Return SCUMBLE, the degree to which frequent and rare labels occur in the same rows: 0 (never) to below 1.

    SCUMBLE is the mean over all rows of 1 - (geometric mean / mean) of `irlbl` of the row's labels; 0 for a row without
    labels.

    References
    ----------
    F. Charte, A. J. Rivera, M. J. del Jesus, F. Herrera. Concurrence among imbalanced labels and its influence on
    multilabel resampling algorithms. HAIS 2014.

    Examples
    --------
    >>> from multilab.datasets import scumble
    >>> round(scumble([[1, 1], [1, 0], [1, 0], [1, 1]]), 4)
    0.0286
    """
    rows = _row_scumble(_set(Y), irlbl(Y))
    return float(rows.mean()) if len(rows) else float("nan")


def scumble_lbl(Y: Any) -> np.ndarray:
    """Return SCUMBLELbl of each label: the mean SCUMBLE of the rows that have the label, NaN if no row has it.

    References
    ----------
    F. Charte, A. J. Rivera, M. J. del Jesus, F. Herrera. Dealing with difficult minority labels in imbalanced
    multilabel data sets. Neurocomputing 326-327, 2019.

    Examples
    --------
    >>> from multilab.datasets import scumble_lbl
    >>> scumble_lbl([[1, 1], [1, 0], [1, 0], [1, 1]]).round(4)
    array([0.0286, 0.0572])
    """
    labels = _set(Y)
    rows = _row_scumble(labels, irlbl(Y))
    with np.errstate(invalid="ignore"):
        return (labels.T @ rows) / labels.sum(axis=0)


def _row_scumble(labels: sp.csr_array, ratios: np.ndarray) -> np.ndarray:
    finite = np.where(np.isfinite(ratios), ratios, 1.0)
    counts = np.maximum(labels.sum(axis=1), 1)
    mean = (labels @ finite) / counts
    geometric = np.exp((labels @ np.log(finite)) / counts)
    # equal ratios differ by rounding only; a row without labels has 0 / 1
    scores = 1.0 - geometric / np.where(mean > 0, mean, 1.0)
    return np.where(labels.sum(axis=1) > 0, np.maximum(scores, 0.0), 0.0)


def _set(Y: Any) -> sp.csr_array:
    """Return which labels are set, as float 0/1 in CSR."""
    matrix = table_values(tag_columns(Y, name="Y"))
    if matrix.ndim != 2:
        raise ValueError(f"Y must have two dimensions, with one column per label, got shape {matrix.shape}")
    return sp.csr_array(matrix == 1).astype(np.float64)
