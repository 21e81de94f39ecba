"""Files of labels and of scores of a model from elsewhere, matched by row identifier and label name."""

from __future__ import annotations

import io
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.comparison.errors import ComparisonError
from multilab.core import write_atomically
from multilab.core.array_files import check_npz, unpacked_room
from multilab.core.messages import pip_install, printable, unknown_name
from multilab.core.tables import pandas_frame, table_values
from multilab.core.tags import separator_of, split_tags, tag_lists
from multilab.core.text import excerpt, first_few
from multilab.datasets.labels import separator_option
from multilab.datasets.table_cells import cell_texts
from multilab.decision import DecisionRules

__all__ = [
    "KINDS",
    "LabelTable",
    "by_position",
    "decided_table",
    "in_order_of",
    "like_probabilities",
    "read_scores",
    "read_truth",
    "refuse_lost_names",
    "table_of",
    "write_npz",
]

KINDS = ("probabilities", "logits", "decisions", "top")
"""What the numbers of a file of scores can be."""

_SHOWN = 3  # rows or labels that a message names
_FEW_SCORES = 10  # fewer do not tell logits from probabilities
_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npz")
_EMPTY = ("", "NA", "N/A", "NaN", "nan", "null", "None")
"""Cells of a number that is not there."""
_CSR = {"data", "indices", "indptr", "shape"}


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Numbers by row and label, with the names of both where the source has them.

    Attributes
    ----------
    name : str
        File or argument, for messages.
    values : ndarray or csr_array of shape (n, q)
    ids, labels : Index or None
    open_ended : bool
        Whether a label that the table does not name is a label that no row has, as with tags and lists of labels.
    spare : str, optional
        Column of a file without identifiers that could hold them, because all its values differ.
    """

    name: str
    values: Any
    ids: pd.Index | None = None
    labels: pd.Index | None = None
    open_ended: bool = False
    spare: str | None = None

    def only(self, labels: Sequence[str]) -> LabelTable:
        """Return the table with only those of its labels that are in a list."""
        if self.labels is None:
            return self
        kept = np.flatnonzero(self.labels.isin(labels))
        return replace(self, values=self.values[:, kept], labels=self.labels[kept])

    def for_labels(self, labels: Sequence[str], owner: str, advice: str) -> Any:
        """Return the values of labels in their order; by position if the table does not name its labels.

        Parameters
        ----------
        labels : sequence of str
        owner : str
            Name of the table that has these labels, for messages.
        advice : str
            What to do about a label that the table lacks.

        Raises
        ------
        ComparisonError
            If the labels do not match.
        """
        if self.labels is None:
            if self.values.shape[1] != len(labels):
                raise ComparisonError(
                    f"{self.name} has {self.values.shape[1]} labels, {owner} has {len(labels)}; without names, labels "
                    "are matched by position"
                )
            return self.values
        wanted = pd.Index(list(labels), dtype=object)
        unknown = self.labels.difference(wanted, sort=False)
        if len(unknown):
            step = "rename or remove the column"
            if self.spare in unknown:
                step = f"rename or remove the column, or name that of the row identifiers with --id {self.spare}"
            raise ComparisonError(
                f"{self.name}: {_shown(unknown)} is not a label of {owner}, which has {_shown(wanted)}; {step}"
            )
        columns = self.labels.get_indexer(wanted)
        if (columns < 0).any() and not self.open_ended:
            raise ComparisonError(f"{self.name}: no column of label {_shown(wanted[columns < 0])} of {owner}: {advice}")
        return _columns(self, columns)


def read_truth(
    path: str | os.PathLike[str],
    *,
    id_column: str | None = None,
    tags: str | None = None,
    separator: str | None = None,
    labels: Sequence[str] | None = None,
) -> LabelTable:
    """Read the true labels of rows: 0/1 columns, or a column of tags.

    Parameters
    ----------
    path : path-like
        CSV, TSV, Parquet, or npz with one matrix and, optionally, ``ids`` and ``labels``.
    id_column : str, optional
        Column of the row identifiers; ``id`` by default, if the file has it.
    tags : str, optional
        Column with the tags of each row, such as ``red|blue``. Without it, every other column is a label.
    separator : str, optional
        Separator of the tags; by default ``|``, ``;`` or ``,``, whichever occurs.
    labels : sequence of str, optional
        The labels to read; other columns and tags are left out.

    Raises
    ------
    ComparisonError
        If the file cannot be read, a column is missing, or a label is not 0, 1 or empty.
    """
    path = Path(path)
    if path.name.endswith(".npz"):
        table = _only(_read_npz(path, id_column), labels)
    else:
        frame, ids = _read_frame(path, id_column, texts=lambda column: column == tags)
        spare = None if ids is not None else _spare_column(frame.drop(columns=[tags], errors="ignore"))
        if tags is not None:
            _check_columns(path, frame, [tags], "--tags")
            table = _of_lists(str(path), ids, _split(path, frame[tags], separator))
            return _only(replace(table, spare=spare), labels)
        if labels is not None:
            _check_columns(path, frame, labels, "--labels")
            frame = frame[list(labels)]
        table = replace(_numbers(path, frame, ids, holes=True), spare=spare)
    _check_binary(table, f"name label columns with --labels, or a column of tags with --tags (rows of {path})")
    return table


def read_scores(
    path: str | os.PathLike[str],
    kind: str = "probabilities",
    *,
    id_column: str | None = None,
    separator: str | None = None,
) -> LabelTable:
    """Read the scores of a model.

    Parameters
    ----------
    path : path-like
        CSV, TSV or Parquet with a column per label; or with the column ``label``, optionally ``score``, and a line per
        row and label; or, for the kind "top", with one column of lists such as ``war|love``, the best label first. An
        npz holds one matrix, dense or as `scipy.sparse.save_npz` writes it, and optionally ``ids`` and ``labels``.
        A file of `multilab predict` or `multilab decide` has decisions and scores; those of the kind are read.
    kind : {"probabilities", "logits", "decisions", "top"}, default="probabilities"
    id_column, separator
        As for `read_truth`.

    Raises
    ------
    ComparisonError
        If the file cannot be read, or a value is not a number or not of this kind.
    """
    path = Path(path)
    if path.name.endswith(".npz"):
        table = _read_npz(path, id_column)
    else:
        frame, ids = _read_frame(
            path, id_column, texts=lambda column: column == "label" or (kind == "top" and column != "score")
        )
        if "label" in frame and set(frame) <= {"label", "score"}:
            table = _of_lines(path, frame, ids, kind)
        elif kind == "top":
            if frame.shape[1] != 1:
                raise ComparisonError(
                    f"{path}: lists of the k best labels are one column besides the identifier, or the columns label "
                    f"and score; got {first_few(frame, _SHOWN) or 'none'}"
                )
            table = _of_lists(str(path), ids, _split(path, frame.iloc[:, 0], separator), ranked=True)
        else:
            spare = None if ids is not None else _spare_column(frame)
            table = replace(_numbers(path, _predicted(frame, kind), ids), spare=spare)
    return _checked(table, kind)


def table_of(values: Any, name: str, kind: str | None = None, labels: Sequence[str] | None = None) -> LabelTable:
    """Return an argument as a table: the index and columns of a frame are identifiers and labels.

    Parameters
    ----------
    values : data frame, array-like or sparse of shape (n, q), or n collections of labels
    name : str
    kind : str, optional
        As for `read_scores`; None for true labels.
    labels : sequence of str, optional
        Names of the labels of lists; for true labels that are tags, the labels to read.

    Raises
    ------
    ComparisonError
        If the values are not numbers or labels of this kind.
    """
    values = pandas_frame(values)
    ids = values.index if isinstance(values, pd.Series | pd.DataFrame) else None
    try:
        lists = tag_lists(values, name=name) if kind in (None, "decisions", "top") else None
        if kind == "top" and not hasattr(values, "columns") and not sp.issparse(values):
            lists = [list(map(str, each)) for each in values] if lists is None else lists
            return _of_lists(name, ids, lists, ranked=True, known=labels)
        if lists is not None:
            return _only(_of_lists(name, ids, lists), None if kind else labels)
        array = table_values(values)
    except ValueError as error:
        raise ComparisonError(f"{name}: {error}") from None
    if not sp.issparse(array) and (array.ndim != 2 or array.dtype.kind not in "biuf"):
        raise ComparisonError(f"{name}: expected numbers of shape (rows, labels), got {array.dtype} {array.shape}")
    frame = isinstance(values, pd.DataFrame)
    table = LabelTable(
        name,
        sp.csr_array(array) if sp.issparse(array) else array.astype(np.float64),
        ids,
        values.columns.map(str) if frame else None,
    )
    if kind is not None:
        return _checked(table, kind)
    if not sp.issparse(array) and array.dtype == np.int8:
        table.values[array == -1] = np.nan  # the package's mark of a label that was not observed
    _check_binary(table, "labels are 0, 1, or NaN where a label was not observed")
    return table


def in_order_of(truth: LabelTable, tables: Sequence[LabelTable]) -> tuple[LabelTable, list[Any], list[str]]:
    """Match tables with the truth by identifier and label name, or by position where a table has no names.

    Returns
    -------
    truth : LabelTable
        With the labels that only the scores name, if its own labels were tags.
    values : list of (ndarray or csr_array of shape (n, q))
        In the order of the truth.
    notes : list of str
        What was left out.

    Raises
    ------
    ComparisonError
        If a row or label of the truth is not in a table, a table has a label that the truth lacks, or names repeat.
    """
    for table in (truth, *tables):
        for names, what in ((table.ids, "row"), (table.labels, "label")):
            if names is not None and names.has_duplicates:
                raise ComparisonError(f"{table.name}: {what} {_shown(names[names.duplicated()])} occurs twice")
    if truth.open_ended and truth.labels is not None:
        more = {name for table in tables if table.labels is not None for name in table.labels}
        labels = truth.labels.union(pd.Index(list(more), dtype=object), sort=True)
        truth = replace(truth, values=_columns(truth, truth.labels.get_indexer(labels)), labels=labels)
    values, notes = [], []
    for table in tables:
        matched = table
        if truth.ids is not None and table.ids is not None:
            rows = table.ids.get_indexer(truth.ids)
            if (rows < 0).any():
                absent = truth.ids[rows < 0]
                if len(absent) == len(rows):
                    raise ComparisonError(
                        f"{table.name}: no row has an identifier of {truth.name}. It has {_shown(table.ids[:1])}, "
                        f"{truth.name} has {_shown(absent[:1])}. Give both files the same identifiers"
                    )
                raise ComparisonError(
                    f"{table.name}: {len(absent)} of {len(rows)} rows of {truth.name} have no scores, such as "
                    f"{_shown(absent)}; score these rows, or leave them out of {truth.name}"
                )
            if left := len(table.ids) - len(rows):
                notes.append(f"{table.name}: {left} rows are not in {truth.name} and were left out")
            matched = replace(table, values=table.values[rows])
        elif table.values.shape[0] != truth.values.shape[0]:
            raise ComparisonError(
                f"{table.name}: {table.values.shape[0]} rows, {truth.name} has {truth.values.shape[0]}: without "
                "identifiers, rows are matched by position"
            )
        names = list(range(truth.values.shape[1]) if truth.labels is None else truth.labels)
        if truth.labels is None:
            matched = replace(matched, labels=None)
        values.append(matched.for_labels(names, truth.name, "add it, or name the labels to evaluate with --labels"))
    return truth, values, notes


def refuse_lost_names(truth: LabelTable, tables: Sequence[LabelTable], *, in_order: bool, chosen: bool = False) -> None:
    """Refuse files without names, and with ``in_order`` those whose names would be ignored.

    Parameters
    ----------
    truth : LabelTable
    tables : sequence of LabelTable
    in_order : bool
        Match by position where a file has no names.
    chosen : bool
        The user has given the labels in the order of the columns.

    Raises
    ------
    ComparisonError
        If a file is refused.
    """
    everything = (truth, *tables)
    for table in everything:
        if table.labels is None and truth.open_ended and not chosen:
            raise ComparisonError(
                f"{table.name}: no label names, and the tags of {truth.name} have no order: add the vector labels, or "
                "name the labels in the order of its columns: --labels A,B --in-order"
            )
        named = next((other for other in everything if other.ids is not None), None)
        if table.ids is None and named is not None and (table is truth or table.spare):
            raise ComparisonError(
                f"{table.name}: no row identifiers, and those of {named.name} would be ignored: {_id_advice(table)}"
            )
        if table.ids is None and not in_order:
            raise ComparisonError(
                f"{table.name}: no row identifiers: {_id_advice(table)}, or pass --in-order if all files have the rows "
                "of the truth in its order"
            )
        if table.labels is None and not in_order:
            raise ComparisonError(
                f"{table.name}: no label names: add the vector labels, or pass --in-order if its labels are those of "
                "the truth in their order"
            )


def _id_advice(table: LabelTable) -> str:
    if table.spare is not None:
        return f"name their column with --id {table.spare}"
    return "name their column with --id (in an npz the vector ids)"


def like_probabilities(scores: Any) -> bool:
    """Return whether all of more than a few scores are in [0, 1], as logits hardly ever are."""
    return bool(scores.size >= _FEW_SCORES and scores.min() >= 0 and scores.max() <= 1)


def by_position(truth: LabelTable, tables: Sequence[LabelTable]) -> list[str]:
    """Return a note on each table whose rows or labels are matched with the truth by position."""
    notes = []
    for table in tables:
        if truth.ids is None or table.ids is None:
            notes.append(f"{table.name}: rows are matched by position")
        if truth.labels is None or table.labels is None:
            notes.append(f"{table.name}: labels are matched by position")
    return notes


def _spare_column(frame: pd.DataFrame) -> str | None:
    """Return the first column that could hold identifiers: texts or whole numbers that all differ."""
    for name in frame:
        cells = frame[name]
        kind = pd.api.types.infer_dtype(cells, skipna=False)
        if len(cells) > 2 and kind in ("string", "integer") and cells.is_unique:
            return str(name)
    return None


def _columns(table: LabelTable, numbers: np.ndarray) -> Any:
    """Return columns of a table; zeros where a number is negative."""
    if (numbers >= 0).all():
        return table.values[:, numbers]
    wide = sp.csr_array(table.values)
    zeros = sp.csr_array((wide.shape[0], 1), dtype=wide.dtype)
    return sp.hstack([wide, zeros], format="csr")[:, np.where(numbers < 0, wide.shape[1], numbers)]


def _read_frame(
    path: Path, id_column: str | None, texts: Callable[[str], bool]
) -> tuple[pd.DataFrame, pd.Index | None]:
    """Return the columns besides the identifiers, and the identifiers as text; None without such a column."""
    if not path.name.lower().endswith(_SUFFIXES):
        raise ComparisonError(f"{path}: a file of labels or scores is {', '.join(_SUFFIXES)}")
    name = id_column or "id"
    try:
        if path.name.lower().endswith(".parquet"):
            frame = pd.read_parquet(path)
            for column in frame:
                if texts(str(column)):
                    frame[column] = frame[column].map(lambda cell: "" if cell is None else cell)
        else:
            separator = "\t" if ".tsv" in path.name.lower() else ","
            header = pd.read_csv(path, sep=separator, nrows=0, encoding="utf-8-sig").columns
            as_text = [column for column in header if column == name or texts(str(column).strip())]
            numbers: dict[Any, list[str]] = {column: list(_EMPTY) for column in header if column not in as_text}
            # the identifier 007 and the tag NA are texts
            frame = pd.read_csv(
                path,
                sep=separator,
                dtype=dict.fromkeys(as_text, "str"),
                na_values=numbers,
                keep_default_na=False,
                encoding="utf-8-sig",
            )
            frame[as_text] = frame[as_text].apply(lambda cells: cells.str.strip())
    except ImportError:
        raise ComparisonError(f"{path}: reading Parquet needs pyarrow: {pip_install('pyarrow')}") from None
    except (ValueError, UnicodeDecodeError, pd.errors.ParserError) as error:
        reason = printable(str(error))
        raise ComparisonError(f"{path} cannot be read as a table ({excerpt(reason, 120)})") from None
    frame.columns = frame.columns.map(lambda column: str(column).strip())
    if name not in frame:
        if id_column is not None:
            raise ComparisonError(f"{path}: {unknown_name('column', id_column, frame)} (--id)")
        return frame, None
    return frame.drop(columns=name), pd.Index(frame[name].map(str), dtype=object)


def _predicted(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the decisions or the scores of a table that has a column of each per label; any other table as it is."""
    for ending in ("_probability", "_score"):
        labels = [name for name in frame if f"{name}{ending}" in frame]
        scores = [f"{name}{ending}" for name in labels]
        if labels and set(frame) == {*labels, *scores}:
            return frame[labels] if kind == "decisions" else frame[scores].set_axis(labels, axis=1)
    return frame


