"""Missing feature values: error and imputation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.datasets.column_roles import canonical_csr
from multilab.datasets.errors import DatasetError
from multilab.datasets.raw_data import RawData


def missing_error(raw: RawData, path: PathLike | None = None) -> DatasetError:
    """Return the error with the number of missing feature values, the first of them, and what to do."""
    rows, columns = _positions(raw.X)
    name = _feature(raw, int(columns[0]))
    return DatasetError(
        f"{raw.missing_values} feature values are missing, the first in row {rows[0] + 1}, feature '{name[:60]}': fill "
        "them in, leave the feature out (drop), or set missing to 'impute' (median or most frequent value)",
        path,
    )


def impute(raw: RawData, path: PathLike | None = None) -> RawData:
    """Impute the missing feature values.

    Parameters
    ----------
    raw : RawData
        The rows, with NaN where a feature value is missing.
    path : path-like, optional
        The file, for the error message.

    Returns
    -------
    RawData
        Without NaN. A missing value of a nominal feature, and of a feature that holds only 0 and 1, becomes the most
        frequent value (the first of equally frequent ones); of any other feature the median.

    Raises
    ------
    DatasetError
        A feature has no value at all.

    Notes
    -----
    The values are learned from all rows of ``raw``, later test rows included, but from no label. To impute from
    the training rows only, read with ``missing="keep"`` and put scikit-learn's ``SimpleImputer`` before the
    classifier in a ``Pipeline``.
    """
    if not raw.missing_values:
        return raw
    _, absent = _positions(raw.X)
    columns = np.unique(absent)
    fill = fill_values(raw, columns)
    lacking = columns[np.isnan(fill[columns])]
    if len(lacking):
        raise DatasetError(f"feature '{_feature(raw, lacking[0])[:60]}' has no value at all: leave it out (drop)", path)
    feature = {j: start for _, start, stop in raw.nominal for j in range(start, stop)}
    concerned = len({feature.get(j, j) for j in columns.tolist()})
    note = (
        f"missing values imputed from all rows: {raw.missing_values}, features concerned: {concerned} (median; most "
        "frequent value of a nominal or 0/1 feature)"
    )
    imputed = raw.imputed_values + raw.missing_values
    return replace(raw, X=_filled(raw.X, fill), missing_values=0, imputed_values=imputed, notes=(*raw.notes, note))


def fill_values(raw: RawData, columns: np.ndarray | None = None) -> np.ndarray:
    """Return what missing values become, shape (d,): see :func:`impute`; NaN in columns without any value.

    Parameters
    ----------
    raw : RawData
    columns : ndarray of int, optional
        The columns to compute, the others are 0; all of a nominal feature, or none. None: every column.
    """
    by_column = raw.X.tocsc() if sp.issparse(raw.X) else raw.X
    wide = {j: (start, stop) for _, start, stop in raw.nominal if stop - start > 1 for j in range(start, stop)}
    nominal = {start for _, start, _ in raw.nominal}
    fill = np.zeros(raw.X.shape[1])
    for j in range(raw.X.shape[1]) if columns is None else columns.tolist():
        values = _column(by_column, j)
        values = values[~np.isnan(values)]
        if not len(values):
            fill[j] = np.nan
        elif j in wide:
            start, stop = wide[j]
            if j == start:
                sums = [np.nansum(_column(by_column, k)) for k in range(start, stop)]
                fill[start + int(np.argmax(sums))] = 1.0
        elif j in nominal or np.isin(values, (0.0, 1.0)).all():
            fill[j] = float(values.mean() > 0.5)
        else:
            fill[j] = np.median(values) + 0.0
    return fill


def _positions(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the NaN entries, row by row."""
    if not sp.issparse(X):
        rows, columns = np.nonzero(np.isnan(X))
        return rows, columns
    entries = np.flatnonzero(np.isnan(X.data))
    return np.searchsorted(X.indptr, entries, side="right") - 1, X.indices[entries]


def _column(by_column: Any, j: int) -> np.ndarray:
    return by_column[:, [j]].toarray().ravel() if sp.issparse(by_column) else by_column[:, j]


def _filled(X: Any, fill: np.ndarray) -> Any:
    X = X.copy()
    if sp.issparse(X):
        absent = np.isnan(X.data)
        X.data[absent] = fill[X.indices[absent]]
        return canonical_csr(X)
    rows, columns = _positions(X)
    X[rows, columns] = fill[columns]
    return X


def _feature(raw: RawData, j: int) -> str:
    """Return the name of the feature that column ``j`` of ``X`` belongs to."""
    names = (name for name, start, stop in raw.nominal if start <= j < stop)
    return next(names, raw.feature_names[j])
