"""Reader of CSV files: delimiter, header, rows, and their cells as coded columns."""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from multilab.core.files import PathLike
from multilab.core.messages import option
from multilab.core.text import excerpt, first_few
from multilab.datasets.columns import LabelOptions, TableColumn, dropped_note, positions_left
from multilab.datasets.encode import CodedTable
from multilab.datasets.errors import DatasetError, DatasetWarning
from multilab.datasets.file_access import (
    Limits,
    TextForm,
    decode,
    encoding_note,
    plain_name,
    read_bytes,
    require_cells,
)
from multilab.datasets.table_cells import (
    COMMA_NUMBER,
    MISSING_CELLS,
    POINT_NUMBER,
    are_labels,
    cell_values,
    coded_cells,
    label_note,
    meaning_notes,
    read_label_numbers,
    recoded,
)

# The first record: quoted fields may hold delimiters and line breaks. Possessive, so that nothing backtracks.
_FIRST_RECORD = re.compile(rb'(?:[^"\n]++|"[^"]*+")*+')
_QUOTED = re.compile(r'"[^"]*+"')
_GROUPED = r"(?<![\d.,])[-+]?[1-9]\d{0,2}\.\d{3}(?![\d.,])"
_GROUPED_CELL, _GROUPED_ANYWHERE = re.compile(_GROUPED), re.compile(_GROUPED.encode())
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_SMALL = re.compile(r"[-+]?\d{1,3}")
_CODE, _LEADING_ZERO = re.compile(r"0\d+"), re.compile(rb"(?<![\w.,:/+-])0\d")
_DECIMAL = {",": COMMA_NUMBER, ".": POINT_NUMBER}
# What pandas reads as missing; the same texts in mixed case make a column of text, which `cell_values` understands.
_MISSING = sorted({form for text in MISSING_CELLS for form in (text, text.upper())} | {"NaN"})
_LONGEST_FIELD = 131_072  # bytes; the limit of Python's csv module, which counts characters
_USUAL = (".csv", ".tsv", ".txt")
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_SHOWN = 8  # lines or columns that a note lists
_NEARLY_EMPTY = 20  # a column without a name is left out if at most one of so many cells is not blank
_CHUNK_CELLS = 2**20  # pandas needs some 30 bytes for each; it is fastest with as many
_CHUNK_ROWS = 300  # at least: pandas takes 60 microseconds for every column of a chunk
_MANY_COLUMNS = 1000  # with fewer rows than a chunk has, these are read without pandas


