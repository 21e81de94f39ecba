"""Reader of data files as data frames, before text is one-hot coded and missing values are imputed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.datasets.coded_table import CodedTable
from multilab.datasets.column_roles import LabelOptions
from multilab.datasets.file_access import name_memory_errors
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import read_content


class RawTable(NamedTuple):
    """Features and labels of a file as data frames, and what the reader did."""

    features: pd.DataFrame
    labels: pd.DataFrame
    notes: tuple[str, ...]


@name_memory_errors
def read_frames(
    path: PathLike, *, labelled: bool = True, text_columns: Collection[str] = (), **options: Any
) -> RawTable:
    r"""Read one data file as data frames, before encoding.

    :func:`multilab.datasets.read` encodes the same table: text becomes one-hot columns and missing values are imputed,
    as its options ``text`` and ``missing`` say. Here text and missing values stay as they are.

    Parameters
    ----------
    path : path-like
        The file, in any format of :func:`multilab.datasets.read`.
    labelled : bool, default True
        False for rows without label columns: no option may then choose labels, and every column is a feature.
    text_columns : collection of str
        Names of columns of a CSV file that are read as text whatever they hold. Otherwise a column is text if most of
        its different values are neither numbers nor ``true`` and ``false``, which may differ from file to file.
    **options
        Options of :func:`multilab.datasets.read` other than ``text`` and ``missing``.

    Returns
    -------
    features : DataFrame of shape (n, number of features before one-hot coding)
        In the order of the file. A numeric feature is float64, NaN where a value is missing (sparse for sparse rows);
        a text or nominal feature is categorical, and its categories are the values in the order of the one-hot
        columns, which are called ``name=value``. A nominal feature with the values 0 and 1 is numeric.
    labels : DataFrame of shape (n, q)
        0 and 1 as uint8; int8 with -1 where labels were not observed.
    notes : tuple of str
        Actions of the reader, such as columns left out.

    Raises
    ------
    DatasetError
        As :func:`multilab.datasets.read`, but neither for text nor for missing feature values.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import read_frames
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,key,happy,sad\n120,C,1,0\n,D,0,1\n")
    >>> table = read_frames(path, labels_last=2)
    >>> table.features["tempo"].tolist(), table.features["key"].tolist(), list(table.labels)
    ([120.0, nan], ['C', 'D'], ['happy', 'sad'])
    """
    chosen = {name: options.pop(name) for name in LabelOptions.__dataclass_fields__ if name in options}
    content = read_content(
        path, LabelOptions(**chosen) if labelled else None, text="keep", text_columns=text_columns, **options
    )
    return as_frames(content)


def as_frames(content: CodedTable | RawData) -> RawTable:
    """Return what `multilab.datasets.reading.read_content` returns as data frames."""
    if isinstance(content, CodedTable):
        return RawTable(*content.frames(), tuple(content.notes))
    return RawTable(*_frames(content), content.notes)


def _frames(raw: RawData) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the matrices of a format without named columns as data frames."""
    features, labels = (
        pd.DataFrame.sparse.from_spmatrix(matrix, columns=names)
        if sp.issparse(matrix)
        else pd.DataFrame(np.asarray(matrix), columns=names)
        for matrix, names in ((raw.X, raw.feature_names), (raw.Y, raw.label_names))
    )
    return features, labels
