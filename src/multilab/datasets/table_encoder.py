"""Encoder of raw rows into the columns of the training matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.tags import known_tags
from multilab.core.text import excerpt
from multilab.datasets.catalogue import card
from multilab.datasets.columns import canonical_csr
from multilab.datasets.dataset import Dataset, _from_files
from multilab.datasets.embeddings import embedded_rows, embeddings_of
from multilab.datasets.errors import DatasetError
from multilab.datasets.feature_columns import HASHED, FeatureColumn
from multilab.datasets.fetching import find_files
from multilab.datasets.kinds import Kind
from multilab.datasets.labels import label_values
from multilab.datasets.options import Reading
from multilab.datasets.prepared import load
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import file_format, read_rows
from multilab.datasets.synthetic import generate
from multilab.datasets.table_cells import cell_texts
from multilab.datasets.vectors import vector_columns, with_numbers

_MOST_HASHED = 2**20  # columns into which a text is hashed: a row of many more may be larger than the memory
_SHOWN = 5  # texts or columns that a note lists


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Encoded rows.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_array of shape (n, d), float64
    unknown : dict of str to dict of str to int
        The texts of each column that training did not have, with the number of rows; their 0/1 columns are all 0.
    imputed : dict of str to int
        Number of missing values of each column that were imputed.
    unreadable : dict of str to int
        Number of cells of each column that are not a number or a date, and count as missing.
    """

    X: Any
    unknown: dict[str, dict[str, int]]
    imputed: dict[str, int]
    unreadable: dict[str, int] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """Return a line about unknown texts and one about imputed values, if there are any."""
        lines = []
        for name, counts in self.unknown.items():
            texts = ", ".join(f"{excerpt(text)!r}" for text in list(counts)[:_SHOWN])
            more = f" and {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else ""
            lines.append(
                f"column {name!r}: {sum(counts.values())} rows have texts that training did not: {texts}{more}"
            )
        if self.unreadable:
            shown = ", ".join(f"{name!r} ({count})" for name, count in list(self.unreadable.items())[:_SHOWN])
            more = f" and {len(self.unreadable) - _SHOWN} more" if len(self.unreadable) > _SHOWN else ""
            lines.append(f"cells that cannot be read count as missing: {shown}{more}")
        if self.imputed:
            shown = ", ".join(f"{name!r} ({count})" for name, count in list(self.imputed.items())[:_SHOWN])
            more = f" and {len(self.imputed) - _SHOWN} more" if len(self.imputed) > _SHOWN else ""
            lines.append(f"missing values imputed as in training: {shown}{more}")
        return lines


