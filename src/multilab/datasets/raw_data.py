"""Content of one data file as matrices and names, returned by every reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from multilab.datasets.columns import TableColumn


@dataclass(frozen=True, eq=False)
class RawData:
    """Content of one data file of any format.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_array of shape (n, d), float64
        Features; nominal ones already as 0/1 columns. Dense and C-contiguous, or CSR with sorted indices and
        no stored zeros.
    Y : ndarray of shape (n, q), uint8, C-contiguous; or CSR where sparse rows have many labels
        Labels, 0 or 1, in the order of the file's columns; int8 with -1 where one was not observed, if any was not.
    feature_names, label_names : list of str
        Names of the columns of ``X`` and of ``Y``. One-hot columns are called ``attribute=value``.
    original_features : int
        Number of features before one-hot coding.
    nominal_features : int
        Number of original features that are declared nominal.
    missing_values : int
        Number of missing feature values (NaN in ``X``).
    train_rows : int or None
        For a file with a training set followed by a test set: the number of training rows.
    nominal : tuple of (str, int, int)
        Each nominal feature: its name, and the first and one past the last of its columns in ``X``.
    imputed_values : int
        Number of missing values that were imputed; they are not among ``missing_values``.
    notes : tuple of str
        Actions of the reader: columns left out, text coded, values imputed.
    columns : tuple of TableColumn or None
        The columns of ``X`` if it is a table that is not encoded yet, see `Dataset.columns`.
    groups : ndarray of int64, shape (n,), or None
        Group of each row, see `Dataset.groups`.
    """

    X: Any
    Y: Any
    feature_names: list[str]
    label_names: list[str]
    original_features: int
    nominal_features: int = 0
    missing_values: int = 0
    train_rows: int | None = None
    nominal: tuple[tuple[str, int, int], ...] = ()
    imputed_values: int = 0
    notes: tuple[str, ...] = ()
    columns: tuple[TableColumn, ...] | None = None
    groups: np.ndarray | None = None
