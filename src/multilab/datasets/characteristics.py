"""Characteristics of a dataset: counts as in benchmark tables, a digest, features that look like identifiers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core import array_digest, json_digest
from multilab.datasets.columns import canonical_csr
from multilab.datasets.frames import codes_of, text_names
from multilab.datasets.raw_data import RawData

_BLOCK = 2**24  # labels made dense at a time
_CELLS = 2**17  # numbers that are looked at together: they stay in the cache
_FEW = 1000  # rows by which most columns show that they are not integers


def data_digest(X: Any, Y: np.ndarray, feature_names: Sequence[str], label_names: Sequence[str]) -> str:
    """Return the sha256 (64 hex digits) of a dataset: matrices, their shapes and the names.

    Parameters
    ----------
    X : ndarray or sparse of shape (n, d)
        Features. A dense matrix and a sparse one of the same values have different digests, since methods may treat
        them differently.
    Y : ndarray or CSR array of shape (n, q)
        Labels, 0 and 1; -1 in an int8 Y, and NaN in a float Y, where one was not observed. A dense matrix and a sparse
        one of the same values have the same digest.
    feature_names, label_names : sequence of str
        Names of the columns.

    Notes
    -----
    The digest does not depend on memory order, index width, index order, stored zeros, the sign of zero, and byte
    order.
    """
    if sp.issparse(X):
        csr = canonical_csr(X.copy())
        numbers = array_digest(csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64))
    else:
        step = max(1, _CELLS // max(1, X.shape[1]))
        blocks = (np.asarray(X[start : start + step], dtype=np.float64) for start in range(0, len(X), step))
        numbers = _digest_of_blocks(np.float64, X.shape, (block + 0.0 for block in blocks))  # -0.0 becomes 0.0
    return json_digest(
        {
            "X": ["csr" if sp.issparse(X) else "dense", list(map(int, X.shape)), numbers],
            "Y": _sparse_digest(Y) if sp.issparse(Y) else array_digest(_stored_labels(Y)),
            "feature_names": list(feature_names),
            "label_names": list(label_names),
        }
    )


def _sparse_digest(Y: Any) -> str:
    """Return `array_digest` of the uint8 matrix; equal for a dense and a sparse Y."""
    step = max(1, _BLOCK // Y.shape[1])
    blocks = (Y[start : start + step].toarray().astype(np.uint8) for start in range(0, Y.shape[0], step))
    return _digest_of_blocks(np.uint8, Y.shape, blocks)


def _digest_of_blocks(kind: Any, shape: tuple[int, ...], blocks: Iterable[np.ndarray]) -> str:
    """Return `array_digest` of a matrix of which one block of rows after another is in memory."""
    stored = np.dtype(kind).newbyteorder("<")
    sha = hashlib.sha256(f"{stored.str}{shape}".encode())
    for block in blocks:
        sha.update(np.ascontiguousarray(block, dtype=stored).data)
    return sha.hexdigest()


def _stored_labels(Y: np.ndarray) -> np.ndarray:
    """Return the labels as uint8, or as int8 with -1 where some were not observed."""
    hidden = np.isnan(Y) if Y.dtype.kind == "f" else (Y == -1 if Y.dtype == np.int8 else None)
    if hidden is None or not hidden.any():
        return np.ascontiguousarray(Y, dtype=np.uint8)
    return np.ascontiguousarray(np.where(hidden, -1, Y), dtype=np.int8)


def _distinct_rows(present: Any) -> int:
    if sp.issparse(present):
        return len({present.indices[a:b].tobytes() for a, b in pairwise(present.indptr)})
    rows = np.packbits(present, axis=1)
    return len(set(rows.view(f"V{rows.shape[1]}").ravel().tolist()))


def describe(raw: RawData) -> dict[str, Any]:
    """Return the characteristics of the content of a data file.

    Returns
    -------
    dict
        ``instances``, ``features`` (before one-hot coding), ``columns`` (of ``X``), ``labels``; ``cardinality`` (mean
        number of labels of a row), ``density`` (cardinality / labels), ``distinct_label_sets``, ``rows_without_label``,
        ``labels_never_set``, ``unobserved_labels`` (entries of ``Y``); ``missing_values``, ``nominal_features``,
        ``sparse`` (whether ``X`` is), ``id_like`` (features that look like row identifiers), ``notes`` (of the reader)
        and ``digest``; for a table that is not encoded yet, the ``kinds`` of its columns; the number of ``groups`` of
        rows that stay together.

    Notes
    -----
    Where labels were not observed, the cardinality is the sum of the shares of the labels among the rows that observe
    them, label sets are counted in the rows that observe all labels, and "without" and "never" mean that no label was
    observed to be set.

    Examples
    --------
    >>> from multilab.datasets import describe
    >>> from multilab.datasets.synthetic import generate
    >>> counts = describe(generate({"name": "genes", "n": 100}))
    >>> counts["instances"], counts["features"], counts["labels"], counts["cardinality"]
    (100, 20, 7, 2.25)
    """
    n, q = raw.Y.shape
    is_table = isinstance(raw.X, pd.DataFrame)
    X = codes_of(raw.X) if is_table else raw.X
    hidden = raw.Y == -1 if raw.Y.dtype == np.int8 else None
    present = raw.Y.astype(bool) if sp.issparse(raw.Y) else raw.Y == 1
    per_row = present.sum(axis=1, dtype=np.int64)
    cardinality = float(per_row.sum() / n) if n else 0.0
    complete = slice(None)
    if hidden is not None:
        observed = n - hidden.sum(axis=0)
        cardinality = float((present.sum(axis=0) / np.maximum(observed, 1)).sum())
        complete = ~hidden.any(axis=1)
    return {
        "instances": n,
        "features": raw.original_features,
        "columns": int(X.shape[1]),
        "labels": q,
        "cardinality": cardinality,
        "density": cardinality / q,
        "distinct_label_sets": _distinct_rows(present[complete]),
        "rows_without_label": int((per_row == 0).sum()),
        "labels_never_set": int((present.sum(axis=0) == 0).sum()),
        "unobserved_labels": 0 if hidden is None else int(hidden.sum()),
        "missing_values": raw.missing_values,
        "nominal_features": raw.nominal_features,
        "sparse": bool(sp.issparse(X)),
        "id_like": id_like(raw, X),
        "notes": list(raw.notes),
        "digest": content_digest(raw, X),
        **({} if raw.kinds is None else {"kinds": {name: str(kind) for name, kind in raw.kinds.items()}}),
        **({} if raw.groups is None else {"groups": len(np.unique(raw.groups))}),
    }


def content_digest(data: Any, codes: Any = None) -> str:
    """Return :func:`data_digest`, of a table with the texts and the kinds of its columns, and with the groups.

    Parameters
    ----------
    data : RawData or Dataset
    codes : ndarray of shape (n, m), optional
        Those of a table, see `multilab.datasets.frames.codes_of`, if they are there already.
    """
    X: Any = data.X if codes is None else codes
    X = codes_of(X) if isinstance(X, pd.DataFrame) else X
    digest = data_digest(X, data.Y, data.feature_names, data.label_names)
    if data.kinds is not None:
        texts = {name: list(data.X[name].cat.categories) for name in text_names(data.X)}
        digest = json_digest([digest, [[str(kind), texts.get(name)] for name, kind in data.kinds.items()]])
    return digest if data.groups is None else json_digest([digest, array_digest(data.groups)])


_MIN_ROWS = 10  # of fewer rows, different integers in order are common
_IDENTIFIER = re.compile(
    r"(?:^|[^a-z])(?:id|idx|index|uid|uuid|guid|row_?(?:id|no|nr|num|number)|unnamed: \d+|__index_level_\d+__)$",
    re.IGNORECASE,
)
_CAMEL_CASE = re.compile(r"[a-z]Id$")


def id_like(raw: RawData, codes: Any = None) -> list[str]:
    """Return the features that look like row identifiers, in the order of the columns.

    A feature is one if it has the name of an identifier (``id``, ``patient_id``, ``index``, ``Unnamed: 0``, ...) and
    holds at least three different integers, at most one of them 0 (a count of the word "id" is mostly 0); or when,
    in at least ten rows, its integers are all different and either without a gap or in order; or when it is
    nominal with a different value in every row.
    """
    X: Any = raw.X if codes is None else codes
    X = codes_of(X) if isinstance(X, pd.DataFrame) else X
    n = X.shape[0]
    by_column = X.tocsc() if sp.issparse(X) else X
    nominal = {j: (name, stop - start) for name, start, stop in raw.nominal for j in range(start, stop)}
    texts = set() if raw.X is X else set(text_names(raw.X))
    features = dict[str, None]()
    for j in _candidates(raw, X).tolist():
        if raw.feature_names[j] in texts:
            continue
        name, width = nominal.get(j, (raw.feature_names[j], 1))
        if width > 1:
            if width == n >= _MIN_ROWS:
                features[name] = None
            continue
        values = by_column[:, [j]].toarray().ravel() if sp.issparse(X) else by_column[:, j]
        if looks_like_identifier(name, values):
            features[name] = None
    return list(features)


def looks_like_identifier(name: str, values: np.ndarray) -> bool:
    """Return whether a feature of integers looks like a row identifier, see `id_like`."""
    named = _has_identifier_name(name) and (values == 0).sum() <= 1 and len(np.unique(values)) > 2
    return named or _numbers_rows(values)


def _candidates(raw: RawData, X: Any) -> np.ndarray:
    """Return the candidates: columns of integers of a wide enough range, or with a telling name or nominal width."""
    n, d = X.shape
    if n < 3 or not d:  # too few rows for any of the signs, however many columns there are
        return np.empty(0, dtype=np.intp)
    # A sparse column with more than one zero is no identifier: of millions of names, only a few are examined.
    X = X.tocsc() if sp.issparse(X) else X
    full = np.diff(X.indptr) >= n - 1 if sp.issparse(X) else _are_integers(X[:_FEW])
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
        columns, step = np.flatnonzero(full), max(1, _CELLS // n)
        with np.errstate(invalid="ignore", over="ignore"):
            for some in (columns[start : start + step] for start in range(0, len(columns), step)):
                block = X[:, some]
                integral[some] = _are_integers(block)
                wide[some] = block.max(axis=0) - block.min(axis=0) >= n - 1
    return np.flatnonzero(integral & (telling | (wide & (n >= _MIN_ROWS))))


def _are_integers(X: np.ndarray) -> np.ndarray:
    """Return which columns hold integers only, shape (d,)."""
    step = max(1, _CELLS // len(X))
    blocks = (X[:, start : start + step] for start in range(0, X.shape[1], step))
    with np.errstate(invalid="ignore"):
        return np.concatenate([(block == np.floor(block)).all(axis=0) for block in blocks])


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
