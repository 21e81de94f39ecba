"""True labels as sets per row, the cells that were observed, and the rows and labels that are measured.

A cell of Y is not observed where a float Y is NaN, an int8 Y is -1, or ``y_mask`` is False. Every metric is computed as
if these cells did not exist: a row is measured over its observed labels, a label over the rows that observe it, and a
row or a label without any observed cell is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from multilab.core.messages import unknown_name
from multilab.core.tables import in_another_order
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import (
    Cells,
    Entries,
    blocks,
    refuse_unless_binary,
    refuse_where,
)

_Given = TypeVar("_Given", bound=Cells)


class _Labels(Cells):
    """Observed are the cells that are neither NaN nor -1."""

    def _converted(self, block: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
        return ~np.isnan(block) if block.dtype.kind == "f" else block >= 0


class _Mask(Cells):
    """Observed are the cells that are True."""

    def _converted(self, block: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
        return block != 0


class _CellWeights(Cells):
    """Weights >= 0 of the cells, divided by ``scale``.

    Raises
    ------
    MetricError
        If a weight is negative or not finite.
    """

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix, "sample_weight")
        stored = self.matrix if isinstance(self.matrix, np.ndarray) else self.matrix.data
        if not np.isfinite(stored).all() or (stored < 0).any():
            raise MetricError("`sample_weight` must hold finite numbers >= 0")
        self.scale = _scale_of(float(stored.max(initial=0.0)))

    def _converted(self, block: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
        weights = block / self.scale
        return weights if observed is None else np.where(observed, weights, 0.0)


class Observed:
    """Cells that are observed by all of some matrices, read in blocks.

    Parameters
    ----------
    parts : list of Cells
        Each gives bool blocks.
    """

    def __init__(self, parts: list[Cells]) -> None:
        self._parts = parts
        self.shape = parts[0].shape

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return the rows ``start`` to ``stop`` as a bool array."""
        return np.logical_and.reduce([part.rows(start, stop) for part in self._parts])

    def columns(self, start: int, stop: int) -> np.ndarray:
        """Return the labels ``start`` to ``stop`` as a C-ordered bool array of shape (stop - start, n_rows)."""
        return np.logical_and.reduce([part.columns(start, stop) for part in self._parts])

    def take(self, lines: np.ndarray | None, labels: np.ndarray | None) -> Observed:
        """Return a selection of rows and labels."""
        return Observed([part.take(lines, labels) for part in self._parts])

    @cached_property
    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of observed cells of each row and of each label."""
        of_rows, of_labels = np.zeros(self.shape[0], dtype=np.int64), np.zeros(self.shape[1], dtype=np.int64)
        for start, stop in blocks(*self.shape):
            block = self.rows(start, stop)
            of_rows[start:stop] = block.sum(axis=1)
            of_labels += block.sum(axis=0)
        return of_rows, of_labels


class LabelSets:
    """0/1 matrix stored as the label indices of each row.

    Parameters
    ----------
    matrix : array-like or sparse, shape (n_rows, n_labels)
        Bool, integer or float, holding 0 and 1; NaN, or -1 in int8, where a label was not observed.
    name : str
        Name in error messages.
    y_mask : array-like or sparse, shape (n_rows, n_labels), optional
        True where a label is observed; the values of the matrix elsewhere are ignored.
    sample_weight : array-like of shape (n_rows,) or (n_rows, n_labels), optional
        Weights of the rows, >= 0. Rows of weight 0 are left out, as if they did not exist. Or weights of the cells; one
        of weight 0 is not observed.
    labels : sequence of int or str, optional
        The labels to measure, by position or name; the others are left out. None: all.

    Attributes
    ----------
    observed : Observed or None
        None if all cells are.
    positions : ndarray of int, shape (n_labels,)
        Positions of the measured labels in the matrix.
    weights : ndarray of float, shape (n_rows,), or None
        Weights of the rows that are left, divided by ``weight_scale``, a power of two: products of weights neither
        overflow nor vanish, and nothing is rounded.
    cell_weights : Cells of float, or None
        Weights of the cells, divided in the same way, 0 where a cell is not observed.

    Raises
    ------
    MetricError
        If it is not a non-empty two-dimensional 0/1 matrix, has no observed cell, or the weights or labels are wrong.
    """

    def __init__(
        self, matrix: Any, name: str = "Y", y_mask: Any = None, sample_weight: Any = None, labels: Any = None
    ) -> None:
        self._given = cells = Cells(matrix, name)
        n_rows, n_labels = cells.shape
        self.names = cells.names
        self.positions = np.arange(n_labels) if labels is None else _positions(labels, self.names, n_labels)
        self._rows: np.ndarray | None = None
        self.weights: np.ndarray | None = None
        self.cell_weights: Cells | None = None
        self.weight_scale = 1.0
        of_cells = None
        if _is_matrix(sample_weight):
            of_cells = _CellWeights(sample_weight)
        elif sample_weight is not None:
            weights = checked_weights(sample_weight, n_rows)
            self._rows = None if weights.all() else np.flatnonzero(weights)
            self.weight_scale = _scale_of(float(weights.max()))
            self.weights = weights[weights > 0] / self.weight_scale
        self._labels = None if labels is None else self.positions
        if not self._is_complete:
            cells = Cells(self._part(cells.matrix), name)
        checked = cells.matrix
        self.shape: tuple[int, int] = checked.shape
        self._blocks = blocks(*self.shape)
        masks = [] if y_mask is None else [self.chosen(_mask(y_mask), "y_mask")]
        if of_cells is not None:
            of_cells = self.chosen(of_cells, "sample_weight")
            masks.append(self.chosen(_Mask(sample_weight, "sample_weight"), "sample_weight"))
        self.observed = _observed(cells, name, masks)
        if of_cells is not None:
            self.cell_weights = of_cells if self.observed is None else of_cells.hiding(self.observed)
        if self.observed is None:
            refuse_unless_binary(checked, name)
        if isinstance(checked, np.ndarray) or self.observed is not None:
            sizes, indices = [], []
            for start, stop in self._blocks:
                block = cells.rows(start, stop)
                if self.observed is not None:
                    seen = self.observed.rows(start, stop)
                    refuse_where(seen & (block != 0) & (block != 1), block, start, name)
                    block = seen & (block == 1)
                rows, labels = np.nonzero(block)
                sizes.append(np.bincount(rows, minlength=stop - start))
                indices.append(labels.astype(np.int32))
            self.indices = np.concatenate(indices)
            self.indptr = np.concatenate(([0], np.cumsum(np.concatenate(sizes))))
        else:
            if not checked.data.all():  # stored zeros
                checked = checked.copy()
                checked.eliminate_zeros()
            self.indptr = checked.indptr.astype(np.int64)
            self.indices = checked.indices

    def chosen(self, given: _Given, name: str) -> _Given:
        """Return the measured rows and labels of a matrix of all rows and labels; refuse another shape than that of Y.

        Raises
        ------
        MetricError
            If the shapes, or the orders of the columns of two data frames, differ.
        """
        if self._given.shape != given.shape:
            raise MetricError(f"Y has shape {self._given.shape} but {name} has shape {given.shape}")
        refuse_other_order(self.names, "Y", given.names, name)
        if self._is_complete:
            return given
        if sp.issparse(given.matrix) and not isinstance(given, _CellWeights):
            # selected at once: ranks are counted from all stored entries
            return type(given)(self._part(given.matrix), name)
        return given.take(self._rows, self._labels)

    @property
    def _is_complete(self) -> bool:
        return self._rows is None and self._labels is None

    def _part(self, matrix: Any) -> Any:
        part = matrix if self._rows is None else matrix[self._rows]
        return part if self._labels is None else part[:, self._labels]

    @property
    def row_lengths(self) -> int | np.ndarray:
        """Number of labels of each row that are observed; one number if all are."""
        return self.shape[1] if self.observed is None else self.observed.sizes[0]

    @property
    def label_lengths(self) -> float | np.ndarray:
        """Number of rows that observe each label, or the sum of their weights; one number if all do."""
        if self.weights is None:
            return self.shape[0] if self.observed is None else self.observed.sizes[1]
        if self.observed is None:
            return float(self.weights.sum())
        parts = [self.weights[slice(*part)] @ self.observed.rows(*part) for part in self._blocks]
        return np.sum(parts, axis=0)

    @cached_property
    def n_cells(self) -> float:
        """Number of observed cells, each counted by its weight or that of its row."""
        if self.cell_weights is not None:
            return float(sum(self.cell_weights.rows(*part).sum() for part in self._blocks))
        lengths = np.broadcast_to(self.row_lengths, self.shape[0])
        return int(lengths.sum()) if self.weights is None else float(self.weights @ lengths)

    def entries(self, start: int, stop: int) -> Entries:
        """Return the relevant entries of the rows ``start`` to ``stop``, lists counted from ``start``."""
        starts = self.indptr[start : stop + 1] - self.indptr[start]
        lists = np.repeat(np.arange(stop - start), np.diff(starts))
        return Entries(lists, self.indices[self.indptr[start] : self.indptr[stop]], starts)

    @cached_property
    def parts(self) -> list[tuple[int, int, Entries]]:
        """Blocks of rows, each as (start, stop, relevant entries)."""
        return [(*part, self.entries(*part)) for part in self._blocks]

    def to_csr(self) -> sp.csr_array:
        """Return the relevant entries as a sparse bool matrix."""
        ones = np.ones(self.indices.size, dtype=bool)
        return sp.csr_array((ones, self.indices, self.indptr), shape=self.shape)

    @cached_property
    def transposed(self) -> LabelSets:
        """Return the same matrix as the row indices of each label; for its entries only."""
        return self._of(self.to_csr().T.tocsr(), None, None, None)

    def take(self, lines: np.ndarray | None = None, labels: np.ndarray | None = None) -> LabelSets:
        """Return a selection of rows and labels, each an index array or None for all."""
        csr = self.to_csr()
        if lines is not None:
            csr = csr[lines]
        if labels is not None:
            csr = csr[:, labels]
        csr.sort_indices()
        observed = None if self.observed is None else self.observed.take(lines, labels)
        weights = self.weights if lines is None or self.weights is None else self.weights[lines]
        cell_weights = None if self.cell_weights is None else self.cell_weights.take(lines, labels)
        return self._of(csr, observed, weights, cell_weights)

    def refuse_cell_weights(self, owner: str) -> None:
        """Raise a MetricError if cells have weights, for what is no sum over cells."""
        if self.cell_weights is not None:
            raise MetricError(
                f"{owner} takes one weight per row, shape ({self.shape[0]},): weights of shape (n, q) are for metrics "
                "that are sums over cells, such as hamming_loss, micro_f1 and macro_f1"
            )

    @classmethod
    def _of(
        cls,
        csr: sp.csr_array,
        observed: Observed | None,
        weights: np.ndarray | None,
        cell_weights: Cells | None,
    ) -> LabelSets:
        made = object.__new__(cls)
        made.shape, made.observed, made.weights, made.names = csr.shape, observed, weights, None
        made.cell_weights = cell_weights
        made._blocks = blocks(*csr.shape)
        made.indptr, made.indices = csr.indptr.astype(np.int64), csr.indices
        return made


def refuse_other_order(first: Any, first_name: str, second: Any, second_name: str) -> None:
    """Raise when two lists of column names hold the same names in another order; None is a matrix without names."""
    if in_another_order(first, second):
        raise MetricError(
            f"{second_name} has the columns of {first_name} in another order: "
            "reorder one of them by the columns of the other, or pass arrays to compare by position"
        )


def _is_matrix(sample_weight: Any) -> bool:
    return getattr(sample_weight, "ndim", None) == 2 or (
        isinstance(sample_weight, list) and np.ndim(sample_weight) == 2
    )


def _scale_of(largest: float) -> float:
    """Return the power of two by which weights are divided."""
    return float(2.0 ** (np.frexp(largest)[1] - 1))


def checked_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return the weights of the rows as an array; refuse others than finite ones >= 0 that are not all 0."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise MetricError(f"`sample_weight` must hold {n_rows} finite numbers >= 0, got shape {weights.shape}")
    if not weights.any():
        raise MetricError("`sample_weight`: all weights are 0, so there is nothing to measure")
    return weights


def _positions(labels: Any, names: Any, n_labels: int) -> np.ndarray:
    """Return the positions of labels that are given by position or by name."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise MetricError(f"`labels` must be a list of positions or names, got {labels!r}")
    known = [] if names is None else list(map(str, names))
    positions = []
    for label in labels:
        if isinstance(label, str):
            if label not in known:
                reason = "Y has no names: give positions" if names is None else unknown_name("label", label, known)
                raise MetricError(f"`labels`: {reason}")
            positions.append(known.index(label))
        elif isinstance(label, int | np.integer) and not isinstance(label, bool) and 0 <= label < n_labels:
            positions.append(int(label))
        else:
            raise MetricError(f"`labels`: {label!r} is neither a position from 0 to {n_labels - 1} nor a name")
    if not positions or len(set(positions)) < len(positions):
        raise MetricError("`labels` must name at least one label, each once")
    return np.array(positions)


