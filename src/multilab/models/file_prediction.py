"""Predictions of Parquet files that are larger than memory, batch by batch into a file."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from multilab.cells.progress import ProgressBar
from multilab.core.files import scratch_folder
from multilab.datasets import EncodedRows
from multilab.datasets.parquet_table import ParquetTable, column_names, counted_rows
from multilab.models.errors import DeploymentError
from multilab.models.model_limits import prediction_warnings
from multilab.models.saved_model import SavedModel

__all__ = ["predict_file"]

_SEPARATORS = {".csv": ",", "": ",", ".tsv": "\t"}


def predict_file(
    model: SavedModel, path: str | os.PathLike[str], output: str | os.PathLike[str], *, strict: bool = False
) -> tuple[int, list[str], list[str]]:
    """Predict a Parquet file, or all Parquet files of a folder, and write decisions and scores batch by batch.

    Parameters
    ----------
    model : SavedModel
    path, output : path-like
        The Parquet file or folder to read, and the ``.parquet``, ``.csv`` or ``.tsv`` file to write, which is written
        completely or not at all.
    strict : bool, default False
        See `SavedModel.predict_frame`.

    Returns
    -------
    rows : int
    notes, warnings : list of str
        See `multilab.datasets.EncodedRows.notes` and `prediction_warnings`.
    """
    table = _table(model, path)
    unknown: dict[str, Counter[str]] = {}
    imputed, unreadable = Counter[str](), Counter[str]()
    assigned = np.zeros(len(model.label_names), dtype=np.int64)
    target = Path(output)
    copied = table.schema.empty_table().select(model.copied_columns(table.schema.names))
    with scratch_folder(target) as scratch:
        made = scratch / target.name
        with _writer(made, target.suffix.lower(), copied, model.output_meta) as write:
            batches = table.batches(also=copied.column_names)
            for start, rows in ProgressBar("predicting")(batches, table.n_rows, lambda batch: batch[1].num_rows):
                with counted_rows(path, start, rows):
                    encoded = model.encode(table.frame(rows), strict=strict)
                for name, counts in encoded.unknown.items():
                    unknown.setdefault(name, Counter()).update(counts)
                imputed.update(encoded.imputed)
                unreadable.update(encoded.unreadable)
                scores, decisions = model.predict_encoded(encoded.X)
                assigned += decisions.sum(axis=0, dtype=np.int64)
                write(rows.select(copied.column_names), model.frame_of(scores, decisions))
        # last, so that an interrupted prediction leaves no incomplete file
        os.replace(made, target)
    notes = EncodedRows(None, {name: dict(counts) for name, counts in unknown.items()}, imputed, unreadable).notes()
    return table.n_rows, notes, prediction_warnings(model.metadata, assigned / table.n_rows, table.n_rows)


def _table(model: SavedModel, path: str | os.PathLike[str]) -> ParquetTable:
    """Return the table of the features; refuse columns that training did not have."""
    names = column_names(path)
    model.encoder.check_columns(names)
    drop = [name for name in names if name not in model.encoder.names]
    return ParquetTable(path, None, drop, model.encoder.text_columns)


@contextmanager
def _writer(
    path: Path, extension: str, copied: pa.Table, predicted: pd.DataFrame
) -> Iterator[Callable[[pa.Table, pd.DataFrame], Any]]:
    """Give a function that appends rows to a new file; the arguments are empty tables of their columns."""
    if extension == ".parquet":
        fields = [*copied.schema, *pa.Schema.from_pandas(predicted, preserve_index=False)]
        with parquet.ParquetWriter(path, pa.schema(fields)) as writer:

            def append(copied: pa.Table, predicted: pd.DataFrame) -> None:
                columns = [*copied.columns, *pa.Table.from_pandas(predicted, preserve_index=False).columns]
                writer.write_table(pa.table(columns, schema=writer.schema))

            yield append
    elif extension in _SEPARATORS:
        form: dict[str, Any] = {"index": False, "sep": _SEPARATORS[extension], "lineterminator": "\n"}
        with open(path, "w", encoding="utf-8", newline="") as stream:
            _texts(copied).join(predicted).to_csv(stream, **form)
            yield lambda copied, predicted: _texts(copied).join(predicted).to_csv(stream, header=False, **form)
    else:
        raise DeploymentError(f"-o: predictions of large files are written as .parquet, .csv or .tsv, not {extension}")


def _texts(rows: pa.Table) -> pd.DataFrame:
    """Return columns as a text file has them: nested cells as JSON, all others as they are."""
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    for name in (field.name for field in rows.schema if pa.types.is_nested(field.type)):
        cells = rows.column(name).to_pylist()
        frame[name] = [None if cell is None else json.dumps(cell, ensure_ascii=False, default=str) for cell in cells]
    return frame
