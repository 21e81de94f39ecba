"""Tables in Parquet files that are larger than memory: read in batches of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import ArrowException, compute, parquet, types

from multilab.core.files import PathLike
from multilab.core.text import excerpt
from multilab.datasets.columns import positions_left
from multilab.datasets.csv_files import require_names
from multilab.datasets.errors import DatasetError
from multilab.datasets.labels import choose_labels, label_values
from multilab.datasets.options import Reading
from multilab.datasets.parquet import index_names, is_string, require_numbers, tidy_rows

__all__ = ["LARGE_CELLS", "ParquetTable", "column_names", "counted_rows", "is_large"]

LARGE_CELLS = 2**27
"""Rows times columns from which on a Parquet file is read in batches: 1 GiB as float64, of which a fit needs copies."""

_FILES = "[!.]*.parquet"  # a name that begins with a dot is of a system or of an unfinished copy

BATCH_ROWS = 2**16  # rows of a batch: large enough for fast columns, small enough for wide tables


class ParquetTable:
    """Table in a Parquet file, or in all Parquet files of a folder, which is read in batches of rows.

    Parameters
    ----------
    path : path-like
        The file, or the folder; its files have the same columns and are read in the order of their names.
    labels : Reading, optional
        Options that choose the label columns, which hold 0 and 1 or booleans in every row. None if there are no labels.
    drop : sequence of str
        Columns to leave out.
    text_columns : collection of str
        Columns that are text, whatever their type.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    schema : pyarrow.Schema
        Schema of all columns of the files.
    names, label_names : list of str
        Names of the feature columns and of the labels.

    Raises
    ------
    DatasetError
        If there is no Parquet file, the files have different columns, or a column has another type than numbers,
        booleans, text or dates.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from multilab.datasets import Reading
    >>> from multilab.datasets.parquet_table import ParquetTable
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> songs = pd.DataFrame({"tempo": [60.0, 90.0, 120.0], "happy": [0, 1, 1]})
    >>> songs.to_parquet(folder / "a.parquet"), songs.to_parquet(folder / "b.parquet")
    (None, None)
    >>> table = ParquetTable(folder, Reading(label_columns=["happy"]))
    >>> table.n_rows, table.names, [len(rows) for _, rows in table.batches(rows=2)]
    (6, ['tempo'], [2, 1, 2, 1])
    """

    def __init__(
        self,
        path: PathLike,
        labels: Reading | None = None,
        drop: Sequence[str] = (),
        text_columns: Collection[str] = (),
    ) -> None:
        self.path = Path(path)
        self.text_columns = frozenset(text_columns)
        self.files = _files(self.path)
        self._versions = [_version(file) for file in self.files]
        schema, self.n_rows = None, 0
        for file in self.files:
            with _readable(file), parquet.ParquetFile(file) as opened:
                here = opened.schema_arrow
                if schema is not None and not here.equals(schema):
                    raise DatasetError(_difference(here, schema, self.files[0].name), file)
                schema = here
                self.n_rows += opened.metadata.num_rows
        assert schema is not None
        self.schema = schema
        if not self.n_rows:
            raise DatasetError("the table has no row", self.path)
        names = schema.names  # every access builds the list again
        index = index_names(schema, names)
        kept = [j for j in positions_left(names, drop, self.path) if names[j] not in index]
        require_names(names, kept, self.path)
        columns = [names[j] for j in kept]
        chosen = set() if labels is None else set(choose_labels(labels, columns, self.path).tolist())
        self.names = [name for j, name in enumerate(columns) if j not in chosen]
        self.label_names = [name for j, name in enumerate(columns) if j in chosen]
        for name in self.names:
            require_numbers(schema.field(name), self.path)
        for name in self.label_names:
            kind = schema.field(name).type
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                raise DatasetError(f"label '{name[:60]}' has type {kind}; convert it to 0 and 1", self.path)
        self._strings = [name for name in self.names if is_string(schema.field(name).type)]

    def batches(self, rows: int = BATCH_ROWS, also: Sequence[str] = ()) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number of the first row and the rows of one batch after another.

        ``also`` names columns that were left out and are read unchanged here.
        """
        columns, start = [*also, *self.names, *self.label_names], 0
        for file, version in zip(self.files, self._versions, strict=True):
            if _version(file) != version:
                raise DatasetError("the file changed while it was read; run the command again", file)
            # repeated text expands without bound unless it is read as codes
            with _readable(file), parquet.ParquetFile(file, read_dictionary=self._strings, buffer_size=2**20) as opened:
                for batch in opened.iter_batches(rows, columns=columns):
                    yield start, pa.Table.from_batches([batch])
                    start += batch.num_rows

    def labels_of(self, rows: pa.Table) -> np.ndarray:
        """Return the labels of rows, uint8 of shape (n, q)."""
        Y = np.empty((rows.num_rows, len(self.label_names)))
        for j, name in enumerate(self.label_names):
            cells = pd.Series(compute.cast(rows.column(name), "float64", safe=False).to_numpy())
            Y[:, j], _, fault = label_values(cells, name, False)
            if fault:
                raise DatasetError(f"{fault[1].partition(';')[0]}; in batches, every label must be 0 or 1", self.path)
        return Y.astype(np.uint8)

    def frame(self, rows: pa.Table) -> pd.DataFrame:
        """Return the features of rows as the reader of a whole file does."""
        return tidy_rows(rows.select(self.names), self.path, text_columns=self.text_columns)

    def digest(self) -> str:
        """Return the sha256 digest of the files."""
        digest = hashlib.sha256()
        for file in self.files:
            with open(file, "rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()


def is_large(path: PathLike) -> bool:
    """Return whether a path is a Parquet file of at least `LARGE_CELLS` cells, or a folder of Parquet files."""
    path = Path(path)
    if path.is_dir():
        return any(path.glob(_FILES))
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return False
    try:
        about = parquet.read_metadata(path)
    except (ArrowException, OSError):
        return False  # the reader of the file says why
    return about.num_rows * about.num_columns >= LARGE_CELLS


def column_names(path: PathLike) -> list[str]:
    """Return the columns of a Parquet file, or of the first of a folder, without those of its index."""
    file = _files(Path(path))[0]
    with _readable(file):
        schema = parquet.read_schema(file)
    index = index_names(schema, schema.names)
    return [name for name in schema.names if name not in index]


@contextmanager
def counted_rows(path: PathLike, start: int, rows: pa.Table) -> Iterator[None]:
    """Say in errors about a batch which rows are counted; ``start`` is the number of rows before it."""
    try:
        yield
    except DatasetError as error:
        where = f"in rows {start + 1} to {start + rows.num_rows}, counted from the first of these"
        raise DatasetError(f"{error.reason} ({where})", path) from None


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob(_FILES))
    if not files:
        raise DatasetError("the folder has no file *.parquet", path)
    return files


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turn an error of Arrow into a `DatasetError` that names the file."""
    try:
        yield
    except (ArrowException, OSError) as error:
        raise DatasetError(f"not a readable Parquet file ({error})", file) from None


def _difference(here: pa.Schema, first: pa.Schema, name: str) -> str:
    """Describe the first column that differs from that of the first file."""
    columns = (
        [f"{one.name} ({one.type}{'' if one.nullable else ', not null'})" for one in half] for half in (here, first)
    )
    pairs = enumerate(zip_longest(*columns, fillvalue="missing"), 1)
    number, (mine, expected) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    where = f"column {number} is {excerpt(mine)}, in {name} it is {excerpt(expected)}"
    return f"{where}: all files must have the same columns and types"


def _version(file: Path) -> tuple[int, int]:
    with _readable(file):
        about = file.stat()
    return about.st_size, about.st_mtime_ns