def read_csv(
    path: PathLike,
    options: LabelOptions | None,
    limits: Limits,
    drop: Sequence[str] = (),
    text: str = "error",
    missing_labels: bool = False,
    text_columns: Collection[str] = (),
    form: TextForm = TextForm(),  # noqa: B008 (it is frozen)
) -> CodedTable:
    """Read a CSV file.

    Parameters
    ----------
    path : path-like
        The file. Fields are separated by the one of comma, semicolon and tab that is most frequent in the first line
        outside of quotes; in a ``.tsv`` file by tabs, if the first line has one.
    options : LabelOptions or None
        Which columns are the labels; None: no column is.
    limits : Limits
        Upper bounds of sizes.
    drop : sequence of str
        Names of columns that are dropped.
    text : {"error", "one_hot", "keep"}
        Whether a feature of text is refused; otherwise it is nominal, however many different values it has. Text is
        a column most of whose different values are neither numbers nor ``true`` and ``false``; values are sorted.
    missing_labels : bool
        Whether a label may be missing.
    text_columns : collection of str
        Names of columns that are text, whatever their values.
    form : TextForm
        Encoding, names in the first line, decimal separator, and what happens to lines that do not fit.

    Returns
    -------
    CodedTable
        Dense. ``true`` and ``false`` are 1 and 0; an empty field, ``?``, ``NA``, ``N/A``, ``#N/A``, ``<NA>``, ``NaN``
        and ``null`` are missing values, all of them in any case. A first column without a name is the index that pandas
        and R write: it is left out. Columns without a name at the end are called ``c4``, ``c5``, ... by their position,
        or left out where they are nearly empty. ``notes`` says so.

    Raises
    ------
    DatasetError
        With the line: wrong number of fields, no or no finite number, missing or non-binary label, a column
        name that is empty or repeated, no row.

    Notes
    -----
    The csv module decides what a record is, in its strict form; it is asked only where a file is not regular, and for
    the line of a fault. pandas, which would fill short rows up and take a quote for what it is not, reads the records.
    """
    octets, notes = _utf8_text(path, limits, form.encoding)
    first = _FIRST_RECORD.match(octets)
    head = first[0] if first and octets[first.end() : first.end() + 1] in (b"", b"\n") else octets.partition(b"\n")[0]
    extension = plain_name(path)[1]
    delimiter = delimiter_of(
        head.decode(), extension, form.decimal
    )  # of a lone quote's first line: the csv module decides
    if extension not in _USUAL:
        notes.append(f"read as a table with {_DELIMITERS[delimiter]} between its fields")
    records = _Records(octets, 0, 0, delimiter)
    names = [name.strip() for name in records.first(path) or []]
    if form.header is False:
        names = [f"c{j}" for j in range(1, len(names) + 1)]
    else:
        records = records.after_first()
    if len(names) > limits.max_columns:
        raise DatasetError(f"more than the limit of {limits.max_columns} columns", path, 1)
    if form.on_bad_lines == "skip" and (bad := records.bad_lines(len(names))):
        records = records.without(bad)
        octets = records.octets
        notes.append(f"left out, not {len(names)} fields of CSV: {_shown_lines(bad)}")
    index = len(names) > 1 and not names[0]
    notes = ([index_note("the first column has no name", path)] if index else []) + notes
    doubtful = _names_like_data(names[index:], delimiter) if form.header is None else []
    full, filled = 0, dict.fromkeys(unnamed_last(names), 0)
    for record in _full(records, len(names)) if filled and form.known is None else ():
        full += 1
        for j in filled:
            filled[j] += bool(record[j].strip())
    names, blank, further = named_last(names, filled, full, form.known)
    notes += further
    kept = [j for j in positions_left(names, drop, path) if (j or not index) and j not in blank]
    if all(doubtful) and doubtful:
        raise _header_error(names, path)
    hint = f"; if the first line is data, {option('header', 'false')} calls the columns c1, c2, ..."
    columns = named_columns(names, kept, path, hint if any(doubtful) else "")
    labels = choose_labels(options, columns, path)

    body, rows, fault = _regular_body(records, len(names), path, form)
    require_cells(rows, len(columns), "the table", path, limits)
    text_columns = set(text_columns)
    # Points between thousands would be read as decimal points; commas between thousands are no numbers to pandas.
    as_text = {k for k, column in enumerate(columns) if form.decimal == "," or column.name in text_columns}
    cells = _read_cells(body, rows, len(names), kept, as_text, labels, missing_labels)
    meanings = dict[str, list[str]]()
    for k in labels.tolist():
        texts = cells.texts.get(k)
        if note := read_label_numbers(cells.column(k)) if texts is None else label_note(texts):
            meanings.setdefault(note, []).append(columns[k].name)
    named = enumerate(zip(doubtful, names[index:], strict=True))
    if any(doubtful) and not drop and all(like or name in cells.texts.get(k, ()) for k, (like, name) in named):
        raise _header_error(names, path)
    if text == "keep" and _LEADING_ZERO.search(octets, records.start):
        some = [k for k in range(len(columns)) if k not in cells.texts and k not in labels]
        some = [k for k in some if _are_whole(cells.column(k))]
        again = _read_cells(body, rows, len(names), [kept[k] for k in some], set(range(len(some))))
        for i, k in enumerate(some):  # 01234 is a code: as a number it would be another one
            if any(map(_CODE.fullmatch, again.texts[i])):
                cells.texts[k], cells.column(k)[:] = again.texts[i], again.column(i)
                text_columns.add(columns[k].name)
    grouped: list[str] = []
    if form.decimal is None and delimiter != "," and _GROUPED_ANYWHERE.search(octets, records.start):
        some = [k for k in range(len(columns)) if k in cells.texts or _may_be_grouped(cells.column(k))]
        some = [k for k in some if columns[k].name not in text_columns]  # what these are was said
        again = _read_cells(body, rows, len(names), [kept[k] for k in some], set(range(len(some))))
        grouped = [columns[k].name for i, k in enumerate(some) if _are_grouped(again.texts[i])]
        notes += [_grouped_note(grouped)] if grouped else []

    faults, is_label = list[tuple[int, str]](), set(labels.tolist())
    for k, texts in sorted(cells.texts.items()):
        name, codes = columns[k].name, cells.column(k).astype(np.intp)
        kind = "label" if k in is_label else "text" if name in text_columns else "feature"
        plain = texts, codes
        if form.decimal and kind == "feature":
            faults += _two_points(texts, codes, name) if form.decimal == "," else []
            plain = recoded(texts, codes, lambda cell: _plain_number(cell, str(form.decimal)))
        coded, values, wrong = coded_cells(*plain, name, kind, text != "error", missing_labels, text == "keep")
        if coded.values is not None:  # text stays as it is
            coded, values, wrong = coded_cells(texts, codes, name, "text", True, missing_labels)
        columns[k], cells.column(k)[:] = coded, values
        faults += [wrong] if wrong else []
    if faults:
        row, reason = min(faults, key=lambda one: one[0])
        raise DatasetError(reason, path, records.line_of(row, len(names)))
    if fault is not None:
        raise fault
    return CodedTable(
        cells.features,
        cells.labels,
        [columns[k] for k in cells.feature_positions],
        [columns[k] for k in labels],
        path,
        limits,
        (*notes, *meaning_notes(meanings), *dropped_note(drop, names)),
        tuple(grouped),
    )


