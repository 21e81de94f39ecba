"""Reader of the files of Arrow: Parquet and Feather."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import ArrowException, BufferReader, compute, feather, parquet, types

from multilab.core.files import PathLike, parse_json
from multilab.core.messages import option
from multilab.datasets.columns import INDEX_NAME, dropped_note, positions_left
from multilab.datasets.csv_files import index_note, require_names
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, read_bytes, require_cells, require_file, too_large
from multilab.datasets.frames import Rows, tidy
from multilab.datasets.options import Reading

__all__ = ["index_names", "is_string", "read_parquet", "require_numbers", "tidy_rows"]


def read_parquet(
    path: PathLike, reading: Reading, limits: Limits, text_columns: Collection[str] = (), kind: str = "parquet"
) -> Rows:
    """Read a Parquet or a Feather file.

    Parameters
    ----------
    path, reading, limits, text_columns
        See :func:`multilab.datasets.csv_files.read_csv`. Columns of strings (whatever they hold), of dates or of lists
        of texts are text; columns of lists of numbers are vectors.
    kind : {"parquet", "feather"}

    Returns
    -------
    Rows
        Null and NaN are missing values. Index columns of pandas, by the file's metadata or by the name
        ``__index_level_0__``, are left out, and the notes say so.

    Raises
    ------
    DatasetError
        If the file is not of this format, a column has another type, or a value is infinite.
    """
    content = _content(path, limits)
    try:
        schema, rows = _about(content, kind, path, limits)
        width = len(schema.names)
        require_cells(rows, width, "the table", path, limits)
        if not rows:
            raise DatasetError("the table has no row", path)
        if width > limits.max_columns:
            raise DatasetError(f"more than the limit of {limits.max_columns} columns", path, 1)
        names = schema.names  # every access builds the list again
        index = index_names(schema, names)
        kept = [j for j in positions_left(names, reading.dropped, path) if names[j] not in index]
        require_names(names, kept, path)
        for j in kept:
            if names[j] not in text_columns:  # those are text, whatever they hold
                require_numbers(schema.field(j), path)
        table = _read(content, kind, [names[j] for j in kept], path, limits)
    except (ArrowException, OSError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"not a readable {kind.capitalize()} file ({error})", path) from None
    frame = tidy_rows(table, path, limits, text_columns)
    notes = [index_note(f"{name[:60]!r} is the index of a data frame", path) for name in index]
    return Rows(frame, (*notes, *dropped_note(reading.dropped)))


def tidy_rows(
    table: pa.Table, path: PathLike, limits: Limits | None = None, text_columns: Collection[str] = ()
) -> pd.DataFrame:
    """Return a table of Arrow as a tidy data frame.

    Raises
    ------
    DatasetError
        If a column is damaged, or has an infinite value.
    """
    try:
        table.validate(full=True)  # a damaged file may hold invalid UTF-8, or lists that end before they begin
    except ArrowException:
        for name, column in zip(table.column_names, table.columns, strict=True):
            try:
                column.validate(full=True)
            except ArrowException as error:
                raise DatasetError(f"column '{name[:60]}' is damaged ({error})", path) from None
    for j, (name, kind) in enumerate(zip(table.schema.names, table.schema.types, strict=True)):
        if name in text_columns and types.is_integer(kind):  # pandas makes floats of integers with missing values
            table = table.set_column(j, name, compute.cast(table.column(j), pa.string()))
    try:
        table = table.replace_schema_metadata(None)  # it is parsed, whoever wrote it
        frame = table.to_pandas(strings_to_categorical=True)
    except (ArrowException, ValueError, OverflowError) as error:  # such as a date after the year 9999
        raise DatasetError(f"a column cannot be read ({error})", path) from None
    texts = {field.name for field in table.schema if is_string(field.type)}  # also if all are numbers, as codes are
    return tidy(frame, path, limits, {*text_columns, *texts})


def _content(path: PathLike, limits: Limits) -> bytes | Path:
    """Return the path of a Parquet file, of which pyarrow reads one part after another; of any other its content."""
    found = require_file(path)
    try:
        with open(found, "rb") as file:
            plain = file.read(4) == b"PAR1"
    except OSError:
        plain = False  # `read_bytes` says why
    if not plain:
        return read_bytes(path, limits)
    if found.stat().st_size > limits.max_bytes:
        raise too_large(path, limits.max_bytes, limits)
    return found


def _opened(content: bytes | Path) -> pa.NativeFile:
    return pa.OSFile(str(content)) if isinstance(content, Path) else BufferReader(content)


def _about(content: bytes | Path, kind: str, path: PathLike, limits: Limits) -> tuple[pa.Schema, int]:
    """Return the columns of a file, and its number of rows."""
    if kind == "parquet":
        file = parquet.ParquetFile(_opened(content))
        return file.schema_arrow, file.metadata.num_rows
    with pa.ipc.open_file(_opened(content)) as opened:
        batches = [opened.get_batch(k) for k in range(opened.num_record_batches)]
        # `nbytes` follows offsets, which are not checked yet
        size = sum(batch.get_total_buffer_size() for batch in batches)
        require_cells(size // 8, 1, "the table", path, limits)
        return opened.schema, sum(batch.num_rows for batch in batches)


def _read(content: bytes | Path, kind: str, names: Sequence[str], path: PathLike, limits: Limits) -> pa.Table:
    if kind == "feather":
        return feather.read_table(_opened(content), columns=list(names))
    schema = parquet.read_schema(_opened(content))
    # Repeated text expands without bound unless it is read as codes.
    strings = [field.name for field in schema if is_string(field.type)]
    file = parquet.ParquetFile(_opened(content), read_dictionary=strings)
    if lists := [name for name in names if types.is_nested(schema.field(name).type)]:
        require_cells(_values(file, lists), 1, "the table", path, limits)
    return file.read(columns=list(names))


def _values(file: parquet.ParquetFile, lists: Sequence[str]) -> int:
    """Return the number of values in columns of lists, which may be long."""
    inside = tuple(f"{name}." for name in lists)
    leaves = [j for j in range(len(file.schema)) if file.schema.column(j).path.startswith(inside)]
    count = 0
    for group in range(file.num_row_groups):
        # pyarrow 25 ends the process at `column` where the metadata is damaged, but raises where a row is read
        next(file.iter_batches(1, row_groups=[group], columns=list(lists)), None)
        about = file.metadata.row_group(group)
        count += sum(about.column(j).num_values for j in leaves)
    return count


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


def require_numbers(field: Any, path: PathLike) -> None:
    """Refuse a column of a type that is no number, truth value, text, date or list of these."""
    kind = field.type
    known = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind)
    if not (known or is_string(kind) or _is_date(kind) or _is_list(kind) or _is_vector(kind)):
        raise DatasetError(
            f"column '{field.name[:60]}' is of type {str(kind)[:60]}, expected numbers or booleans; leave it out "
            f"({option('drop')})",
            path,
        )
