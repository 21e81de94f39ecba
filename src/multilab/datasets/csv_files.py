"""Reader of CSV files: delimiter, header, rows, and their cells as columns of numbers and texts."""

from __future__ import annotations

import contextlib
import csv
import io
import math
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
from multilab.core.tags import MISSING_CELLS
from multilab.core.text import excerpt, first_few
from multilab.datasets.columns import dropped_note, positions_left
from multilab.datasets.errors import DatasetError, DatasetWarning
from multilab.datasets.file_access import (
    Limits,
    decode,
    encoding_note,
    is_utf_8,
    plain_name,
    read_bytes,
    require_cells,
)
from multilab.datasets.frames import LEADING_ZERO, Rows, column_of_texts, different, stripped, with_columns
from multilab.datasets.options import Reading
from multilab.datasets.table_cells import COMMA_NUMBER, POINT_NUMBER, cell_values

# The first record: quoted fields may hold delimiters and line breaks. Possessive, so that nothing backtracks.
_FIRST_RECORD = re.compile(rb'(?:[^"\n]++|"[^"]*+")*+')
_QUOTED = re.compile(r'"[^"]*+"')
_GROUPED_CELL = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_SMALL = re.compile(r"[-+]?\d{1,3}")
_DECIMAL = {",": COMMA_NUMBER, ".": POINT_NUMBER}
# What pandas reads as missing; the same texts in mixed case make a column of text, which `cell_values` understands.
_MISSING = sorted({form for text in MISSING_CELLS for form in (text, text.upper())} | {"NaN"})
_LONGEST_FIELD = 131_072  # characters; the limit of Python's csv module
_USUAL = (".csv", ".tsv", ".txt")
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_SHOWN = 8  # lines or columns that a note lists
_NEARLY_EMPTY = 20  # a column without a name is left out if at most one of so many cells is not blank
_CHUNK_CELLS = 2**20  # pandas needs some 30 bytes for each; it is fastest with as many
_BLOCK = 2**18  # bytes that are looked at together: they and two masks stay in the cache
_CHUNK_ROWS = 300  # at least: pandas takes 60 microseconds for every column of a chunk
_MANY_COLUMNS = 1000  # with fewer rows than a chunk has, these are read without pandas
_FEW = 1000  # rows
_QUOTE, _NEWLINE, _BLANK, _ZERO, _NINE = 34, 10, 32, 48, 57  # bytes