def _utf8_text(path: PathLike, limits: Limits, encoding: str | None) -> tuple[bytes, list[str]]:
    r"""Return the text of a file as UTF-8 with ``\n`` for every line end, and the note about its encoding."""
    octets = read_bytes(path, limits)
    utf_16 = encoding is None and octets.startswith((b"\xff\xfe", b"\xfe\xff"))
    encoding = "utf-16" if utf_16 else encoding
    notes = ["the text is UTF-16"] if utf_16 else encoding_note(octets, encoding)
    if encoding not in (None, "utf-8") or not octets.isascii() or b"\r" in octets:  # else it is its own decoding
        octets = decode(octets, path, encoding).encode()
    if b"\0" in octets:
        raise DatasetError("a binary file, no text", path)
    return octets, notes


class _Records(NamedTuple):
    """The records of a text, as the strict form of the csv module reads them.

    Attributes
    ----------
    octets : bytes
        The file.
    start : int
        Position of the first byte of the records.
    lines : int
        Number of lines before it.
    delimiter : str
    """

    octets: bytes
    start: int
    lines: int
    delimiter: str

    def reader(self) -> Any:
        """Return a new reader of the csv module; its ``line_num`` counts from ``start``."""
        stream = io.BytesIO(self.octets)  # shares the bytes
        stream.seek(self.start)
        return csv.reader(io.TextIOWrapper(stream, "utf-8", newline=""), delimiter=self.delimiter, strict=True)

    def first(self, path: PathLike) -> list[str] | None:
        """Return the fields of the first record, None if there is none."""
        reader = self.reader()
        try:
            return next(reader, None)
        except csv.Error as error:
            raise DatasetError(f"not readable as CSV ({error})", path, self.lines + reader.line_num) from None

    def after_first(self) -> _Records:
        """Return the records without the first one."""
        reader, start = self.reader(), self.start
        next(reader, None)
        for _ in range(reader.line_num):
            start = self.octets.find(b"\n", start) + 1 or len(self.octets)
        return _Records(self.octets, start, self.lines + reader.line_num, self.delimiter)

    def bad_lines(self, width: int) -> list[int]:
        """Return the numbers of the lines of all records that have a wrong number of fields, or quotes inside quotes.

        Where records span several lines, a faulty one may end anywhere: the lines after it count as faulty as well, up
        to a record that has its quotes around complete fields, so that no fragment is taken for a record.
        """
        lines = self.octets[self.start :].split(b"\n")
        bad, careful = list[int](), list[int]()
        several = unsure = False
        reader, end = self.reader(), 0
        while end < len(lines):
            start, fields = end, 0
            try:
                row = next(reader, None)
            except csv.Error:
                unsure = True
            else:
                if row is None:
                    break
                fields = width if _is_blank(row, width) else len(row)
            end = reader.line_num
            here = range(self.lines + start + 1, self.lines + end + 1)
            if fields != width:
                bad += here
                careful += here
                continue
            several = several or len(here) > 1
            text = b"\n".join(lines[start:end])
            unsure = unsure and (b'"' not in text or b'"' in _without_quoted(text, self.delimiter))
            careful += here if unsure else ()
        return careful if several else bad

    def without(self, lines: Collection[int]) -> _Records:
        """Return the records with some lines empty, so that the others keep their numbers."""
        emptied = set(lines)
        kept = self.octets[self.start :].split(b"\n")
        kept = [b"" if self.lines + k in emptied else line for k, line in enumerate(kept, 1)]
        return _Records(b"\n".join(kept), 0, self.lines, self.delimiter)

    def line_of(self, row: int, width: int) -> int:
        """Return the number of the last line of a row."""
        reader = self.reader()
        rows = (record for record in reader if not _is_blank(record, width))
        for _ in range(row + 1):
            next(rows)
        return self.lines + reader.line_num