def _read_npz(path: Path, id_column: str | None) -> LabelTable:
    try:
        content = path.read_bytes()
        check_npz(content, unpacked_room(len(content)))
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, zipfile.BadZipFile) as error:
        raise ComparisonError(f"{path} is not a readable npz file ({excerpt(printable(str(error)), 120)})") from None
    vectors = {name: array for name, array in arrays.items() if array.ndim == 1}
    ids = next((vectors[name] for name in (id_column or "id", "ids") if name in vectors), None)
    if set(arrays) >= _CSR:
        layout = arrays["format"].item().decode("ascii", "replace") if "format" in arrays else "csr"
        kind: Any = {"csr": sp.csr_array, "csc": sp.csc_array}.get(layout)
        if kind is None:
            raise ComparisonError(f"{path}: the sparse matrix has the format {layout}; save it as CSR")
        try:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            matrix: Any = sp.csr_array(kind(parts, shape=tuple(arrays["shape"].tolist())))
            matrix.sum_duplicates()
        except ValueError as error:
            raise ComparisonError(f"{path}: damaged sparse matrix ({error})") from None
    else:
        matrices = [name for name, array in arrays.items() if array.ndim == 2]
        if len(matrices) != 1:
            raise ComparisonError(
                f"{path}: it holds {len(matrices)} matrices ({first_few(matrices, _SHOWN) or 'none'}): save one, "
                "besides the vectors ids and labels"
            )
        matrix = arrays[matrices[0]]
        if matrix.dtype.kind not in "biuf":
            raise ComparisonError(f"{path}: {matrices[0]} holds {matrix.dtype}, not numbers")
    labels = vectors.get("labels")
    if labels is None:  # other libraries' names of the same vector, unless it is something else
        alike = [vectors[name] for name in ("classes", "label_names") if name in vectors]
        labels = next((vector for vector in alike if len(vector) == matrix.shape[1]), None)
    found = {}
    for axis, (what, vector) in enumerate((("ids", ids), ("labels", labels))):
        if vector is not None and len(vector) != matrix.shape[axis]:
            raise ComparisonError(f"{path}: {len(vector)} {what} for a matrix of shape {matrix.shape}")
        found[what] = None if vector is None else pd.Index(vector.astype(str), dtype=object)
    return LabelTable(str(path), matrix.astype(np.float64), found["ids"], found["labels"])