def read_csv(
    path: PathLike,
    reading: Reading,
    limits: Limits,
    text_columns: Collection[str] = (),
    known: Collection[str] | None = None,
) -> Rows:
    """Read a CSV file.

    Parameters
    ----------
    path : path-like
        The file. The delimiter is the one of comma, semicolon and tab that is most frequent in the first line outside
        quotes; in a ``.tsv`` file it is the tab, if the first line has one.
    reading : Reading
        Options for the encoding, the names in the first line, the decimal separator, lines that do not fit, and columns
        to leave out.
    limits : Limits
        Upper bounds of sizes.
    text_columns : collection of str
        Names of columns that are texts, whatever their values.
    known : collection of str, optional
        Names of all columns in training. Trailing columns without a name that are not among them are left out. If None,
        nearly empty ones are left out.

    Returns
    -------
    Rows
        An empty field, ``?``, ``NA``, ``N/A``, ``#N/A``, ``<NA>``, ``NaN`` and ``null`` are missing values, in upper or
        lower case. A column of numbers, or of ``true`` and ``false``, becomes float64, unless a number has leading
        zeros; any other column becomes a categorical of its texts. A first column without a name is taken for the index
        that pandas and R write, and left out. Trailing columns without a name are called ``c4``, ``c5``, ... by their
        position, or are left out if nearly empty. The notes list all of this.

    Raises
    ------
    DatasetError
        If a line has a wrong number of fields, a column name is empty or repeated, or there is no row. The message has
        the line.

    Notes
    -----
    The strict mode of the csv module decides what a record is. pandas reads the records if it is sure to read them in
    the same way. Otherwise the csv module reads them first, and writes them in a form that both read alike.
    """
    octets, notes = _utf8_text(path, limits, reading.encoding)
    first = _FIRST_RECORD.match(octets)
    head = first[0] if first and octets[first.end() : first.end() + 1] in (b"", b"\n") else octets.partition(b"\n")[0]
    extension = plain_name(path)[1]
    # of a lone quote's first line the csv module decides
    delimiter = delimiter_of(head.decode(), extension, reading.decimal)
    if extension not in _USUAL:
        notes.append(f"read as a table with {_DELIMITERS[delimiter]} between its fields")
    records = _Records(octets, 0, 0, delimiter)
    names = [name.strip() for name in records.first(path) or []]
    if reading.header is False:
        names = [f"c{j}" for j in range(1, len(names) + 1)]
    else:
        records = records.after_first()
    if len(names) > limits.max_columns:
        raise DatasetError(f"more than the limit of {limits.max_columns} columns", path, 1)
    if reading.on_bad_lines == "skip" and (bad := records.bad_lines(len(names))):
        records = records.without(bad)
        notes.append(f"lines without {len(names)} valid fields, left out: {_shown_lines(bad)}")
    index = len(names) > 1 and not names[0]
    notes = ([index_note("the first column has no name", path)] if index else []) + notes
    doubtful = _names_like_data(names[index:], delimiter) if reading.header is None else []
    full, filled = 0, dict.fromkeys(unnamed_last(names), 0)
    for record in _full(records, len(names)) if filled and known is None else ():
        full += 1
        for j in filled:
            filled[j] += bool(record[j].strip())
    names, blank, further = named_last(names, filled, full, known)
    notes += further
    kept = [j for j in positions_left(names, reading.dropped, path) if (j or not index) and j not in blank]
    if all(doubtful) and doubtful:
        raise _header_error(names, path)
    hint = f"; if the first line is data, {option('header', 'false')} calls the columns c1, c2, ..."
    require_names(names, kept, path, hint if any(doubtful) else "")
    named = [names[j] for j in kept]

    text_columns = set(text_columns)
    # Points between thousands would be read as decimal points; commas between thousands are no numbers to pandas.
    as_text = {k for k, name in enumerate(named) if reading.decimal == "," or name in text_columns}
    cells = _cells(records, len(names), kept, as_text, path, limits, known)
    of_file = enumerate(zip(doubtful, names[index:], strict=True))
    if any(doubtful) and not reading.drop and all(like or cells.has(k, name) for k, (like, name) in of_file):
        raise _header_error(names, path)
    if digits := cells.again(cells.leading_zeros(), lambda texts: any(map(LEADING_ZERO.fullmatch, texts))):
        text_columns |= {named[k] for k in digits}  # 01234 is a code: as a number it would be another one
    grouped = list[str]()
    if reading.decimal is None and delimiter != ",":
        some = [k for k in range(len(named)) if named[k] not in text_columns]  # what these are was said
        candidates = [k for k in some if k not in cells.texts and _may_be_grouped(cells.numbers[k])]
        found = {k for k in some if k in cells.texts and _are_grouped(cells.texts[k][0])}
        found |= {k for k, (texts, _) in cells.read_as_text(candidates).items() if _are_grouped(texts)}
        grouped = [named[k] for k in sorted(found)]
        notes += [_grouped_note(grouped)] if grouped else []
    columns = dict[str, Any]()
    for k, (texts, codes) in sorted(cells.texts.items()):
        name = named[k]
        if name in text_columns:
            columns[name] = column_of_texts(texts, codes, as_text=True)
            continue
        if reading.decimal == "," and (fault := _two_points(texts, codes, name)):
            raise DatasetError(fault[1], path, cells.line_of(fault[0]))
        column = column_of_texts(texts, codes)
        if reading.decimal is not None:
            numbers = column_of_texts([_plain_number(text, reading.decimal) for text in texts], codes)
            column = numbers if isinstance(numbers, np.ndarray) else column_of_texts(texts, codes, as_text=True)
        columns[name] = column
    notes += dropped_note(reading.dropped, names)
    frame = with_columns(pd.DataFrame(cells.numbers.T, columns=named, copy=False), columns)
    return Rows(frame, tuple(notes), tuple(grouped), cells.line_of)


