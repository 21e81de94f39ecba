"""Reader of Parquet files."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pyarrow import ArrowException, BufferReader, compute, parquet, types

from multilab.core.files import PathLike, parse_json
from multilab.core.messages import option
from multilab.datasets.columns import INDEX_NAME, LabelOptions, TableColumn, dropped_note, positions_left
from multilab.datasets.encode import CodedTable, refuse_text
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, read_bytes, require_cells
from multilab.datasets.frames import table_of_frame
from multilab.datasets.table import choose_labels, index_note, named_columns
from multilab.datasets.table_cells import (
    are_labels,
    categories_of,
    cell_text,
    coded_cells,
    label_note,
    meaning_notes,
    missing_label_hint,
    read_label_numbers,
    recoded,
    text_hint,
)


def read_parquet(
    path: PathLike,
    options: LabelOptions | None,
    limits: Limits,
    drop: Sequence[str] = (),
    text: str = "error",
    missing_labels: bool = False,
    text_columns: Collection[str] = (),
) -> CodedTable:
    """Read a Parquet file of numeric and boolean columns.

    Parameters
    ----------
    path, options, limits, drop, text, missing_labels, text_columns
        As for :func:`multilab.datasets.table.read_csv`; columns of a string type or of lists are text, too.

    Returns
    -------
    CodedTable
        Dense. Null and NaN are missing values. Index columns of pandas, by the file's metadata or by the name
        ``__index_level_0__``, are left out, and ``notes`` says so.

    Raises
    ------
    DatasetError
        No Parquet file, a column that is not numeric, infinite values, missing or
        non-binary labels (with the number of the row, counted from 1).
    """
    content = read_bytes(path, limits)
    try:
        schema = parquet.read_schema(BufferReader(content))
        strings = [field.name for field in schema if is_string(field.type)]
        # Repeated text expands without bound unless it is read as codes.
        file = parquet.ParquetFile(BufferReader(content), read_dictionary=strings)
        rows, width = file.metadata.num_rows, file.metadata.num_columns
        require_cells(rows, width, "the table", path, limits)
        if not rows:
            raise DatasetError("the table has no row", path)
        if width > limits.max_columns:
            raise DatasetError(f"more than the limit of {limits.max_columns} columns", path, 1)
        skipped = {*drop, *text_columns}
        if vectors := [field.name for field in schema if _is_vector(field.type) and field.name not in skipped]:
            return _with_vectors(file, vectors, path, options, limits, drop, text, missing_labels, text_columns)
        names = schema.names  # every access builds the list again
        index = index_names(schema, names)
        kept = [j for j in positions_left(names, drop, path) if names[j] not in index]
        columns = named_columns(names, kept, path)
        labels = choose_labels(options, columns, path)
        is_label = set(labels.tolist())
        for j, position in enumerate(kept):
            if j in is_label or columns[j].name not in text_columns:  # those are text, whatever they hold
                require_numbers(schema.field(position), path, text != "error", j in is_label)
        table = file.read(columns=[column.name for column in columns])
    except (ArrowException, OSError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"not a readable Parquet file ({error})", path) from None
    values = np.empty((rows, len(columns)))
    for j, column in enumerate(columns):
        columns[j], values[:, j] = parquet_column(table.column(column.name), column, path, column.name in text_columns)
    meanings = dict[str, list[str]]()
    for j in labels.tolist():
        if (texts := columns[j].values) is None:
            note = read_label_numbers(values[:, j])
        else:
            codes = np.where(np.isnan(values[:, j]), len(texts), values[:, j]).astype(np.intp)
            known = [*texts, *([""] if (codes == len(texts)).any() else [])]
            name, note = columns[j].name, label_note(known)
            columns[j], values[:, j], fault = coded_cells(known, codes, name, "label", True, missing_labels)
            if fault:
                raise DatasetError(f"row {fault[0] + 1}: {fault[1]}", path)
        if note:
            meanings.setdefault(note, []).append(columns[j].name)
    _check_labels(values, columns, labels, path, missing_labels)
    notes = [index_note(f"{name[:60]!r} is the index of a data frame", path) for name in index]
    notes += meaning_notes(meanings)
    return CodedTable.split(values, columns, labels, path, limits, (*notes, *dropped_note(drop)))


def is_string(kind: Any) -> bool:
    """Return whether a type of Arrow is that of text, also if it is coded."""
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind)


def _is_list(kind: Any) -> bool:
    of_lists = types.is_list(kind) or types.is_large_list(kind)
    return of_lists and (is_string(kind.value_type) or types.is_integer(kind.value_type))


def _is_vector(kind: Any) -> bool:
    of_lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return of_lists and types.is_floating(kind.value_type)


def _with_vectors(
    file: Any,
    vectors: Sequence[str],
    path: PathLike,
    options: LabelOptions | None,
    limits: Limits,
    drop: Sequence[str],
    text: str,
    missing_labels: bool,
    text_columns: Collection[str],
) -> CodedTable:
    """Return a table with columns of vectors, which becomes a data frame."""
    about = file.metadata
    numbers = 0
    for group in range(about.num_row_groups):
        chunks = (about.row_group(group).column(j) for j in range(about.num_columns))
        numbers += sum(chunk.num_values for chunk in chunks if chunk.path_in_schema.partition(".")[0] in vectors)
    require_cells(numbers, 1, "the vectors", path, limits)
    index = index_names(file.schema_arrow, file.schema_arrow.names)
    table = file.read(columns=[name for name in file.schema_arrow.names if name not in {*drop, *index}])
    table.validate(full=True)
    frame = table.to_pandas(ignore_metadata=True)
    absent = [name for name in drop if name not in file.schema_arrow.names]
    made = table_of_frame(frame, options, absent, missing_labels, path, limits, text_columns)
    if text == "error":
        refuse_text(made)
    notes = [index_note(f"{name[:60]!r} is the index of a data frame", path) for name in index]
    return replace(made, notes=(*notes, *made.notes, *dropped_note(drop)))


def _is_date(kind: Any) -> bool:
    return types.is_timestamp(kind) or types.is_date(kind)


def index_names(schema: Any, names: Sequence[str]) -> list[str]:
    """Return the columns of a Parquet file that are the index of its data frame, by its metadata or by their names."""
    known, unnamed = set(names), [name for name in names if INDEX_NAME.fullmatch(name)]
    try:
        described = parse_json((schema.metadata or {}).get(b"pandas", b"{}"))
        index = described.get("index_columns", [])
        return list(dict.fromkeys([*(name for name in index if isinstance(name, str) and name in known), *unnamed]))
    except (ValueError, AttributeError, TypeError):
        return unnamed  # metadata that pandas did not write


def require_numbers(field: Any, path: PathLike, text_allowed: bool, is_label: bool) -> None:
    """Refuse a column of text before it is read."""
    kind = field.type
    if text_allowed and (is_string(kind) or _is_date(kind)) and not is_label:
        return
    if (is_string(kind) and is_label) or (_is_list(kind) and text_allowed and not is_label):
        return
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        hint = text_hint() if is_string(kind) else f"; leave it out ({option('drop')})"
        reason = f"column '{field.name[:60]}' is of type {str(kind)[:60]}, expected numbers or booleans"
        raise DatasetError(reason + hint, path)


def parquet_column(
    data: Any, column: TableColumn, path: PathLike, as_text: bool, start: int = 0
) -> tuple[TableColumn, np.ndarray]:
    """Return the column, nominal if it is text, and its numbers or codes, NaN if a value is missing.

    ``start`` is the number of the first row, for messages.
    """
    if _is_list(data.type):
        try:
            data.validate(full=True)
        except ArrowException as error:
            raise DatasetError(f"the lists of column '{column.name[:60]}' are damaged ({error})", path) from None
    if _is_list(data.type) or _is_date(data.type) or (as_text and not is_string(data.type)):
        texts, codes = recoded((cell_text(one) or "" for one in data.to_pylist()), slice(None), str)
        column, meaning = categories_of(column.name, texts)
        return column, meaning[codes]
    if is_string(data.type):
        try:
            data.validate(full=True)  # a damaged file may hold invalid UTF-8
        except ArrowException as error:
            raise DatasetError(f"the text of column '{column.name[:60]}' is damaged ({error})", path) from None
        return _parquet_text(data, column.name)
    numbers = compute.cast(data, "float64", safe=False).to_numpy().astype(np.float64)
    if np.isinf(numbers).any():
        row = start + int(np.flatnonzero(np.isinf(numbers))[0]) + 1
        raise DatasetError(f"row {row} of column '{column.name[:60]}' is not a finite number", path)
    return column, numbers


def _parquet_text(data: Any, name: str) -> tuple[TableColumn, np.ndarray]:
    coded = data if types.is_dictionary(data.type) else data.dictionary_encode()
    chunks = coded.unify_dictionaries().chunks
    codes = np.concatenate([chunk.indices.fill_null(-1).to_numpy() for chunk in chunks]).astype(np.int64)
    present, codes = np.unique(codes, return_inverse=True)
    dictionary = chunks[0].dictionary
    texts = [(dictionary[k].as_py() or "").strip() if k >= 0 else "" for k in present.tolist()]
    column, meaning = categories_of(name, texts)
    return column, meaning[codes]


def _check_labels(
    values: np.ndarray, columns: list[TableColumn], labels: np.ndarray, path: PathLike, missing_labels: bool
) -> None:
    wrong = np.argwhere(~are_labels(values[:, labels], missing_labels))
    if len(wrong):
        row, k = wrong[0]
        name, value = columns[labels[k]].name[:60], values[row, labels[k]]
        if math.isnan(value):
            raise DatasetError(f"label '{name}' of row {row + 1} is missing{missing_label_hint()}", path)
        raise DatasetError(f"non-binary label: '{name}' of row {row + 1} is {value:g}, expected 0 or 1", path)