def _without_quoted(octets: bytes, delimiter: str) -> bytes:
    """Return records with x for every field that is in quotes."""
    mark = delimiter.encode()
    return re.sub(rb'(?<![^%b\n])"[^"]*+(?:""[^"]*+)*+"(?![^%b\n])' % (mark, mark), b"x", octets)


def _full(records: _Records, width: int) -> Iterator[list[str]]:
    """Yield the records that have a field for every column."""
    try:
        yield from (record for record in records.reader() if len(record) == width)
    except csv.Error:
        return  # reported where the records are read


def _is_blank(record: list[str], width: int) -> bool:
    """Return whether a record is a line without fields, which is no row."""
    return not record or (len(record) == 1 < width and not record[0].strip())


def _regular_body(
    records: _Records, width: int, path: PathLike, form: TextForm
) -> tuple[_Records, int, DatasetError | None]:
    """Return records that pandas reads as the csv module does, the number of rows, and the first fault after them.

    They are those of the file if it is regular; otherwise they are written again up to the first fault.
    """
    if rows := _regular_rows(records, width):
        return records, rows, None
    reason, reader = "", records.reader()
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, "utf-8", newline="")
    writer = csv.writer(stream, delimiter=records.delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    try:
        for row in reader:
            if _is_blank(row, width):
                continue
            if len(row) != width:
                reason = f"{len(row)} fields, expected {width}"
                break
            writer.writerow(row)
            rows += 1
    except csv.Error as error:
        reason = f"not readable as CSV ({error})"
    fault = None
    if reason:
        hint = _bad_lines_hint(records, width) if form.known is None else ""  # every new row needs its prediction
        fault = DatasetError(reason + hint, path, records.lines + reader.line_num)
    elif not rows:
        fault = DatasetError("no row follows the line of names", path, 1)
    stream.flush()
    return _Records(written.getvalue(), 0, 0, records.delimiter), rows, fault


def _bad_lines_hint(records: _Records, width: int) -> str:
    """Return how many lines do not fit, and how to leave them out, unless most lines do not."""
    bad, lines = records.bad_lines(width), records.octets.count(b"\n", records.start) + 1
    if 2 * len(bad) > lines:
        return ""
    return f"; {option('on_bad_lines', 'skip')} leaves out {_shown_lines(bad)}"


def _shown_lines(lines: Sequence[int]) -> str:
    """Return the number of some lines and the first of them; 3-5 are lines in a row."""
    spans = list[list[int]]()
    for line in lines:
        if spans and spans[-1][1] == line - 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    shown = first_few((str(a) if a == b else f"{a}-{b}" for a, b in spans), _SHOWN)
    return f"line {shown}" if len(lines) == 1 else f"{len(lines)} lines: {shown}"


def _regular_rows(records: _Records, width: int) -> int:
    """Return the number of rows if pandas reads the records as the csv module does, else 0.

    Every line then has the right number of fields, quotes are around complete fields, no field is too long, and there
    are empty lines at the end only.
    """
    octets, start, _, delimiter = records
    mark = delimiter.encode()
    if width < 2 or octets.startswith(b"\xef\xbb\xbf", start):  # pandas leaves out such a mark
        return 0
    body = io.BytesIO(octets)
    body.seek(start)
    if octets.find(b'"', start) >= 0:
        bare = _without_quoted(octets[start:], delimiter)
        if b'"' in bare or re.search(rb'"[^"]{%d}' % _LONGEST_FIELD, octets):
            return 0
        body = io.BytesIO(bare)
    rows, others = 0, width - 1
    for line in body:
        if line.count(mark) != others:
            return 0 if (line + body.read()).strip(b"\n") else rows
        if len(line) > _LONGEST_FIELD and max(map(len, line.split(mark))) > _LONGEST_FIELD:
            return 0
        rows += 1
    return rows


class _Cells:
    """The cells of a table: numbers, NaN where one is missing, or codes of texts.

    Attributes
    ----------
    features, labels : ndarray of shapes (rows, d) and (rows, q)
        The columns that are no labels, and the labels.
    texts : dict of int to list of str
        Of every column that holds codes its different texts, in the order of their first rows. That of a missing cell
        may be empty.
    """

    def __init__(self, rows: int, width: int, label_positions: np.ndarray):
        self.feature_positions = np.setdiff1d(np.arange(width), label_positions)
        self.label_positions = label_positions
        self.features = np.empty((rows, len(self.feature_positions)))
        self.labels = np.empty((rows, len(label_positions)))
        self.texts: dict[int, list[str]] = {}
        self._places = {k: (self.features, i) for i, k in enumerate(self.feature_positions.tolist())}
        self._places |= {k: (self.labels, i) for i, k in enumerate(label_positions.tolist())}

    def column(self, k: int) -> np.ndarray:
        """Return a view of a column."""
        array, i = self._places[k]
        return array[:, i]

    def put(self, start: int, block: np.ndarray) -> None:
        """Set some rows of all columns."""
        rows = slice(start, start + len(block))
        for part, positions in ((self.features, self.feature_positions), (self.labels, self.label_positions)):
            np.take(block, positions, axis=1, out=part[rows], mode="clip")  # other modes make a copy first


def _read_cells(
    body: _Records,
    rows: int,
    width: int,
    kept: Sequence[int],
    as_text: set[int],
    labels: np.ndarray | None = None,
    missing_labels: bool = False,
) -> _Cells:
    """Return the cells of some columns of a table.

    Parameters
    ----------
    body : _Records
        Regular records.
    rows, width : int
        Their number, and that of the fields of each.
    kept : sequence of int
        Positions of the columns.
    as_text : set of int
        Which of them are read as text, whatever they hold; these and ``labels`` are positions in ``kept``. Further ones
        are if one of their cells is no finite number, or a label is not 0 or 1.
    """
    labels = np.empty(0, dtype=np.intp) if labels is None else labels
    cells = _Cells(rows, len(kept), labels)
    if width > _MANY_COLUMNS and rows < _CHUNK_ROWS:
        columns = list(zip(*filter(None, body.reader()), strict=True)) or [()] * width
        for k, j in enumerate(kept):
            cells.texts[k], cells.column(k)[:] = recoded(columns[j], slice(None), str.strip)
        return cells
    for first in (True, False, False):  # the first chunk shows most columns of text, a complete pass all of them
        texts: dict[int, dict[str, int]] = {k: {} for k in as_text}
        more, start = set[int](), 0
        for chunk in _chunks(body, rows, width, kept, as_text):
            numeric = [k for k, kind in enumerate(chunk.dtypes) if kind.kind in "biuf"]
            numbers = (chunk if len(numeric) == len(kept) else chunk.iloc[:, numeric]).to_numpy(dtype=np.float64)
            block = numbers
            more |= set(range(len(kept))).difference(numeric, as_text)
            valid = ~np.isinf(numbers).any(axis=0)
            own = np.flatnonzero(np.isin(numeric, labels))
            valid[own] &= are_labels(numbers[:, own], missing_labels).all(axis=0)
            more |= {numeric[i] for i in np.flatnonzero(~valid)}
            if more and first:
                break
            if len(numeric) < len(kept):
                block = np.empty((len(chunk), len(kept)))
                block[:, numeric] = numbers
            for k, known in texts.items():
                codes, different = pd.factorize(chunk.iloc[:, k].to_numpy(), use_na_sentinel=False)
                stripped = [cell.strip() if isinstance(cell, str) else "" for cell in different]
                block[:, k] = np.array([known.setdefault(cell, len(known)) for cell in stripped])[codes]
            cells.put(start, block)
            start += len(chunk)
        if not more:
            break
        as_text = as_text | more
    cells.texts = {k: list(known) for k, known in texts.items()}
    return cells


def _chunks(body: _Records, rows: int, width: int, kept: Sequence[int], as_text: Collection[int]) -> Iterator[Any]:
    """Yield regular records as data frames; a column is numeric if its cells in the chunk are numbers or missing."""
    if not rows or not kept:
        return
    stream = io.BytesIO(body.octets)  # shares the bytes
    stream.seek(body.start)
    try:
        with pd.read_csv(
            stream,
            sep=body.delimiter,
            header=None,
            names=range(width),
            usecols=kept,
            index_col=False,
            dtype={kept[k]: object for k in as_text},
            keep_default_na=False,
            na_values=_MISSING,
            skip_blank_lines=False,
            low_memory=False,
            nrows=rows,
            chunksize=max(_CHUNK_CELLS // width, _CHUNK_ROWS),
        ) as chunks:
            yield from chunks
    except pd.errors.ParserError as error:  # the records are regular: only memory can be short
        raise MemoryError(str(error)) from None


def _are_whole(values: np.ndarray) -> bool:
    """Return whether the numbers of a column have no decimals."""
    present = values[~np.isnan(values)]
    return bool((present == np.floor(present)).all())


def _may_be_grouped(values: np.ndarray) -> bool:
    """Return whether a column can be grouped, see `_are_grouped`, by its numbers alone."""
    sizes = np.abs(values[~np.isnan(values)])
    return bool(((sizes == 0) | ((sizes >= 1) & (sizes < 1000))).all() and (sizes == np.floor(sizes)).any())


def _names_like_data(names: Sequence[str], delimiter: str) -> list[bool]:
    """Return which names of columns are numbers or missing values; none where they number the columns."""
    commas = delimiter != ","  # 36,7 is a number
    like = [
        any(names) and (value is not None or (commas and bool(COMMA_NUMBER.fullmatch(name))))
        for name, value in zip(names, cell_values(names), strict=True)
    ]
    if all(like) and all(name.isascii() and name.isdecimal() and len(name) < 16 for name in names):
        numbers = [int(name) for name in names]
        if all(b - a == 1 for a, b in pairwise(numbers)):
            return [False] * len(names)
    return like


def _header_error(names: Sequence[str], path: PathLike) -> DatasetError:
    shown = ", ".join(excerpt(name, 20) for name in names[:5])
    return DatasetError(
        f"the first line is data, not names of columns: {shown}; {option('header', 'false')} calls the "
        f"columns c1, c2, ..., {option('header', 'true')} takes these names",
        path,
        1,
    )


def _are_grouped(cells: Sequence[str]) -> bool:
    """Return whether the numbers of a column look like 800 and 9.600, where the point separates thousands.

    A program that writes decimals leaves out either the last zero of 9.600, or no point at all.
    """
    pointed = {cell for cell in cells if "." in cell}
    if not pointed or not any(cell.endswith("0") for cell in pointed):
        return False
    others = {cell for cell in cells if "." not in cell and cell.lower() not in MISSING_CELLS}
    return bool(others) and all(map(_GROUPED_CELL.fullmatch, pointed)) and all(map(_SMALL.fullmatch, others))


def _grouped_note(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:60]) for name in names[:10])
    return f"points that may separate thousands were read as decimal points: {shown}; decimal=',' reads them"