def _utf8_text(path: PathLike, limits: Limits, encoding: str | None) -> tuple[bytes, list[str]]:
    r"""Return the text of a file as UTF-8 with ``\n`` for every line end, and the note about its encoding."""
    octets, notes = read_bytes(path, limits), list[str]()
    if encoding in (None, "utf-8") and is_utf_8(octets):
        octets = octets.removeprefix(b"\xef\xbb\xbf")
        if b"\r" in octets:
            octets = octets.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    else:
        utf_16 = encoding is None and octets.startswith((b"\xff\xfe", b"\xfe\xff"))
        encoding = "utf-16" if utf_16 else encoding
        notes = ["the text is UTF-16"] if utf_16 else encoding_note(octets, encoding)
        octets = decode(octets, path, encoding).encode()
    if b"\0" in octets:
        raise DatasetError("the file is binary, not text", path)
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

    def plain_rows(self, width: int) -> int | None:
        """Return the number of records if pandas reads them as the csv module does, else None.

        Every record has a number of fields, and every quote begins or ends a complete field, or is one of two for a
        quote inside of a field.
        """
        if self.octets.startswith(b"\xef\xbb\xbf", self.start):  # pandas leaves out such a mark
            return None
        octets = np.frombuffer(self.octets, np.uint8)[self.start :]
        has_quotes = self.octets.find(b'"', self.start) >= 0
        allowed = np.zeros(256, dtype=bool)
        allowed[[_QUOTE, _NEWLINE, ord(self.delimiter)]] = True
        rows = inside = found = 0  # quotes that are open, and delimiters of the record so far
        for at in range(0, len(octets), _BLOCK):
            block = octets[at : at + _BLOCK]
            marks, ends = block == ord(self.delimiter), block == _NEWLINE
            if has_quotes:
                quotes = block == _QUOTE
                outside = (np.cumsum(quotes, dtype=np.uint8) + inside) % 2 == 0
                marks &= outside
                ends &= outside
                places = np.flatnonzero(quotes) + at
                first, last = places[inside::2], places[1 - inside :: 2]
                before, after = octets[first[first > 0] - 1], octets[last[last < len(octets) - 1] + 1]
                if not (allowed[before].all() and allowed[after].all()):
                    return None
                inside = (inside + len(places)) % 2
            before = _counts_before(marks, np.flatnonzero(ends))
            if (np.diff(before, prepend=-found) != width - 1).any():
                return None
            rows += len(before)
            found = int(np.count_nonzero(marks) - (before[-1] if len(before) else -found))
        if inside or not len(octets) or (octets[-1] != _NEWLINE and found != width - 1):
            return None
        return rows + int(octets[-1] != _NEWLINE)

    def has_leading_zero(self) -> bool:
        """Return whether a field may begin with 0 and a digit."""
        octets = np.frombuffer(self.octets, np.uint8)[self.start :]
        starts = np.zeros(256, dtype=bool)
        starts[[_QUOTE, _NEWLINE, _BLANK, ord(self.delimiter)]] = True
        for at in range(0, len(octets), _BLOCK):
            block = octets[max(at - 1, 0) : at + _BLOCK + 1]
            zeros = np.flatnonzero(block[:-1] == _ZERO)
            before = np.where(zeros > 0, block[zeros - 1], _NEWLINE)
            after = block[zeros + 1]
            if (starts[before] & (after >= _ZERO) & (after <= _NINE)).any():
                return True
        return False

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


