"""Corrections of labels: a table of cells in a file of its own, which a card names next to the data files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.messages import did_you_mean
from multilab.core.text import excerpt
from multilab.datasets.csv_files import delimiter_of
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import decode, read_bytes

__all__ = ["ROLE", "Correction", "corrected", "corrections_text", "merged", "read_corrections"]

ROLE = "corrections"
"""Role of the table in a card."""

_COLUMNS = ("row", "label", "given", "corrected")
_VALUES = {"0": 0, "1": 1, "?": -1}
_TEXTS = {value: text for text, value in _VALUES.items()}


class Correction(NamedTuple):
    """A label of a row (counted from 1) with its given and its corrected value: 0, 1, or -1 for "not observed"."""

    row: int
    label: str
    given: int
    corrected: int


def read_corrections(path: PathLike) -> dict[Correction, int]:
    r"""Return the corrections in a CSV file, each with its line.

    Parameters
    ----------
    path : path-like
        A table with the columns ``row`` (from 1), ``label``, ``given`` and ``corrected``, and any others. ``given`` and
        ``corrected`` are 0, 1, or ``?`` for a label that was not observed; lines whose ``corrected`` is empty are
        left out.

    Raises
    ------
    DatasetError
        If a column is missing, a cell holds something else, or a label is corrected twice. The message has the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import read_corrections
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "right.csv"
    >>> _ = path.write_text("row,label,given,corrected\n3,calm,1,0\n8,sad,0,\n9,sad,1,?\n")
    >>> list(read_corrections(path))
    [Correction(row=3, label='calm', given=1, corrected=0), Correction(row=9, label='sad', given=1, corrected=-1)]
    """
    text = decode(read_bytes(path), path)
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter_of(text.partition("\n")[0]), strict=True)
    found: dict[Correction, int] = {}
    seen: dict[tuple[int, str], int] = {}
    try:
        for name in _COLUMNS:
            if name not in (reader.fieldnames or ()):
                raise DatasetError(f"there is no column '{name}'; columns are {', '.join(_COLUMNS)}", path, 1)
        for line in reader:
            correction = _correction(line, path, reader.line_num)
            if correction is None:
                continue
            where = correction.row, correction.label
            if seen.setdefault(where, reader.line_num) != reader.line_num:
                raise DatasetError(
                    f"row {where[0]}, label {excerpt(where[1])!r} is in line {seen[where]} already",
                    path,
                    reader.line_num,
                )
            found[correction] = reader.line_num
    except csv.Error as error:
        raise DatasetError(f"not a CSV file: {error}", path, reader.line_num) from None
    return found


def _correction(line: Mapping[str, Any], path: PathLike, number: int) -> Correction | None:
    """Return the correction in a line, None if it has none."""
    row, label, given, corrected = (str(line[name] or "").strip() for name in _COLUMNS)
    if not corrected:
        return None
    if not row.isdecimal() or int(row) < 1:
        raise DatasetError(f"row must be a whole number from 1, not {excerpt(row)!r}", path, number)
    for name, value in (("given", given), ("corrected", corrected)):
        if value not in _VALUES:
            raise DatasetError(f"{name} must be 0, 1 or ?, not {excerpt(value)!r}", path, number)
    return Correction(int(row), label, _VALUES[given], _VALUES[corrected])


def corrected(
    Y: Any, label_names: Iterable[str], corrections: Mapping[Correction, int], path: PathLike | None = None
) -> Any:
    """Return a label matrix with corrections applied.

    Parameters
    ----------
    Y : ndarray or CSR of shape (n, q)
        Labels as in `Dataset.Y`.
    label_names : iterable of str
    corrections : mapping of Correction to int
        Corrections with the line of each, see :func:`read_corrections`.
    path : path-like, optional
        File of the corrections, for messages.

    Raises
    ------
    DatasetError
        If there is no such row or label, the given value differs from the one in Y, or a cell of a sparse matrix would
        become unobserved.
    """
    positions = {name: label for label, name in enumerate(label_names)}
    sparse = sp.issparse(Y)
    labels = Y.tolil(copy=True) if sparse else Y.astype(np.int8)
    for correction, line in corrections.items():
        row, name, given, right = correction
        if row > labels.shape[0]:
            raise DatasetError(f"there is no row {row}; the dataset has {labels.shape[0]} rows", path, line)
        if name not in positions:
            hint = did_you_mean(name, positions)
            raise DatasetError(f"{excerpt(name)!r} is not a label of the dataset{hint}", path, line)
        actual = int(labels[row - 1, positions[name]])
        if actual != given:
            reason = f"row {row}, label {excerpt(name)!r} is {_TEXTS[actual]} in the dataset, not {_TEXTS[given]}"
            raise DatasetError(f"{reason}; the table was made from other data", path, line)
        if sparse and right < 0:
            raise DatasetError("'?' is refused: the labels are sparse, so that all cells are observed", path, line)
        labels[row - 1, positions[name]] = right
    if sparse:
        return sp.csr_array(labels)
    return labels if (labels < 0).any() else labels.astype(np.uint8)


def merged(earlier: Iterable[Correction], later: Iterable[Correction]) -> dict[Correction, int]:
    """Return earlier and later corrections as one set of corrections of the uncorrected labels."""
    cells = {(one.row, one.label): one for one in earlier}
    for one in later:
        first = cells.get((one.row, one.label), one)
        cells[one.row, one.label] = first._replace(corrected=one.corrected)
    return {one: line for line, one in enumerate(cells.values(), 2) if one.given != one.corrected}


def corrections_text(corrections: Iterable[Correction]) -> str:
    """Return the content of a file of corrections."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in sorted(corrections):
        writer.writerow([one.row, one.label, _TEXTS[one.given], _TEXTS[one.corrected]])
    return stream.getvalue()
