"""Rows of cells: training and test rows, inner folds of them, encoded tables, hidden labels."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from multilab.cells.cell import Cell, SplitRef, encoder_files, library_versions, split_refs
from multilab.cells.errors import ExperimentError
from multilab.cells.loaded_data import loaded_dataset, loaded_splits
from multilab.cells.pipeline import training_folds
from multilab.cells.seeds import seed_for
from multilab.core import array_digest, canonical_json, json_digest, parse_json, write_atomically
from multilab.datasets.table_encoder import TableEncoder, with_grams
from multilab.model_selection import indices_digest

if TYPE_CHECKING:
    from multilab.cells.settings import Tuning
    from multilab.cells.store import Store

__all__ = [
    "Rows",
    "base_score_rows",
    "check_rows",
    "encoded_rows",
    "has_grams",
    "indices",
    "inner_cells",
    "inner_training_folds",
    "observed_labels",
    "out_of_fold_seed",
    "outdated_tables",
    "ref_with_grams",
    "rows_of",
    "tables_without_rows",
]

_GRAMS = "chars"
_FOLDER = ".encoded"
_SEAL = 32  # bytes of a checksum


@dataclass
class Rows:
    """Training and test rows of an estimator, and their labels.

    Attributes
    ----------
    X_train, X_test : ndarray or CSR
        Features, or base scores of the methods that a method reads.
    Y_train, Y_test : ndarray of shape (n, q), (m, q)
    groups : ndarray of shape (n,) or None
        Of the training rows.
    encoder : TableEncoder or None
        What encoded the rows of a table.
    """

    X_train: Any
    Y_train: np.ndarray
    X_test: Any
    Y_test: np.ndarray
    groups: np.ndarray | None = None
    encoder: TableEncoder | None = None


# ---------------------------------------------------------------- which rows


def indices(ref: SplitRef) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and the test rows of a split."""
    if ref.split < 0:
        every = np.arange(loaded_dataset(ref.dataset, ref.dataset_digest).Y.shape[0])
        train, test = every, every[:0]
    else:
        splits = loaded_splits(ref.dataset, ref.protocol)
        split = splits[ref.split % len(splits)]
        train, test = split.train, split.test
    if ref.inner is None:
        return train, test
    folds, order, seed, index = ref.inner
    inner = training_folds(loaded_dataset(ref.dataset, ref.dataset_digest).Y[train], folds, order, seed)[index]
    return train[inner[0]], train[inner[1]]


def check_rows(ref: SplitRef) -> None:
    """Refuse data and rows that are not those of the key: another command may replace a table meanwhile."""
    loaded_dataset(ref.dataset, ref.dataset_digest)
    if ref.split >= 0 and indices_digest(*indices(ref)) != ref.digest:
        raise ExperimentError(f"{ref.dataset} has changed since this command began; run it again")


def inner_cells(cell: Cell, tuning: Tuning) -> list[Cell]:
    """Return the inner folds of a cell's training set, each as a cell; a search scores its trials on them.

    Of rows with groups an inner fold is a split of a protocol that names the training set it is `within`: the rows of a
    group are never on both sides.
    """
    ref = cell.split_ref
    if ref.groups:
        seed = _seed(cell, "search folds of groups")
        within = {"protocol": json.loads(ref.protocol), "split": ref.split}
        protocol = {"kfold": tuning.folds, "stratify": tuning.order, "seed": seed, "within": within}
        refs = [replace(inner, repetition=ref.repetition) for inner in split_refs(ref.dataset, protocol)]
    else:
        train, _ = indices(ref)
        seed = _seed(cell, "search folds")
        folds = training_folds(
            loaded_dataset(ref.dataset, ref.dataset_digest).Y[train], tuning.folds, tuning.order, seed
        )
        refs = [
            replace(
                ref,
                digest=indices_digest(train[fit], train[predict]),
                inner=(tuning.folds, tuning.order, seed, index),
            )
            for index, (fit, predict) in enumerate(folds)
        ]
    return [replace(cell, split_ref=inner, tune=None, alone=False) for inner in refs]


