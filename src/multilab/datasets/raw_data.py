"""Content of a data file: labels as a matrix, features as a matrix or, of a table, as a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from multilab.datasets.kinds import Kind


@dataclass(frozen=True, eq=False)
class RawData:
    """Content of one data file of any format.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_array of shape (n, d), float64; or DataFrame of shape (n, m)
        Features; nominal ones of ARFF are 0/1 columns already. Dense and C-contiguous, or CSR with sorted indices and
        no stored zeros. For a table, a data frame, see `multilab.datasets.frames.Rows`.
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
        Each nominal feature of ARFF: its name, and the first and one past the last of its columns in ``X``; in a data
        frame, only the features of texts.
    notes : tuple of str
        Actions of the reader, such as columns left out.
    kinds : dict of str to Kind, or None
        The kinds of the columns of a table, once they are chosen, see `Dataset.kinds`.
    groups : ndarray of int64, shape (n,), or None
        Group of each row, see `Dataset.groups`.
    grouped : tuple of str
        Columns of numbers whose points may separate thousands.
    embeddings : mapping of str to str
        Columns of text that became numbers, see `multilab.datasets.embeddings`.
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
    notes: tuple[str, ...] = ()
    kinds: dict[str, Kind] | None = None
    groups: np.ndarray | None = None
    grouped: tuple[str, ...] = ()
    embeddings: Mapping[str, str] = field(default_factory=dict)