def _numbers(path: Path, frame: pd.DataFrame, ids: pd.Index | None, holes: bool = False) -> LabelTable:
    """Return a frame as numbers; refuse a cell that is none, and an empty one without ``holes``."""
    if not frame.shape[1] or not len(frame):
        raise ComparisonError(f"{path} has no {'label' if len(frame) else 'row'}")
    columns = []
    for name in frame:
        numbers = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        wrong = np.isnan(numbers) & (frame[name].notna().to_numpy() if holes else True)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            cell = frame[name].iloc[row]
            held = "is empty" if pd.isna(cell) else f"holds {excerpt(str(cell), 30)!r}, not a number"
            advice = "name label columns with --labels, or a column of tags with --tags" if holes else "correct it"
            if ids is None and _spare_column(frame[[name]]) is not None:
                advice = f"if it holds the row identifiers, name it with --id {name}"
            raise ComparisonError(f"{path}: row {_row(ids, row)}, column {name!r} {held}: {advice}")
        columns.append(numbers)
    return LabelTable(str(path), np.column_stack(columns), ids, pd.Index(frame.columns, dtype=object))


def _of_lines(path: Path, frame: pd.DataFrame, ids: pd.Index | None, kind: str) -> LabelTable:
    """Return a table with a line per row and label; a line with an empty label names a row without any."""
    if ids is None:
        raise ComparisonError(f"{path}: lines of label and score need a column of row identifiers; name it with --id")
    rows, names = pd.factorize(ids)
    kept = (frame["label"] != "").to_numpy()
    codes, labels = pd.factorize(frame["label"][kept])
    at = rows[kept]
    if pd.MultiIndex.from_arrays([at, codes]).has_duplicates:
        raise ComparisonError(f"{path}: a row has the same label twice")
    if kind == "top" or "score" not in frame:
        order = np.lexsort((np.arange(len(at)), -_scores_of_lines(path, frame, ids)[kept], at))
        ranks = np.empty(len(at), dtype=np.int64)
        ranks[order] = np.arange(len(at)) - np.searchsorted(at[order], at[order])
        numbers = _rank_scores(ranks) if kind == "top" else np.ones(len(at))
    else:
        numbers = _scores_of_lines(path, frame, ids)[kept]
    matrix = sp.csr_array((numbers, (at, codes)), shape=(len(names), len(labels)))
    return LabelTable(str(path), matrix, pd.Index(names, dtype=object), pd.Index(labels, dtype=object), open_ended=True)