def choose_labels(options: LabelOptions | None, columns: Sequence[TableColumn], path: PathLike) -> np.ndarray:
    """Return the positions of the label columns; none without options."""
    return np.empty(0, dtype=np.intp) if options is None else options.choose(columns, path)


def delimiter_of(head: str, extension: str = "", decimal: str | None = None) -> str:
    """Return the delimiter of the first line; what is quoted is ignored, and so are decimal commas."""
    bare = _QUOTED.sub("", head)
    if ";" in bare or "\t" in bare:
        bare = bare.replace(",", "") if decimal == "," else _DECIMAL_COMMA.sub("", bare)
    if extension == ".tsv" and "\t" in bare:
        return "\t"
    return max(_DELIMITERS, key=bare.count)  # of equally frequent ones the first


def named_columns(names: Sequence[str], kept: Sequence[int], path: PathLike, hint: str = "") -> list[TableColumn]:
    """Return the columns of a table that are read; refuse names that are empty or occur twice."""
    seen: set[str] = set()
    for j in kept:
        name = names[j]
        if not name:
            raise DatasetError(f"column {j + 1} has no name{hint}", path, 1)
        if name in seen:
            raise DatasetError(f"column '{name[:60]}' occurs twice{hint}", path, 1)
        seen.add(name)
    return [TableColumn(names[j], None, 1) for j in kept]