@dataclass(frozen=True)
class TableEncoder:
    """Encoder that turns the columns of raw rows into numbers.

    It is learned from training rows (:meth:`learn`), or repeats what the reader of an older card did with the training
    file (:meth:`of`).

    Attributes
    ----------
    columns : tuple of FeatureColumn
        The feature columns, in the order of the training matrix.
    labels, dropped : tuple of str
        Other columns that rows may have; both are ignored.
    sparse : bool
        Whether the matrix is CSR.
    reading : dict
        Options of the reader for new rows: ``encoding``, ``header`` and ``decimal`` of a CSV file, the column of tags
        and their separator, and ``missing_labels``.
    learned : bool
        Whether the columns were learned from training rows. If so, missing values are imputed, and a cell that is not a
        number or a date counts as missing; otherwise both are refused.
    embeddings : dict of str to str
        Columns of text in new rows that become numbers first: ``embed:FOLDER#DIGEST``, see
        `multilab.datasets.embeddings`.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.datasets import FeatureColumn, TableEncoder
    >>> from multilab.datasets.kinds import Kind
    >>> columns = (FeatureColumn("tempo", None, 90.0), FeatureColumn("key", ("C", "G"), "C", Kind("category")))
    >>> encoder = TableEncoder(columns, labels=("happy",), learned=True)
    >>> rows = encoder.encode(pd.DataFrame({"key": ["G", "D"], "tempo": [120, None]}))
    >>> rows.X.tolist(), rows.unknown
    ([[120.0, 0.0, 1.0], [90.0, 0.0, 0.0]], {'key': {'D': 1}})
    """

    columns: tuple[FeatureColumn, ...]
    labels: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    sparse: bool = False
    reading: dict[str, Any] = field(default_factory=dict)
    learned: bool = False
    embeddings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def learn(
        cls,
        rows: pd.DataFrame,
        kinds: Mapping[str, Kind],
        labels: Sequence[str] = (),
        dropped: Sequence[str] = (),
        reading: Mapping[str, Any] = MappingProxyType({}),
    ) -> TableEncoder:
        """Learn the encoder from training rows; labels are not used.

        Parameters
        ----------
        rows : DataFrame of shape (n, m)
            Training rows, such as those of `Dataset.X`.
        kinds : mapping of str to Kind
            The kinds of the m columns.
        labels, dropped, reading
            See the attributes.

        Examples
        --------
        >>> import pandas as pd
        >>> from multilab.datasets import TableEncoder
        >>> from multilab.datasets.kinds import Kind
        >>> rows = pd.DataFrame({"text": ["a quiet song", "a loud song"], "tempo": [60.0, 90.0]})
        >>> encoder = TableEncoder.learn(rows, {"text": Kind("text"), "tempo": Kind("number")})
        >>> encoder.feature_names
        ['text=song', 'text=loud', 'text=quiet', 'tempo']
        """
        made = []
        for name, kind in kinds.items():
            cells = _in_64_bits(rows[name], name) if kind.name == "number" else rows[name]
            made.append(FeatureColumn.learn(name, kind, cells))
        sparse = any(column.is_text for column in made)
        return cls(tuple(made), tuple(labels), tuple(dropped), sparse, dict(reading), learned=True)

    @classmethod
    def of(
        cls, raw: RawData, dropped: Sequence[str] = (), reading: Mapping[str, Any] = MappingProxyType({})
    ) -> TableEncoder:
        """Return the encoder of the rows of a file that is a matrix.

        Parameters
        ----------
        raw : RawData
            The training rows.
        dropped : sequence of str
            Columns that the reader left out.
        reading : mapping
            Options of the reader for files of new rows.
        """
        columns, start = [], 0
        spans = {first: (name, stop) for name, first, stop in raw.nominal}
        while start < len(raw.feature_names):
            name, stop = spans.get(start, (raw.feature_names[start], start + 1))
            if raw.feature_names[start] == name:
                columns.append(FeatureColumn(name))
            else:
                values = tuple(text[len(name) + 1 :] for text in raw.feature_names[start:stop])
                columns.append(FeatureColumn(name, values, None, Kind("category")))
            start = stop
        labels = tuple(map(str, raw.label_names))
        return cls(tuple(columns), labels, tuple(dropped), sp.issparse(raw.X), dict(reading))

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of the columns."""
        return {column.name: column.kind for column in self.columns}

    @property
    def names(self) -> list[str]:
        """Names of the feature columns."""
        return [column.name for column in self.columns]

    @property
    def known_columns(self) -> set[str]:
        """Names of the columns that rows may have: features, what becomes features, labels, and what is left out."""
        return {*self.names, *vector_columns(self.names), *self.embeddings, *self.labels, *self.dropped}

    @cached_property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return sum(column.width for column in self.columns)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the matrix."""
        return [name for column in self.columns for name in column.feature_names]

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns that a reader keeps as text."""
        return [*(column.name for column in self.columns if not column.is_plain), *self.embeddings]

    @cached_property
    def unscaled(self) -> np.ndarray:
        """Positions of the columns of free text, which are not scaled."""
        flags = [np.full(column.width, column.is_text) for column in self.columns]
        return np.flatnonzero(np.concatenate(flags)) if flags else np.empty(0, dtype=np.intp)

    @cached_property
    def dense_columns(self) -> np.ndarray | None:
        """Positions of the columns for a method that makes its features dense; None: all columns.

        Of a text, these are only the most frequent words, see `multilab.datasets.feature_columns.DENSE_TERMS`.
        """
        starts = np.cumsum([0, *(column.width for column in self.columns)])[:-1]
        kept = [start + column.dense_columns for start, column in zip(starts, self.columns, strict=True)]
        positions = np.concatenate(kept) if kept else np.empty(0, dtype=np.intp)
        return None if len(positions) == self.width else positions

    def word_columns(self, texts: Collection[str]) -> np.ndarray:
        """Return the positions of all columns but those of character n-grams of some columns of text."""
        of_grams = [
            column.grams if column.name in texts else np.zeros(column.width, dtype=bool) for column in self.columns
        ]
        return np.flatnonzero(~np.concatenate(of_grams))

    def without_grams(self, texts: Collection[str]) -> TableEncoder:
        """Return the encoder without the character n-grams of some columns of text."""
        columns = (column.without_grams() if column.name in texts else column for column in self.columns)
        return replace(self, columns=tuple(columns))

    def read(self, path: PathLike) -> pd.DataFrame:
        """Return the rows of a file as :meth:`encode` takes them.

        Labels are 0 and 1 however the file writes them, NaN where one was not observed; a column of tags becomes the
        columns of the labels.
        """
        rows = self.rows_of(path)
        if (column := self.reading.get("tags")) in rows.columns:
            cells = [text or "" for text in cell_texts(rows.pop(column))]
            tags = known_tags(cells, set(self.labels), self.reading.get("separator"))
            return rows.assign(**{label: [float(label in one) for one in tags] for label in self.labels})
        unobserved = self.reading.get("missing_labels") == "keep"
        return rows.assign(**{name: _label(rows[name], unobserved) for name in self.labels if name in rows.columns})

    def rows_of(self, path: PathLike, labels: Any = None) -> pd.DataFrame:
        """Return the rows of a file with the columns that it has; one that ``labels`` names is read as text."""
        form = {name: self.reading[name] for name in ("encoding", "header", "decimal") if name in self.reading}
        own = [labels] if isinstance(labels, str) else []
        as_text = dict.fromkeys((*self.text_columns, *self.dropped, *own), "text")
        reading = Reading(columns=as_text, **(form if file_format(path) == "csv" else {}))
        known = {*self.names, *self.dropped, *own, *(() if "tags" in self.reading else self.labels)}
        return read_rows(path, reading, known).frame

    def with_numbers(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return rows in which the vectors and embedded texts of training are expanded to columns of numbers.

        Raises
        ------
        DatasetError
            If a number is infinite, or an integer is too large for a float. The message has the column and the row.
        """
        rows = embedded_rows(rows, self.embeddings) if self.embeddings else rows
        vectors = vector_columns(self.names)
        rows = with_numbers(rows, "rows", known=vectors) if vectors else rows
        if not rows.columns.is_unique:  # `check_columns` refuses it
            return rows
        numbers = {column.name for column in self.columns if column.kind.name == "number"}
        objects = [str(name) for name, dtype in rows.dtypes.items() if dtype.kind == "O" and name in numbers]
        return rows.assign(**{name: _in_64_bits(rows[name], name) for name in objects}) if objects else rows

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse a table whose columns differ from those in training.

        Raises
        ------
        DatasetError
            If feature columns are missing, there are columns that training did not have, or a name occurs twice. The
            message names the columns.
        """
        given = list(map(str, names))
        twice = [name for name, count in Counter(given).items() if count > 1]
        if twice:
            raise DatasetError(f"columns occur twice: {_listed(twice)}")
        known = set(given)
        absent = [name for name in self.names if name not in known]
        if absent:
            raise DatasetError(f"columns of the training data are missing: {_listed(absent)}")
        allowed = {*self.names, *self.labels, *self.dropped}
        extra = [name for name in given if name not in allowed and not _is_index(name)]
        if extra:
            raise DatasetError(f"columns that the training data did not have: {_listed(extra)}; leave them out")

    def encode(self, rows: pd.DataFrame, *, strict: bool = False) -> EncodedRows:
        """Return the matrix of rows, in the order of the training columns.

        Parameters
        ----------
        rows : DataFrame of shape (n, m)
            Columns by name, in any order; cells are numbers, truth values, or text as in the file. Labels and dropped
            columns are ignored.
        strict : bool, default False
            Refuse cells of numbers and dates that cannot be read. An encoder that was not learned always does.

        Raises
        ------
        DatasetError
            If there is no row; or if columns are missing or unknown, a column of numbers has a text, or has a missing
            value that the reader of the training file refuses (the message names the column).
        """
        rows = self.with_numbers(rows.rename(columns=str))
        self.check_columns(list(rows.columns))
        n = len(rows)
        if not n:
            raise DatasetError("no row to predict")
        blocks: list[Any] = []
        notes = EncodedRows(None, {}, {})
        for column in self.columns:
            block = column.block(rows[column.name], strict or not self.learned)
            if block.unknown:
                notes.unknown[column.name] = block.unknown
            if block.unreadable:
                notes.unreadable[column.name] = block.unreadable
            if block.absent.any() and not column.is_text:
                if not self.learned:
                    self._refuse_missing(column, block.absent)
                notes.imputed[column.name] = int(block.absent.sum())
            blocks.append(sp.csr_array(block.X) if self.sparse else block.X)
        if self.sparse:
            X = canonical_csr(sp.hstack(blocks)) if blocks else sp.csr_array((n, 0))
        else:
            X = np.ascontiguousarray(np.hstack(blocks)) + 0.0 if blocks else np.empty((n, 0))
        return replace(notes, X=X)

    def _refuse_missing(self, column: FeatureColumn, absent: np.ndarray) -> None:
        """Refuse missing values of an encoder that has not learned what they become."""
        row = int(np.flatnonzero(absent)[0]) + 1
        raise DatasetError(
            f"column {column.name[:60]!r} has {int(absent.sum())} missing values, the first in row {row}; the training "
            "data had none; fill them in"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the encoder as JSON values."""
        columns = [{**asdict(column), "kind": str(column.kind)} for column in self.columns]
        return {**asdict(replace(self, columns=())), "columns": columns}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder of :meth:`to_json`.

        Raises
        ------
        DatasetError
            If the content is not that of an encoder.
        """
        try:
            known = msgspec.convert(content, _Encoder)
            columns = tuple(map(_column, known["columns"]))
        except (DatasetError, msgspec.ValidationError) as error:
            raise DatasetError(f"not an encoder of rows: {error}") from None
        wrong = [
            column.name
            for column in columns
            if not column.is_valid
            or not 0 <= column.hashed <= _MOST_HASHED
            or (column.values is None) != (column.kind.name in ("number", "date"))
        ]
        if wrong:
            raise DatasetError(f"not an encoder of rows: {excerpt(repr(wrong[0]))}")
        return cls(
            columns,
            tuple(known["labels"]),
            tuple(known["dropped"]),
            known["sparse"],
            dict(known.get("reading", {})),
            known.get("learned", False),
            known.get("embeddings", {}),
        )


class _Column(TypedDict):
    """Column of an encoder in JSON; those of older models have no kind."""

    name: str
    values: list[str] | None
    fill: float | str | None
    kind: NotRequired[str]
    others: NotRequired[bool]
    indicator: NotRequired[bool]
    weights: NotRequired[list[float] | None]
    hashed: NotRequired[Annotated[int, msgspec.Meta(ge=0, le=HASHED)]]


class _Reading(TypedDict):
    encoding: NotRequired[str | None]
    header: NotRequired[bool | None]
    decimal: NotRequired[str | None]
    tags: NotRequired[str | None]
    separator: NotRequired[Annotated[str, msgspec.Meta(min_length=1)] | None]
    missing_labels: NotRequired[str | None]


class _Encoder(TypedDict):
    """Encoder in JSON."""

    columns: list[_Column]
    labels: list[str]
    dropped: list[str]
    sparse: bool
    reading: NotRequired[_Reading]
    learned: NotRequired[bool]
    embeddings: NotRequired[dict[str, str]]


def _column(content: _Column) -> FeatureColumn:
    """Return a column of :meth:`TableEncoder.to_json`."""
    values, weights = content["values"], content.get("weights")
    return FeatureColumn(
        content["name"],
        None if values is None else tuple(values),
        content["fill"],
        Kind.parse(content.get("kind", "number" if values is None else "category")),
        content.get("others", False),
        content.get("indicator", False),
        None if weights is None else tuple(weights),
        content.get("hashed", 0),
    )


def encoder_of(name: str) -> TableEncoder:
    """Return the encoder for new rows of a dataset; it reproduces the matrix of the training file.

    Parameters
    ----------
    name : str
        Name of the card. The files are read again.

    See Also
    --------
    encoder_with_rows : Return also the rows.

    Examples
    --------
    >>> from multilab.datasets import encoder_of
    >>> encoder_of("genes-toy").names[:2]
    ['condition_1', 'condition_2']
    """
    return encoder_with_rows(name)[0]


def texts_of(kinds: Mapping[str, Kind]) -> list[str]:
    """Return the names of the columns of free text that have no character n-grams."""
    return [name for name, kind in kinds.items() if kind == Kind("text")]


def with_grams(kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """Return kinds of columns in which those of text have character n-grams in addition to words."""
    return {name: Kind("text", "chars") if kind == Kind("text") else kind for name, kind in kinds.items()}


def encoder_with_rows(name: str, *, chars: bool = False) -> tuple[TableEncoder, RawData | Dataset]:
    """Return the encoder of a dataset, and its rows before imputation; for a table, the rows as they were read.

    With ``chars`` columns of text have character n-grams in addition to words.
    """
    wanted = card(name)
    if wanted.generator is not None:
        generated = generate(wanted.generator)
        return TableEncoder.of(generated), generated
    reader = wanted.reader
    dropped = [*reader.dropped, *reader.own_columns]
    reading = reader.given(("encoding", "header", "decimal", "tags", "separator", "missing_labels"))
    data = load(name)
    if data.kinds is not None:
        kinds = with_grams(data.kinds) if chars else data.kinds
        encoder = TableEncoder.learn(data.X, kinds, data.label_names, dropped, reading)
        return replace(encoder, embeddings=embeddings_of(reader.columns)), data
    paths = {one.file.role: one.path for one in find_files(wanted)}
    raw, _ = _from_files(paths, wanted.reader_options)
    return TableEncoder.of(raw, dropped, reading), raw


def _label(cells: pd.Series, unobserved: bool) -> Any:
    """Return a label as 0 and 1, NaN where it was not observed; cells that are no label as they are.

    A blank was not observed if the training file has such labels; otherwise it is what the reader makes of it.
    """
    values, _, fault = label_values(cells, "", True)
    if fault:
        return cells
    if unobserved:
        values[cells.isna().to_numpy()] = np.nan
    return values


def _in_64_bits(cells: pd.Series, name: str) -> pd.Series:
    """Return cells with integers of more than 64 bits, which NumPy does not know, as floats."""
    if cells.dtype != object:
        return cells
    values = cells.tolist()
    for row, cell in enumerate(values):
        if isinstance(cell, int) and not -(2**63) <= cell < 2**63:
            try:
                values[row] = float(cell)
            except OverflowError:
                raise DatasetError(f"column {name[:60]!r}, row {row + 1}: not a finite number") from None
    return pd.Series(values, cells.index, object)


def _is_index(name: str) -> bool:
    """Return whether a column is the index that pandas writes."""
    return not name or name.startswith("Unnamed: ") or name.startswith("__index_level_")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(excerpt(name)) for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