def _scores_of_lines(path: Path, frame: pd.DataFrame, ids: pd.Index) -> np.ndarray:
    if "score" not in frame:
        return np.zeros(len(frame))
    numbers = pd.to_numeric(frame["score"], errors="coerce").to_numpy(dtype=float)
    if (wrong := np.flatnonzero(np.isnan(numbers) & (frame["label"] != ""))).size:
        raise ComparisonError(f"{path}: row {_row(ids, int(wrong[0]))} has a score that is not a number")
    return numbers


def _of_lists(
    name: str,
    ids: pd.Index | None,
    lists: Sequence[Sequence[str]],
    ranked: bool = False,
    known: Iterable[Any] | None = None,
) -> LabelTable:
    """Return lists of labels as 1, or as scores of ranks."""
    if not len(lists):
        raise ComparisonError(f"{name} has no row")
    at = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
    flat = [label for each in lists for label in each]
    ranks = np.concatenate([np.arange(len(each)) for each in lists]).astype(np.int64)
    labels = pd.Index(sorted(set(flat)) if known is None else [str(label) for label in known], dtype=object)
    codes = labels.get_indexer(pd.Index(flat, dtype=object))
    if (codes < 0).any():
        raise ComparisonError(f"{name}: {flat[int(np.argmin(codes))]!r} is not a label of Y")
    if pd.MultiIndex.from_arrays([at, codes]).has_duplicates:
        raise ComparisonError(f"{name}: a row has the same label twice")
    numbers = _rank_scores(ranks) if ranked else np.ones(len(flat))
    matrix = sp.csr_array((numbers, (at, codes)), shape=(len(lists), len(labels)))
    return LabelTable(name, matrix, ids, labels, open_ended=True)