def unnamed_last(names: Sequence[str]) -> list[int]:
    """Return the positions of the last columns without a name; the first column of a table is none of them."""
    named = len(names)
    while named > 1 and not names[named - 1]:
        named -= 1
    return list(range(named, len(names)))


def named_last(
    names: Sequence[str], filled: Mapping[int, int], rows: int, known: Collection[str] | None
) -> tuple[list[str], set[int], list[str]]:
    """Call the last columns without a name by their positions, or leave them out.

    Parameters
    ----------
    names : sequence of str
        Of all columns.
    filled : mapping of int to int
        Position of each of these columns, and the number of its cells that are not blank.
    rows : int
    known : collection of str or None
        See `TextForm`.

    Returns
    -------
    names : list of str
    left_out : set of int
        Positions of those that are left out.
    notes : list of str
    """
    names = list(names)
    for j in filled:
        names[j] = f"c{j + 1}"
    if known is not None:
        moved = not set(known) <= set(names)  # the position is another one where a column is absent
        return names, {j for j in filled if moved or names[j] not in known}, []
    left_out = {j for j, count in filled.items() if count * _NEARLY_EMPTY <= rows}
    if left_out and len(left_out) == len(filled) and not any(filled.values()):
        return names, left_out, [f"left out, neither names nor cells: the last {len(filled)} columns"]
    shown = [f"{names[j]} ({filled[j]} of {rows} cells)" for j in sorted(left_out)]
    notes = [f"left out, no name and hardly a cell: {first_few(shown, _SHOWN)}"] if shown else []
    taken = [names[j] for j in filled if j not in left_out]
    return names, left_out, [*notes, *([f"columns without a name: {first_few(taken, _SHOWN)}"] if taken else [])]