# Of rows with groups, 2: a search sees no label that `observed` hides; 3: folds of tuned decisions depend on the seed.
inner_cells.results_version = 3  # type: ignore[attr-defined]


def inner_training_folds(cell: Cell, rows: Rows) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds of the out-of-fold scores of a cell's training rows: positions within these."""
    folds = cell.method.inner_cv
    return training_folds(rows.Y_train, folds["folds"], folds["order"], out_of_fold_seed(cell), rows.groups)


def out_of_fold_seed(cell: Cell) -> int:
    """Return the seed of these folds."""
    return _seed(cell, "inner folds of groups" if cell.split_ref.groups else "inner folds")


def _seed(cell: Cell, what: str) -> int:
    return seed_for(cell.seed, cell.split_ref.dataset_digest, cell.split_ref.digest, what)


def _outer(ref: SplitRef) -> SplitRef:
    """Return the split whose training set contains an inner fold; of any other split the split itself."""
    while within := json.loads(ref.protocol).get("within"):
        ref = replace(ref, protocol=canonical_json(within["protocol"]), split=within["split"])
    return replace(ref, inner=None, digest="")


# ---------------------------------------------------------------- their features and labels


def rows_of(cell: Cell, store: Store) -> Rows:
    """Return the features and the labels of a cell's rows, not yet scaled.

    The encoder of a table is that of the outer training set, also for inner folds: it reads no label.
    """
    ref = cell.split_ref
    train, test = indices(ref)
    if ref.encoder:
        encoder, X = encoded_rows(ref, store)
    else:
        encoder, X = None, loaded_dataset(ref.dataset, ref.dataset_digest).X
    return _with_labels(cell, X[train], X[test], train, test, encoder)


def base_score_rows(cell: Cell, scores: Sequence[np.ndarray]) -> Rows:
    """Return the base scores and the labels of a cell's rows.

    ``scores`` are those of the cells it reads, in their order: per member the out-of-fold scores of the training rows,
    then the scores of the test rows.
    """
    return _with_labels(cell, np.hstack(scores[0::2]), np.hstack(scores[1::2]), *indices(cell.split_ref))


def _with_labels(
    cell: Cell, X: Any, X_test: Any, train: np.ndarray, test: np.ndarray, encoder: TableEncoder | None = None
) -> Rows:
    ref = cell.split_ref
    data = loaded_dataset(ref.dataset, ref.dataset_digest)
    groups = data.groups[train] if ref.groups else None
    Y, Y_test = data.Y[train], data.Y[test]
    if cell.observed:
        Y = _hidden(Y, train, cell)
        # The validation labels of a search are training labels, too.
        Y_test = Y_test if ref.inner_fold is None else _hidden(Y_test, test, cell)
    return Rows(X, Y, X_test, Y_test, groups, encoder)


def _hidden(Y: np.ndarray, rows: np.ndarray, cell: Cell) -> np.ndarray:
    """Return labels of which only a share is observed, the others being -1, or 0 where the setting says so."""
    setting = cell.observed
    assert setting is not None
    observed = observed_labels(rows, Y.shape[1], setting.share, cell.seed, cell.split_ref.dataset_digest)
    if setting.hidden == "absent":
        return np.where(observed, Y, 0).astype(Y.dtype)
    return np.where(observed, Y, -1).astype(np.int8)


def observed_labels(rows: np.ndarray, n_labels: int, share: float, seed: int, dataset_digest: str) -> np.ndarray:
    """Return which labels of some rows of a dataset are observed under the setting `observed`.

    It is drawn from the seed and the data alone: the same for all methods, for a method and the base learners whose
    scores it reads, and for a training set and its inner folds. What is observed at a smaller share is observed at a
    larger one, too.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        Numbers of the rows in the complete dataset.
    n_labels : int
    share : float
        Expected share of observed labels.
    seed : int
        Root of the seeds.
    dataset_digest : str

    Returns
    -------
    ndarray of shape (n, n_labels), bool
    """
    rng = np.random.default_rng(seed_for(seed, dataset_digest, "observed labels"))
    return rng.random((int(rows.max(initial=-1)) + 1, n_labels))[rows] < share