def _rank_scores(ranks: np.ndarray) -> np.ndarray:
    """Return 1, 1/2, 1/3, ... for the labels of a list, so that lists of any length agree."""
    return 1.0 / (ranks + 1)


def _split(path: Path, cells: pd.Series, separator: str | None) -> list[list[str]]:
    """Return the labels of cells such as ``war|love``, or of lists in Parquet."""
    texts = [text or "" for text in cell_texts(cells)]
    try:
        mark = separator or separator_of(Counter(texts), f"labels of {cells.name!r}", separator_option)
    except ValueError as error:
        raise ComparisonError(f"{path}: {error}") from None
    return [split_tags(text, mark) for text in texts]


def _only(table: LabelTable, labels: Sequence[str] | None) -> LabelTable:
    """Return a table with some labels."""
    if labels is None or table.labels is None:
        return table
    numbers = table.labels.get_indexer(pd.Index(list(labels), dtype=object))
    if (numbers < 0).any() and not table.open_ended:
        absent = labels[int(np.argmin(numbers))]
        raise ComparisonError(f"{table.name}: {unknown_name('label', absent, table.labels)}")
    return replace(
        table, values=_columns(table, numbers), labels=pd.Index(list(labels), dtype=object), open_ended=False
    )


def _check_columns(path: Path, frame: pd.DataFrame, names: Sequence[str], option: str) -> None:
    for name in names:
        if name not in frame:
            raise ComparisonError(f"{path}: {unknown_name('column', name, frame)} ({option})")