def index_note(reason: str, path: PathLike) -> str:
    """Warn of an index column that is left out, and return the note about it."""
    note = f"{reason}: read as an index and left out"
    warnings.warn(f"{os.fspath(path)}: {note}", DatasetWarning, stacklevel=5)
    return note


def _two_points(texts: Sequence[str], codes: np.ndarray, name: str) -> list[tuple[int, str]]:
    """Return the fault of a column where a point separates thousands in some numbers, and decimals in others."""
    pointed = [(code, text) for code, text in enumerate(texts) if "." in text and POINT_NUMBER.fullmatch(text)]
    decimals = [(code, text) for code, text in pointed if not COMMA_NUMBER.fullmatch(text)]
    if not decimals or len(decimals) == len(pointed):
        return []
    (code, text), grouped = decimals[0], next(one for _, one in pointed if COMMA_NUMBER.fullmatch(one))
    otherwise = f"with {option('decimal', repr(','))} the point of {grouped!r} separates thousands"
    reason = f"{name}: {text!r} has a decimal point, but {otherwise}"
    return [(int(np.flatnonzero(codes == code)[0]), reason)]


def _plain_number(cell: str, decimal: str) -> str:
    """Return a number without separators of thousands and with a decimal point; another text as it is."""
    if not _DECIMAL[decimal].fullmatch(cell):
        return cell
    return cell.replace(".", "").replace(",", ".") if decimal == "," else cell.replace(",", "")