def _mask(y_mask: Any) -> _Mask:
    mask = _Mask(y_mask, "y_mask")
    refuse_unless_binary(mask.matrix, "y_mask")
    return mask


def _observed(cells: Cells, name: str, masks: list[_Mask]) -> Observed | None:
    """Return the observed cells, or None if all are."""
    parts: list[Cells] = []
    matrix = cells.matrix
    if _has_marks(matrix):
        parts.append(_Labels(matrix, name))
        if not masks and matrix.dtype == np.int8 and isinstance(matrix, np.ndarray) and matrix.all():
            raise MetricError(
                f"{name} holds no 0, and -1 in an int8 matrix is a label that was not observed; "
                f"for -1/+1 labels pass ({name} > 0)"
            )
    parts += masks
    observed = Observed(parts) if parts else None
    if observed is None or observed.sizes[0].sum() == observed.shape[0] * observed.shape[1]:
        return None
    if not observed.sizes[0].any():
        raise MetricError(f"no cell of {name} is observed, so there is nothing to measure")
    return observed


def _has_marks(matrix: np.ndarray | sp.csr_array) -> bool:
    """Return whether a float matrix holds NaN, or an int8 matrix -1."""
    stored = matrix.reshape(-1, matrix.shape[-1]) if isinstance(matrix, np.ndarray) else matrix.data[:, None]
    if not stored.size or (matrix.dtype.kind != "f" and matrix.dtype != np.int8):
        return False
    parts = (stored[start:stop] for start, stop in blocks(*stored.shape))
    return any(bool(np.isnan(part).any() if part.dtype.kind == "f" else (part == -1).any()) for part in parts)


def observed_only(truth: LabelSets, given: _Given) -> tuple[LabelSets, _Given]:
    """Return labels and the chosen scores (or decisions) without unobserved cells.

    Rows and labels without an observed cell are left out; other unobserved cells are hidden, see :meth:`Cells.hiding`.
    """
    if truth.observed is None:
        return truth, given
    selected: list[np.ndarray | None] = [
        None if sizes.all() else np.flatnonzero(sizes) for sizes in truth.observed.sizes
    ]
    if any(index is not None for index in selected):
        truth, given = truth.take(*selected), given.take(*selected)
    assert truth.observed is not None
    return truth, given.hiding(truth.observed)
