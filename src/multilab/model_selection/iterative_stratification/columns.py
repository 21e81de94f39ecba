"""Columns that iterative stratification balances: labels, pairs of labels, and which labels are observed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from multilab.core.tables import table_values
from multilab.core.tags import tag_columns
from multilab.datasets.errors import DatasetError


class LabelMatrix(NamedTuple):
    """Labels of n rows, sparse.

    Attributes
    ----------
    positive : csr_array of bool of shape (n, q)
        Labels that a row has.
    unobserved : csr_array of bool of shape (n, q)
        Labels that are not known.
    """

    positive: sp.csr_array
    unobserved: sp.csr_array


def check_label_matrix(Y: Any) -> LabelMatrix:
    """Return the labels as sparse matrices; a sparse Y is not made dense.

    Parameters
    ----------
    Y : array-like or sparse of shape (n, q) or (n,)
        Labels, 0 or 1; NaN, or -1 in an int8 matrix, where a label is not observed.

    Raises
    ------
    DatasetError
        If there is any other value, no label is observed, or an int8 matrix holds -1 and 1 without 0.

    Examples
    --------
    >>> from multilab.model_selection.iterative_stratification import check_label_matrix
    >>> labels = check_label_matrix([[1, 0, float("nan")]])
    >>> labels.positive.nnz, labels.unobserved.nnz
    (1, 1)
    """
    try:
        Y = tag_columns(Y)
    except ValueError as error:
        raise DatasetError(str(error)) from None
    if sp.issparse(Y):
        matrix = sp.csr_array(Y)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        values, shape = matrix.data, matrix.shape
        positive, unobserved = (_select(matrix, chosen) for chosen in _classify(values))
    else:
        try:
            values = table_values(Y)
        except ValueError:
            raise DatasetError("labels have rows of unequal length; give one 0/1 column per label") from None
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2:
            raise DatasetError(f"labels must be a table with one row per example, got shape {values.shape}")
        positive, unobserved = (sp.csr_array(chosen) for chosen in _classify(values))
        shape = values.shape
    if unobserved.nnz and unobserved.nnz == shape[0] * shape[1]:
        raise DatasetError("no label is observed; the labels need a 0 or 1")
    if values.dtype == np.int8 and unobserved.nnz and positive.nnz + unobserved.nnz == shape[0] * shape[1]:
        raise DatasetError("there is no 0, and -1 in an int8 table means not observed; for -1/+1 labels pass Y > 0")
    return LabelMatrix(positive, unobserved)


def _classify(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which values are 1 and which mean "not observed"; the others must be 0."""
    if values.dtype.kind == "f":
        unobserved = np.isnan(values)
    else:
        unobserved = values == -1 if values.dtype == np.int8 else np.zeros(values.shape, dtype=bool)
    positive = (values == 1) & ~unobserved
    if not np.all(positive | unobserved | (values == 0)):
        raise DatasetError(
            "labels must be a table of 0 and 1, one row per example; a label that is not observed is NaN, or -1 in an "
            "int8 table"
        )
    return positive, unobserved


def _select(matrix: sp.csr_array, chosen: np.ndarray) -> sp.csr_array:
    """Return the pattern of some stored entries of a matrix."""
    indptr = np.concatenate([[0], np.cumsum(chosen)])[matrix.indptr]
    return sp.csr_array((chosen[chosen], matrix.indices[chosen], indptr), shape=matrix.shape)


def stratification_columns(Y: Any, order: int = 1) -> sp.csr_array:
    """Return the columns to balance: pairs of labels (order 2), labels, and how far labels are observed.

    Parameters
    ----------
    Y : array-like or sparse of shape (n, q) or (n,), or LabelMatrix
        Labels; see :func:`check_label_matrix`.
    order : {1, 2}
        2 adds a column for every pair of labels that occurs, ahead of the labels.

    Returns
    -------
    csr_array of bool of shape (n, columns)
        Without empty columns, sorted indices. A label with unobserved entries has a second column, after all labels:
        its observed negative rows or its unobserved rows, whichever are fewer. As fold sizes are given, balancing the
        positive rows and one of these balances the third.

    Examples
    --------
    >>> from multilab.model_selection.iterative_stratification import stratification_columns
    >>> stratification_columns([[1, 1, 0], [0, 1, 0]], order=2).astype(int).toarray()
    array([[1, 1, 1],
           [0, 0, 1]])
    """
    if order not in (1, 2):
        raise DatasetError(f"iterative stratification has the order 1 or 2, got {order!r}")
    labels = Y if isinstance(Y, LabelMatrix) else check_label_matrix(Y)
    blocks = [labels.positive]
    if order == 2:
        blocks.insert(0, _pairs(labels.positive))
    if labels.unobserved.nnz:
        blocks.append(_observation(labels))
    columns = sp.csr_array(sp.hstack(blocks, format="csr")) if len(blocks) > 1 else labels.positive
    used = np.bincount(columns.indices, minlength=columns.shape[1]) > 0
    number = np.cumsum(used) - 1
    indices = number[columns.indices].astype(np.int32)
    return sp.csr_array((columns.data, indices, columns.indptr), shape=(columns.shape[0], int(used.sum())))


def _pairs(positive: sp.csr_array) -> sp.csr_array:
    """Return the columns of all pairs of labels that occur together, in the order of their labels."""
    n, q = positive.shape
    counts = np.diff(positive.indptr)
    rows, keys = [], []
    for count in np.unique(counts[counts > 1]):
        chosen = np.flatnonzero(counts == count)
        labels = positive.indices[positive.indptr[chosen][:, None] + np.arange(count)].astype(np.int64)
        first, second = np.triu_indices(count, k=1)
        keys.append((labels[:, first] * q + labels[:, second]).ravel())
        rows.append(np.repeat(chosen, len(first)))
    if not keys:
        return sp.csr_array((n, 0), dtype=bool)
    known, column = np.unique(np.concatenate(keys), return_inverse=True)
    entries = np.ones(len(column), dtype=bool), (np.concatenate(rows), column)
    return sp.csr_array(entries, shape=(n, len(known)))


def _observation(labels: LabelMatrix) -> sp.csr_array:
    """Return, for every label, its unobserved rows or its observed negative rows, whichever are fewer."""
    positive, unobserved = labels.positive.tocsc(), labels.unobserved.tocsc()
    n, q = positive.shape
    columns = []
    for label in range(q):
        hidden = unobserved.indices[unobserved.indptr[label] : unobserved.indptr[label + 1]]
        having = positive.indices[positive.indptr[label] : positive.indptr[label + 1]]
        if len(hidden) > n - len(having) - len(hidden):
            negative = np.ones(n, dtype=bool)
            negative[hidden] = negative[having] = False
            hidden = np.flatnonzero(negative)
        columns.append(hidden)
    indptr = np.concatenate([[0], np.cumsum([len(rows) for rows in columns])])
    rows = np.concatenate(columns)
    return sp.csc_array((np.ones(len(rows), dtype=bool), rows, indptr), shape=(n, q)).tocsr()
