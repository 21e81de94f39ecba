"""ARFF files of Mulan (labels named by an XML file) and MEKA (``-C n`` in the relation name)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.datasets.arff_header import Header, parse_header
from multilab.datasets.arff_rows import parse_rows
from multilab.datasets.coded_table import CodedTable
from multilab.datasets.column_roles import LabelOptions, TableColumn
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, decode, encoding_note, read_bytes
from multilab.datasets.ignored_columns import dropped_note, positions_left
from multilab.datasets.number_parsing import dense_numbers, sparse_numbers


def read_arff(
    path: PathLike,
    options: LabelOptions | None,
    limits: Limits,
    drop: Sequence[str] = (),
    missing_labels: bool = False,
    encoding: str | None = None,
) -> CodedTable:
    """Read an ARFF file, dense or sparse, compressed or not.

    Parameters
    ----------
    path : path-like
        The file.
    options : LabelOptions or None
        Which attributes are the labels; None: no attribute is. If no option is set, ``-C n`` in the relation name
        decides: the first n attributes, or the last n for ``-C -n``; otherwise ``-C`` is ignored (filters leave wrong
        ones).
    limits : Limits
        Upper bounds of sizes.
    drop : sequence of str
        Names of attributes that are left out; they may have any type.
    missing_labels : bool
        Whether a label may be missing (``?``).
    encoding : str, optional
        See :func:`multilab.datasets.file_access.decode`.

    Returns
    -------
    CodedTable
        CSR for a file of sparse rows, else dense. Labels are in the order of the file's columns,
        whatever the order of the XML. A label may be numeric, or nominal with the values 0 and 1, or true and false in
        any order and case.

    Raises
    ------
    DatasetError
        See :func:`multilab.datasets.arff_rows.parse_rows`; further, a label attribute declared with other
        values.
    """
    octets = read_bytes(path, limits)
    text = decode(octets, path, encoding)
    header = parse_header(text, path, limits, drop)
    kept = positions_left([column.name for column in header.columns], drop, path)
    labels = _labels(header, options, kept, path)
    columns = list(header.columns)
    for j in labels.tolist():
        columns[j] = _binary_label(columns[j], path)
    table = _quick_table(header, labels)
    if table is None:
        table = parse_rows(header.rest, header.first_line, header.columns, labels, path, limits, drop, missing_labels)
    if len(kept) < len(columns):
        table, columns = table[:, kept], [columns[j] for j in kept]
        labels = np.searchsorted(kept, labels)
    return CodedTable.split(
        table, columns, labels, path, limits, (*encoding_note(octets, encoding), *dropped_note(drop))
    )


def _labels(header: Header, options: LabelOptions | None, kept: Sequence[int], path: PathLike) -> np.ndarray:
    """Return the positions of the labels: ``-C`` counts all attributes, other options those that are kept."""
    if options is None:
        return np.empty(0, dtype=np.intp)
    columns = [header.columns[j] for j in kept]
    if options.given():
        return np.asarray(kept)[options.choose(columns, path)]
    chosen = np.intersect1d(_label_options(header, path).choose(header.columns, path), kept)
    names = [header.columns[j].name for j in chosen]
    return np.asarray(kept)[LabelOptions(label_names=names).choose(columns, path)]


def _binary_label(column: TableColumn, path: PathLike) -> TableColumn:
    """Return a label attribute with its values as 0 and 1, in their order."""
    if column.values is None or column.binary:
        return column
    texts = tuple(value.lower() for value in column.values)
    if not set(texts) <= {"true", "false"} or len(set(texts)) < len(texts):
        shown = ",".join(column.values)[:60]
        raise DatasetError(
            f"non-binary label: '{column.name[:60]}' has the values {{{shown}}}, expected 0 and 1, or true and false",
            path,
            column.line,
        )
    return TableColumn(column.name, tuple("1" if text == "true" else "0" for text in texts), column.line)


def _label_options(header: Header, path: PathLike) -> LabelOptions:
    count = header.meka_labels
    if not count or "weka.filters" in header.relation:
        why = f"the -C {count} in the relation name is not reliable after a filter"
        if not count:
            why = "the label attributes are unknown (no -C in the relation name)"
        raise DatasetError(f"{why}: name the XML file, or the number of first or last columns", path)
    return LabelOptions(labels_first=count) if count > 0 else LabelOptions(labels_last=-count)


def _quick_table(header: Header, labels: np.ndarray) -> np.ndarray | sp.csr_array | None:
    """Return the rows as :func:`parse_rows` does, or None if only that can read them."""
    columns = header.columns
    if not header.rest.isascii() or any(c.values is not None and c.numbers is None for c in columns):
        return None
    body = header.rest.encode("ascii")
    sparse = re.match(rb"\s*+\{", body) is not None
    table = (sparse_numbers if sparse else dense_numbers)(body, len(columns))
    if table is None:
        return None
    known = _sparse_codes(table, columns) if sparse else _dense_codes(table, columns)
    numeric = np.array([c.values is None for c in columns])
    numeric_labels = labels[numeric[labels]]
    if not known or (len(numeric_labels) and not _binary(table[:, numeric_labels])):
        return None
    return table


def _binary(values: np.ndarray | sp.csr_array) -> bool:
    return bool(np.isin(values.data if sp.issparse(values) else values, (0.0, 1.0)).all())


def _dense_codes(table: np.ndarray, columns: Sequence[TableColumn]) -> bool:
    """Replace nominal values by their positions in index; return whether all were declared ones."""
    return all(column.values is None or _encode(table[:, j], column) for j, column in enumerate(columns))


def _sparse_codes(table: sp.csr_array, columns: Sequence[TableColumn]) -> bool:
    # All nominal {0,1} attributes at once: they are plain, their values are their positions.
    highest = np.array([np.inf if c.values is None else len(c.values) - 1 for c in columns])
    plain = np.array([c.plain for c in columns])
    nominal = np.isfinite(highest)
    entries = (plain & nominal)[table.indices]
    values = table.data[entries]
    if (values > highest[table.indices[entries]]).any() or not np.isin(values, (0.0, 1.0)).all():
        return False
    order = np.argsort(table.indices, kind="stable")
    bounds = np.searchsorted(table.indices[order], np.arange(len(columns) + 1))
    for j in np.flatnonzero(nominal & ~plain).tolist():
        of_column = order[bounds[j] : bounds[j + 1]]
        column_values = table.data[of_column]
        if not _encode(column_values, columns[j]):
            return False
        table.data[of_column] = column_values
    return True


def _encode(values: np.ndarray, column: TableColumn) -> bool:
    """Replace the numbers by their positions among the declared values; False if one is not among them."""
    declared = np.asarray(column.numbers)
    if column.plain:
        return bool(np.isin(values, declared).all())
    order = np.argsort(declared)
    index = np.minimum(np.searchsorted(declared[order], values), len(declared) - 1)
    if (declared[order][index] != values).any():
        return False
    values[:] = order[index]
    return True