def _counts_before(marks: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return how many of the marks, an array of bool, are before each position."""
    octets = np.packbits(marks, bitorder="little").tobytes()
    words = np.frombuffer(octets.ljust(-(-len(octets) // 8) * 8, b"\0"), "<u8")
    sums = np.cumsum(np.bitwise_count(words), dtype=np.int64)
    word, bit = np.divmod(positions, 64)
    return sums[word] - np.bitwise_count(words[word] >> bit.astype(np.uint64))


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


def _rewritten(records: _Records, width: int, path: PathLike, known: Collection[str] | None) -> tuple[_Records, int]:
    """Return records that the csv module has read and written, with all fields in quotes, and their number."""
    rows, reason, reader = 0, "", records.reader()
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
    if reason:
        hint = _bad_lines_hint(records, width) if known is None else ""  # every new row needs its prediction
        raise DatasetError(reason + hint, path, records.lines + reader.line_num)
    if not rows:
        raise _no_row(path)
    stream.flush()
    return _Records(written.getvalue(), 0, 0, records.delimiter), rows


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


class _Cells:
    """The cells of a table.

    Attributes
    ----------
    numbers : ndarray of shape (columns, rows)
        NaN where one is missing; of columns of text anything.
    texts : dict of int to (list of str, ndarray)
        Of each column of text the different texts, and the position of each row's text among them, -1 of a missing one.
    """

    def __init__(self, records: _Records, body: _Records, width: int, kept: Sequence[int]) -> None:
        self.numbers = np.empty((0, 0))
        self.texts = dict[int, tuple[list[str], np.ndarray]]()
        self.fields: list[tuple[str, ...]] | None = None  # of each column, where pandas did not read them
        self._records, self._body, self._width, self._kept = records, body, width, kept

    def has(self, k: int, text: str) -> bool:
        """Return whether a column of text has a cell with this text."""
        return k in self.texts and text in self.texts[k][0]

    def line_of(self, row: int) -> int:
        """Return the number of the last line of a row."""
        return self._records.line_of(row, self._width)

    def leading_zeros(self) -> list[int]:
        """Return the columns of whole numbers, other than 0 and 1, if a field of the file begins with 0 and a digit."""
        if self.fields is not None:
            return []  # they are texts already
        some = [k for k in range(len(self.numbers)) if k not in self.texts and _are_codes(self.numbers[k])]
        return some if some and self._body.has_leading_zero() else []

    def read_as_text(self, columns: Sequence[int]) -> dict[int, tuple[list[str], np.ndarray]]:
        """Return the texts of columns of numbers."""
        if not columns:
            return {}
        if self.fields is not None:
            return {k: different(map(str.strip, self.fields[k])) for k in columns}
        kept = [self._kept[k] for k in columns]
        return dict(zip(columns, _text_columns(self._body, self._width, kept).values(), strict=True))

    def again(self, columns: Sequence[int], is_text: Any) -> list[int]:
        """Read columns of numbers as texts, keep those whose texts are what a function says, and return these."""
        kept = {k: read for k, read in self.read_as_text(columns).items() if is_text(read[0])}
        self.texts |= kept
        return list(kept)


def _cells(
    records: _Records,
    width: int,
    kept: Sequence[int],
    as_text: set[int],
    path: PathLike,
    limits: Limits,
    known: Collection[str] | None,
) -> _Cells:
    """Return the cells of some columns of a table; ``as_text`` are positions in ``kept``."""
    if records.octets.endswith(b"\n\n"):
        records = records._replace(octets=records.octets.rstrip(b"\n") + b"\n")  # pandas would read empty rows
    rows = records.plain_rows(width) if width > 1 else None
    if rows is not None:
        require_cells(rows, len(kept), "the table", path, limits)
        cells = _Cells(records, records, width, kept)
        if _fill(cells, rows, as_text):
            return cells
    body, rows = _rewritten(records, width, path, known)
    require_cells(rows, len(kept), "the table", path, limits)
    cells = _Cells(records, body, width, kept)
    _fill(cells, rows, as_text, trusted=True)
    return cells


def _no_row(path: PathLike) -> DatasetError:
    return DatasetError("no row follows the line of names", path, 1)


def _fill(cells: _Cells, rows: int, as_text: set[int], trusted: bool = False) -> bool:
    """Read the cells; return False if the csv module may refuse the records.

    Parameters
    ----------
    cells : _Cells
        What is filled.
    rows : int
    as_text : set of int
        Columns that are texts.
    trusted : bool
        Whether the csv module wrote the records.
    """
    body, width, kept = cells._body, cells._width, cells._kept
    if width > _MANY_COLUMNS and rows < _CHUNK_ROWS:
        return _fill_wide(cells, as_text)
    cells.numbers, read = np.empty((len(kept), rows)), {k: _Texts() for k in range(len(kept))}
    wanted, start = set(as_text), 0
    try:
        for chunk in _chunks(body, width, kept, {kept[k]: "str" for k in as_text}):
            stop = start + len(chunk)
            for k, j in enumerate(kept):
                cells_of = chunk[j]
                if cells_of.dtype.kind in "biuf":
                    cells.numbers[k, start:stop] = cells_of.array
                elif isinstance(cells_of.dtype, pd.StringDtype):
                    read[k].add(cells_of)
                else:  # integers of more than 64 bits
                    wanted.add(k)
            start = stop
    except pd.errors.ParserError as error:
        if trusted:  # only memory can be short
            raise MemoryError(str(error)) from None
        return False
    if start != rows:
        return False
    whole = {k for k, known in read.items() if known.rows == rows}
    # texts in some chunks only, an infinite number, or texts by request: read again
    wanted |= {k for k, known in read.items() if 0 < known.rows < rows}
    wanted |= {k for k in range(len(kept)) if not read[k].rows and _has_infinite(cells.numbers[k])}
    cells.texts = {k: read[k].result() for k in sorted(whole)}
    cells.texts |= cells.read_as_text(sorted(wanted - whole))
    if trusted:
        return True
    return all(max(map(len, texts), default=0) < _LONGEST_FIELD for texts, _ in cells.texts.values())


def _has_infinite(values: np.ndarray) -> bool:
    total = values.sum()
    return not np.isfinite(total) and bool(np.isinf(values).any())


class _Texts:
    """The texts of a column, chunk by chunk."""

    def __init__(self) -> None:
        self.rows = 0
        self._parts = list[pd.Series]()

    def add(self, cells: pd.Series) -> None:
        """Add the cells of a chunk."""
        self._parts.append(cells)
        self.rows += len(cells)

    def result(self) -> tuple[list[str], np.ndarray]:
        """Return the different texts, sorted and without blanks around them, and the position of each row's.

        The position of a missing cell is -1.
        """
        cells = pd.concat(self._parts, ignore_index=True) if len(self._parts) > 1 else self._parts[0]
        codes, found = pd.factorize(cells, sort=True)
        texts, codes = stripped(found.tolist(), codes)
        return list(texts), codes


def _text_columns(body: _Records, width: int, kept: Sequence[int]) -> dict[int, tuple[list[str], np.ndarray]]:
    """Return some columns of records that pandas reads well, as texts."""
    read = {j: _Texts() for j in kept}
    for chunk in _chunks(body, width, kept, dict.fromkeys(kept, "str")):
        for j, known in read.items():
            known.add(chunk[j])
    return {j: known.result() for j, known in read.items()}


def _chunks(body: _Records, width: int, kept: Sequence[int], kinds: dict[Any, str]) -> Iterator[pd.DataFrame]:
    """Yield plain records as data frames; a column is numeric if its cells in the chunk are numbers or missing."""
    stream = io.BytesIO(body.octets)  # shares the bytes
    stream.seek(body.start)
    if not body.octets[body.start : body.start + 2].strip(b"\n"):
        return
    with pd.read_csv(
        stream,
        sep=body.delimiter,
        header=None,
        names=range(width),
        usecols=kept,
        index_col=False,
        dtype=kinds,
        keep_default_na=False,
        na_values=_MISSING,
        skip_blank_lines=False,
        low_memory=False,
        chunksize=max(_CHUNK_CELLS // width, _CHUNK_ROWS),
    ) as chunks:
        yield from chunks


def _fill_wide(cells: _Cells, as_text: set[int]) -> bool:
    """Read the cells of few rows with many columns as `_fill` does: pandas takes long for every column."""
    body = cells._body
    try:
        columns = list(zip(*body.reader(), strict=True))
    except csv.Error:  # a field that is too long
        return False
    cells.fields = [columns[j] for j in cells._kept]
    cells.numbers = np.empty((len(cells.fields), len(columns[0])))
    has_codes = body.has_leading_zero()
    for k, fields in enumerate(cells.fields):
        coded = has_codes and any(LEADING_ZERO.fullmatch(field.strip()) for field in fields)
        if k in as_text or coded or (values := _numbers_in(fields)) is None:
            cells.texts[k] = different(map(str.strip, fields))
        else:
            cells.numbers[k] = values
    return True


def _numbers_in(fields: Sequence[str]) -> Sequence[float | None] | None:
    """Return the numbers in fields, NaN where one is missing; None if one is anything else."""
    every = "".join(fields)
    if every.isascii() and "_" not in every:
        with contextlib.suppress(ValueError):
            numbers = list(map(float, fields))
            if math.isfinite(sum(numbers)):
                return numbers
    values = cell_values([field.strip() for field in fields])
    return None if None in values else values


def _are_codes(values: np.ndarray) -> bool:
    """Return whether the numbers of a column have no decimals, and are not 0 and 1 only."""
    for some in (values[:_FEW], values):  # most columns show their decimals in a few rows
        present = some[~np.isnan(some)]
        if not (present == np.floor(present)).all():
            return False
    return bool(len(present) and (present.min() < 0 or present.max() > 1))


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


def delimiter_of(head: str, extension: str = "", decimal: str | None = None) -> str:
    """Return the delimiter of the first line; what is quoted is ignored, and so are decimal commas."""
    bare = _QUOTED.sub("", head)
    if ";" in bare or "\t" in bare:
        bare = bare.replace(",", "") if decimal == "," else _DECIMAL_COMMA.sub("", bare)
    if extension == ".tsv" and "\t" in bare:
        return "\t"
    return max(_DELIMITERS, key=bare.count)  # of equally frequent ones the first


def require_names(names: Sequence[str], kept: Sequence[int], path: PathLike, hint: str = "") -> None:
    """Refuse columns without a name, and names that occur twice."""
    seen: set[str] = set()
    for j in kept:
        name = names[j]
        if not name:
            raise DatasetError(f"column {j + 1} has no name{hint}", path, 1)
        if name in seen:
            raise DatasetError(f"column '{name[:60]}' occurs twice{hint}", path, 1)
        seen.add(name)


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
        return names, left_out, [f"the last {len(filled)} columns have neither names nor cells and were left out"]
    shown = [f"{names[j]} ({filled[j]} of {rows} cells)" for j in sorted(left_out)]
    notes = [f"columns without a name and with hardly a cell, left out: {first_few(shown, _SHOWN)}"] if shown else []
    taken = [names[j] for j in filled if j not in left_out]
    return names, left_out, [*notes, *([f"columns without a name: {first_few(taken, _SHOWN)}"] if taken else [])]


def index_note(reason: str, path: PathLike) -> str:
    """Warn of an index column that is left out, and return the note about it."""
    note = f"{reason}: read as an index and left out"
    warnings.warn(f"{os.fspath(path)}: {note}", DatasetWarning, stacklevel=5)
    return note


def _two_points(texts: Sequence[str], codes: np.ndarray, name: str) -> tuple[int, str] | None:
    """Return the fault of a column where a point separates thousands in some numbers, and decimals in others."""
    pointed = [(code, text) for code, text in enumerate(texts) if "." in text and POINT_NUMBER.fullmatch(text)]
    decimals = [(code, text) for code, text in pointed if not COMMA_NUMBER.fullmatch(text)]
    if not decimals or len(decimals) == len(pointed):
        return None
    (code, text), grouped = decimals[0], next(one for _, one in pointed if COMMA_NUMBER.fullmatch(one))
    otherwise = f"with {option('decimal', repr(','))} the point of {grouped!r} separates thousands"
    return int(np.flatnonzero(codes == code)[0]), f"{name}: {text!r} has a decimal point, but {otherwise}"


def _plain_number(cell: str, decimal: str) -> str:
    """Return a number without separators of thousands and with a decimal point; another text as it is."""
    if not _DECIMAL[decimal].fullmatch(cell):
        return cell
    return cell.replace(".", "").replace(",", ".") if decimal == "," else cell.replace(",", "")