def _check_binary(table: LabelTable, advice: str) -> None:
    values = table.values.data if sp.issparse(table.values) else table.values
    wrong = ~((values == 0) | (values == 1) | np.isnan(values))
    if wrong.any():
        where, value = _first(table, wrong)
        raise ComparisonError(f"{table.name}: {where} is {value:g}, not 0 or 1: {advice}")


def _checked(table: LabelTable, kind: str) -> LabelTable:
    """Refuse numbers that are not of a kind."""
    if kind not in KINDS:
        raise ComparisonError(unknown_name("kind of scores", kind, KINDS))
    values = table.values.data if sp.issparse(table.values) else table.values
    if (wrong := ~np.isfinite(values)).any():
        where, value = _first(table, wrong)
        raise ComparisonError(f"{table.name}: {where} is {value:g}: every row needs a finite score for every label")
    if kind == "logits":
        if sp.issparse(table.values):
            raise ComparisonError(
                f"{table.name}: a missing entry of sparse logits would be a probability of .5; pass dense logits, or "
                "probabilities"
            )
    elif kind == "decisions":
        _check_binary(table, "decisions are 0 or 1; for scores name another kind")
    elif (wrong := (values < 0) | (values > 1)).any():
        where, value = _first(table, wrong)
        advice = "log-odds are of the kind logits" if kind == "probabilities" else "ranks are in [0, 1]"
        raise ComparisonError(f"{table.name}: {where} is {value:g}, not in [0, 1]: {advice}")
    return table


