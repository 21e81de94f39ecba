# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Sparse label matrices: validation, columns, and the limit up to which they are made dense.

An estimator that learns from a sparse Y without a dense copy says so by its class attribute ``_sparse_labels``.
"""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

Layout = Literal["csr", "csc"]

MAX_DENSE_BYTES = 2**28
"""Largest sparse Y, as one byte per label of a row, that a method makes dense: its scores take eight times as much."""


def canonical_labels(y: Any, layout: Layout) -> Any | None:
    """Return a sparse label matrix as a new uint8 CSR or CSC array in canonical form, without stored zeros.

    Parameters
    ----------
    y : sparse matrix of shape (n, q), or any other
    layout : {"csr", "csc"}

    Returns
    -------
    csr_array or csc_array of shape (n, q), or None
        None where `multilab.methods.base.check_labels` has to judge: y is not sparse, has other values than 0 and 1, or
        no labels.
    """
    if not sp.issparse(y) or y.ndim != 2 or y.shape[1] == 0:
        return None
    labels = (sp.csr_array if layout == "csr" else sp.csc_array)(y, copy=True)
    labels.sum_duplicates()
    labels.eliminate_zeros()
    if not np.all(labels.data == 1):
        return None
    labels.data = np.ones(labels.nnz, dtype=np.uint8)
    return labels


def refusal_of_dense(y: Any, owner: str) -> str | None:
    """Return why a sparse y is not made dense, or None if it is small enough.

    Parameters
    ----------
    y : sparse matrix
    owner : str
        Name of what needs a dense Y.
    """
    size = int(np.prod(y.shape, dtype=np.int64))
    if size <= MAX_DENSE_BYTES:
        return None
    shape = " x ".join(f"{length:,}" for length in y.shape)
    return (
        f"y of {shape} would take {size / 2**20:,.0f} MiB dense, and its scores eight times as much; {owner} needs it "
        f"dense, and a sparse y is made dense up to {MAX_DENSE_BYTES // 2**20} MiB: pass y.toarray() if that fits, or "
        "take a method that learns from a sparse y (guide page: many labels)"
    )


def label_column(Y: Any, label: int) -> np.ndarray:
    """Return one column of a dense or CSC label matrix as a dense array of shape (n,)."""
    if not sp.issparse(Y):
        return Y[:, label]
    column = np.zeros(Y.shape[0], dtype=Y.dtype)
    column[Y.indices[Y.indptr[label] : Y.indptr[label + 1]]] = 1
    return column


def label_columns(Y: Any) -> Iterator[np.ndarray]:
    """Yield the columns of a dense or CSC label matrix as dense arrays."""
    return (label_column(Y, label) for label in range(Y.shape[1]))
