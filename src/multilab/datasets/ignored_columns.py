"""Columns that are no features: those that the user drops, and those that look like row identifiers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.messages import did_you_mean
from multilab.datasets.errors import DatasetError
from multilab.datasets.raw_data import RawData

_MIN_ROWS = 10  # of fewer rows, different integers in order are common
_IDENTIFIER = re.compile(
    r"(?:^|[^a-z])(?:id|idx|index|uid|uuid|guid|row_?(?:id|no|nr|num|number)|unnamed: \d+|__index_level_\d+__)$",
    re.IGNORECASE,
)
_CAMEL_CASE = re.compile(r"[a-z]Id$")


def names_to_drop(drop: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the names of the columns to drop, from a sequence or one text with commas."""
    if drop is None:
        return ()
    names = drop.split(",") if isinstance(drop, str) else drop
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise DatasetError(f"drop must be a list of column names, not {drop!r}")
    return tuple(name.strip() for name in names if name.strip())


def positions_left(names: Sequence[str], drop: Sequence[str], path: PathLike) -> list[int]:
    """Return the positions of the columns that are not dropped.

    Raises
    ------
    DatasetError
        A name to drop is no column.
    """
    known = set(names)
    for name in drop:
        if name not in known:
            hint = did_you_mean(name, known)
            raise DatasetError(f"drop: '{name[:60]}' is not a column{hint[:200]}", path)
    left_out = set(drop)
    return [j for j, name in enumerate(names) if name not in left_out]


def dropped_note(drop: Sequence[str]) -> list[str]:
    """Return the note of the dropped columns, if any."""
    shown = ", ".join(repr(name[:60]) for name in drop[:10]) + (f" and {len(drop) - 10} more" if len(drop) > 10 else "")
    return [f"left out as requested: {shown}"] if drop else []


def id_like_features(raw: RawData) -> list[str]:
    """Return the features that look like row identifiers, in the order of the columns.

    A feature is one if it has the name of an identifier (``id``, ``patient_id``, ``index``, ``Unnamed: 0``, ...) and
    holds at least three different integers, at most one of them 0 (a count of the word "id" is mostly 0); or when,
    in at least ten rows, its integers are all different and either without a gap or in order; or when it is
    nominal with a different value in every row.
    """
    n = raw.X.shape[0]
    by_column = raw.X.tocsc() if sp.issparse(raw.X) else raw.X
    nominal = {j: (name, stop - start) for name, start, stop in raw.nominal for j in range(start, stop)}
    features = dict[str, None]()
    for j in _candidates(raw).tolist():
        name, width = nominal.get(j, (raw.feature_names[j], 1))
        if width > 1:
            if width == n >= _MIN_ROWS:
                features[name] = None
            continue
        values = by_column[:, [j]].toarray().ravel() if sp.issparse(raw.X) else by_column[:, j]
        if looks_like_identifier(name, values):
            features[name] = None
    return list(features)


def looks_like_identifier(name: str, values: np.ndarray) -> bool:
    """Return whether a feature of integers looks like a row identifier, see `id_like_features`."""
    named = _has_identifier_name(name) and (values == 0).sum() <= 1 and len(np.unique(values)) > 2
    return named or _numbers_rows(values)


def _candidates(raw: RawData) -> np.ndarray:
    """Return the candidates: columns of integers of a wide enough range, or with a telling name or nominal width."""
    n, d = raw.X.shape
    if n < 3:  # too few rows for any of the signs, however many columns there are
        return np.empty(0, dtype=np.intp)
    # A sparse column with more than one zero is no identifier: of millions of names, only a few are examined.
    X = raw.X.tocsc() if sp.issparse(raw.X) else raw.X
    full = np.diff(X.indptr) >= n - 1 if sp.issparse(X) else np.ones(d, dtype=bool)
    telling = np.zeros(d, dtype=bool)
    telling[full] = [_has_identifier_name(raw.feature_names[j]) for j in np.flatnonzero(full)]
    for _, start, stop in raw.nominal:
        telling[start:stop] |= stop - start == n
    wide = np.zeros(d, dtype=bool)
    integral = np.zeros(d, dtype=bool)
    if sp.issparse(X):  # a column of different numbers has at most one zero
        for j in np.flatnonzero(telling | full).tolist():
            values = X.data[X.indptr[j] : X.indptr[j + 1]]
            integral[j] = bool((values == np.floor(values)).all())
            wide[j] = len(values) > 0 and float(values.max()) - min(float(values.min()), 0.0) >= n - 1
    else:
        with np.errstate(invalid="ignore"):
            for start in range(0, d, 256):  # in blocks, so that no second matrix of this size is allocated
                block = X[:, start : start + 256]
                integral[start : start + 256] = (block == np.floor(block)).all(axis=0)
                wide[start : start + 256] = block.max(axis=0) - block.min(axis=0) >= n - 1
    return np.flatnonzero(integral & (telling | (wide & (n >= _MIN_ROWS))))


def _has_identifier_name(name: str) -> bool:
    name = name[-100:].strip()
    return bool(_IDENTIFIER.search(name) or _CAMEL_CASE.search(name))


def _numbers_rows(values: np.ndarray) -> bool:
    """Return whether the values number the rows: all different, and without a gap or in order."""
    if len(values) < _MIN_ROWS:
        return False
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return True
    return bool((np.diff(np.sort(values)) == 1).all())