def _first(table: LabelTable, wrong: np.ndarray) -> tuple[str, float]:
    """Return which cell is the first wrong one, and its value."""
    if sp.issparse(table.values):
        at = int(np.flatnonzero(wrong)[0])
        row = int(np.searchsorted(table.values.indptr, at, side="right")) - 1
        column, value = int(table.values.indices[at]), table.values.data[at]
    else:
        row, column = map(int, np.argwhere(wrong)[0])
        value = table.values[row, column]
    label = column if table.labels is None else repr(excerpt(str(table.labels[column])))
    return f"row {_row(table.ids, row)}, label {label}", float(value)


def _row(ids: pd.Index | None, row: int) -> str:
    return str(row + 1) if ids is None else repr(excerpt(str(ids[row])))


def _shown(names: Iterable[Any]) -> str:
    return first_few([repr(excerpt(str(name))) for name in names], _SHOWN)


def decided_table(rules: DecisionRules, scores: Any, ids: pd.Index | None, id_name: str = "id") -> pd.DataFrame:
    """Return decisions, and probabilities if the rules have a calibration, as `multilab predict` does."""
    decisions = rules.decide(scores)
    dense = decisions.toarray() if sp.issparse(decisions) else decisions
    parts = [pd.DataFrame(dense.astype("int64"), columns=list(rules.label_names))]
    if ids is not None:
        parts.insert(0, pd.DataFrame({id_name: ids.to_numpy()}))
    if rules.calibration:
        names = [f"{name}_probability" for name in rules.label_names]
        parts.append(pd.DataFrame(rules.calibrate(scores), columns=names))
    return pd.concat(parts, axis=1)


def write_npz(path: str | os.PathLike[str], matrix: Any, labels: Sequence[str], ids: pd.Index | None) -> None:
    """Write a sparse matrix with its names, as `read_scores` reads it."""
    csr = sp.csr_array(matrix)
    arrays: dict[str, Any] = {name: getattr(csr, name) for name in ("data", "indices", "indptr")}
    arrays["labels"] = np.array(list(labels), dtype=str)
    if ids is not None:
        arrays["ids"] = np.array(list(ids), dtype=str)
    content = io.BytesIO()
    np.savez_compressed(content, format=np.array(b"csr"), shape=np.array(csr.shape), **arrays)
    write_atomically(path, content.getvalue())