# ---------------------------------------------------------------- encoded tables


def encoded_rows(ref: SplitRef, store: Store) -> tuple[TableEncoder, Any]:
    """Return the encoder learned from the training rows of a split, and all rows of the table encoded by it.

    Of an inner fold it is that of the outer training rows. The matrix is written next to the cells once, and read by
    all others of the split.
    """
    outer = _outer(ref) if ref.groups else replace(ref, inner=None, digest="")
    rows, _ = indices(outer)
    return _encoded(ref.dataset, ref.dataset_digest, ref.encoder, rows.astype(np.int64).tobytes(), store.root)


def ref_with_grams(ref: SplitRef) -> SplitRef:
    """Return a split of a table whose texts are encoded with character n-grams in addition to words."""
    return replace(ref, encoder=_GRAMS)


def has_grams(ref: SplitRef) -> bool:
    """Return whether a split is one of `ref_with_grams`."""
    return ref.encoder == _GRAMS


@functools.lru_cache(maxsize=2)
def _encoded(dataset: str, digest: str, kind: str, training_rows: bytes, root: Path) -> tuple[TableEncoder, Any]:
    """Return the encoder learned from some rows of a table (their numbers as int64), and the encoded table."""
    rows = np.frombuffer(training_rows, np.int64)
    # The rows themselves: the same split of the same protocol has others when the table is cut elsewhere.
    made_by = json_digest([digest, kind, array_digest(rows), library_versions()])
    path = root / _FOLDER / encoder_files() / made_by
    try:
        return _read(path)
    except (OSError, ValueError):  # not there, or damaged
        data = loaded_dataset(dataset, digest)
        kinds = with_grams(data.kinds or {}) if kind == _GRAMS else data.kinds or {}
        encoder = TableEncoder.learn(data.X.iloc[rows], kinds, data.label_names)
        X = encoder.encode(data.X).X
        with contextlib.suppress(OSError):  # a store that may only be read
            write_atomically(path, _bytes(path, encoder, X))
        return encoder, X


def outdated_tables(store: Store) -> list[Path]:
    """Return the encoded tables that other code made, which are not read any more."""
    return [path for path in sorted(store.root.glob(f"{_FOLDER}/*")) if path.name != encoder_files()]


def tables_without_rows(store: Store) -> list[Path]:
    """Return the encoded tables of a time when their names did not depend on the training rows."""
    return sorted(store.root.glob(f"{_FOLDER}/*.npz"))


def _bytes(path: Path, encoder: TableEncoder, X: Any) -> bytes:
    """Return the content of a file: a checksum, and a .npz archive."""
    buffer, text = io.BytesIO(bytes(_SEAL)), np.array(canonical_json(encoder.to_json()))
    buffer.seek(_SEAL)
    if sp.issparse(X):
        shape = np.array(X.shape)
        np.savez(buffer, encoder=text, data=X.data, indices=X.indices, indptr=X.indptr, shape=shape)
    else:
        np.savez(buffer, encoder=text, dense=X)
    seal = _seal(path)
    with buffer.getbuffer() as content:
        seal.update(content[_SEAL:])
        content[:_SEAL] = seal.digest()
    return buffer.getvalue()


def _seal(path: Path) -> Any:
    """Return the beginning of a checksum: it covers the name of a file, which says what made the table in it."""
    return hashlib.sha256(path.name.encode())


def _read(path: Path) -> tuple[TableEncoder, Any]:
    with path.open("rb") as stored:
        seal = stored.read(_SEAL)
        if seal != hashlib.file_digest(stored, lambda: _seal(path)).digest():
            raise ValueError("not what was written")
        stored.seek(_SEAL)
        arrays = np.load(stored, allow_pickle=False)
        encoder = TableEncoder.from_json(parse_json(str(arrays["encoder"])))
        if "dense" in arrays:
            return encoder, arrays["dense"]
        parts = arrays["data"], arrays["indices"], arrays["indptr"]
        return encoder, sp.csr_array(parts, shape=tuple(arrays["shape"]))
