"""Columns of a table: names, labels (`labels=`) and dropped columns (`drop=`)."""

from __future__ import annotations

import fnmatch
import math
import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.messages import did_you_mean, option
from multilab.core.text import comma_separated, excerpt, first_few
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import MAX_NAMES_BYTES, Limits, decode, read_bytes

if TYPE_CHECKING:  # it imports this module
    from multilab.datasets.kinds import Kind


INDEX_NAME = re.compile(r"__index_level_\d+__")
"""Name of an index without a name in a file that pandas or Arrow wrote; other programs do not copy the metadata that
say so."""


def to_number(text: str) -> float:
    """Return the finite decimal number of ``text``, else NaN.

    Further input of Python's ``float`` is refused: nan, inf, underscores, digits of other scripts, blanks.
    """
    try:
        value = float(text)
    except ValueError:
        return math.nan
    usual = text.isascii() and "_" not in text and not text[0].isspace() and not text[-1].isspace()
    return value if usual and math.isfinite(value) else math.nan


def to_numbers(texts: Iterable[str]) -> list[float]:
    """Return :func:`to_number` of each text."""
    return list(map(to_number, texts))


@dataclass(frozen=True)
class TableColumn:
    """Column of a table: name, nominal values in order of declaration (None: numeric), line, kind if it was chosen."""

    name: str
    values: tuple[str, ...] | None = None
    line: int | None = None
    kind: Kind | None = None

    @cached_property
    def numbers(self) -> tuple[float, ...] | None:
        """The nominal values as distinct numbers, or None if one of them is not a number."""
        numbers = tuple(to_numbers(self.values or ()))
        return numbers if numbers and not np.isnan(numbers).any() and len(set(numbers)) == len(numbers) else None

    @property
    def binary(self) -> bool:
        """Whether the column is nominal and its values are 0 and 1 (or one of them)."""
        return self.values is not None and self.numbers is not None and set(self.numbers) <= {0.0, 1.0}

    @property
    def plain(self) -> bool:
        """Whether the code of a value is its number, so that nothing has to be recoded."""
        return self.values is None or (self.binary and self.numbers in ((0.0, 1.0), (0.0,)))

    @property
    def width(self) -> int:
        """Number of columns it is coded in: one per value unless it holds numbers only, or 0 and 1."""
        return 1 if self.plain or self.binary else len(self.values or ())


@dataclass(frozen=True)
class LabelOptions:
    """Options that choose the label columns, of which at most one is set.

    See :func:`multilab.datasets.reading.read`.
    """

    labels_xml: PathLike | None = None
    label_names: Sequence[str] | None = None
    labels_first: int | None = None
    labels_last: int | None = None
    label_columns: Sequence[str] | PathLike | None = None
    label_prefix: str | None = None

    def given(self) -> bool:
        """Return whether any option is set."""
        return any(value is not None for value in self.__dict__.values())

    def choose(self, columns: Sequence[TableColumn], path: PathLike) -> np.ndarray:
        """Return the positions of the label columns in the order of the file.

        Raises
        ------
        DatasetError
            No option or several options are set, a name is no column, or no feature or no label is left.
        """
        options = [name for name, value in self.__dict__.items() if value is not None]
        if len(options) != 1:
            shown = " and ".join(map(option, options)) if options else "no option"
            others = ", ".join(option(name) for name in vars(self) if name != "label_names")
            raise DatasetError(f"{shown} given to choose the label columns; give one of {others}", path)
        chosen = self._mask(columns, path)
        if not chosen.any():
            known = _shown_names([column.name for column in columns])
            raise DatasetError(f"no column is a label by {option(options[0])}{known}", path)
        if chosen.all():
            raise DatasetError(f"every column is a label by {option(options[0])}: no feature is left", path)
        return np.flatnonzero(chosen)

    def _mask(self, columns: Sequence[TableColumn], path: PathLike) -> np.ndarray:
        m = len(columns)
        if self.label_prefix is not None:
            return np.array([c.name.startswith(self.label_prefix) for c in columns])
        count = self.labels_first if self.labels_first is not None else self.labels_last
        if count is not None:
            if not 0 < count < m:
                name, first = ("labels_first", m - 1) if self.labels_first is not None else ("labels_last", 0)
                advice = (
                    f"; {option(name, m - 1)} leaves {excerpt(columns[first].name)!r} as a feature" if m > 1 else ""
                )
                raise DatasetError(
                    f"{count} label columns requested, the file has {m} columns besides those left out{advice}",
                    path,
                )
            position = np.arange(m)
            return position < count if self.labels_first is not None else position >= m - count
        source, wanted = self._wanted(path)
        known = {c.name for c in columns}
        for name, line in list(wanted.items()):
            if name not in known:
                if matched := fnmatch.filter(sorted(known), name) if _is_pattern(name) else []:
                    wanted |= dict.fromkeys(matched, line)
                    continue
                is_list_file = line is not None and self.labels_xml is None  # it may be any file: not quoted
                shown = "the name on this line" if is_list_file else f"label '{excerpt(name)}'"
                if _is_pattern(name) and not is_list_file:
                    raise DatasetError(f"no column matches '{excerpt(name)}'{_shown_names(known)}", source, line)
                hint = did_you_mean(name, known) if line is None else ""
                raise DatasetError(f"{shown} is not a column of {Path(path).name}{hint[:200]}", source, line)
        return np.array([c.name in wanted for c in columns])

    def _wanted(self, path: PathLike) -> tuple[PathLike, dict[str, int | None]]:
        """Return the file of the label names, and the names with their lines."""
        if self.labels_xml is not None:
            return self.labels_xml, dict(read_label_names(self.labels_xml))
        names = self.label_columns if self.label_columns is not None else self.label_names
        return read_names(names, path)


def read_names(names: Any, path: PathLike) -> tuple[PathLike, dict[str, int | None]]:
    """Return the file that names columns, and the names with their lines in it.

    Names are a sequence, a text with commas, or a file with one name per line; all but the last are given for ``path``.
    """
    if isinstance(names, str) and ("," in names or not os.path.isfile(names)):
        return path, dict.fromkeys(comma_separated(names))
    if isinstance(names, str | os.PathLike):
        lines = decode(read_bytes(names, Limits(max_bytes=MAX_NAMES_BYTES)), names).split("\n")
        return names, {text.strip(): i for i, text in enumerate(lines, 1) if text.strip()}
    return path, dict.fromkeys(names)


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _shown_names(names: Collection[str]) -> str:
    """Return some column names for a message."""
    first = sorted(names)[:5]
    more = ", ..." if len(names) > len(first) else ""
    return f"; columns are {', '.join(excerpt(repr(name), 40) for name in first)}{more}" if first else ""


def canonical_csr(matrix: Any) -> sp.csr_array:
    """Return float64 CSR with sorted 32-bit indices (64 where needed), no duplicates, no stored zeros."""
    csr = sp.csr_array(matrix, dtype=np.float64)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    if max(*csr.shape, csr.nnz) < 2**31:  # scikit-learn's liblinear and libsvm take 32-bit indices only
        csr.indices = csr.indices.astype(np.int32, copy=False)
        csr.indptr = csr.indptr.astype(np.int32, copy=False)
    return csr


def read_label_names(path: PathLike) -> dict[str, int]:
    """Return the label names of a Mulan XML file in its order, each with its line.

    Parameters
    ----------
    path : path-like
        The XML file: ``<labels><label name="..."/>...</labels>``. Labels may be nested (a hierarchy); all of
        them count.

    Returns
    -------
    dict
        Name to line number.

    Raises
    ------
    DatasetError
        Not XML, an unknown encoding, more than 16 MiB, a document type or entity declaration (refused unread,
        so that entities cannot be expanded), another root than ``labels``, a label without or with a repeated
        name, or no label.
    """
    content = read_bytes(path, Limits(max_bytes=MAX_NAMES_BYTES))
    parser = expat.ParserCreate()
    names: dict[str, int] = {}
    depth = 0

    def refuse(*_: object) -> None:
        raise DatasetError("a document type or entity declaration is refused", path, parser.CurrentLineNumber)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        kind, line = tag.rpartition(":")[2], parser.CurrentLineNumber
        if depth == 1 and kind != "labels":
            raise DatasetError(f"the root is <{excerpt(kind)}>, expected <labels>", path, line)
        if depth > 1 and kind == "label":
            name = attributes.get("name", "").strip()
            if not name:
                raise DatasetError("a label has no name", path, line)
            if name in names:
                raise DatasetError(f"label '{excerpt(name)}' is listed twice", path, line)
            names[name] = line

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DatasetError(f"not well-formed XML ({expat.ErrorString(error.code)})", path, error.lineno) from None
    except DatasetError:
        raise
    except (LookupError, ValueError):  # raised by Python's codecs for the encoding in the XML declaration
        raise DatasetError("the encoding that the XML declares cannot be used; save it as UTF-8", path, 1) from None
    if not names:
        raise DatasetError("the XML names no label", path)
    return names


def names_to_drop(drop: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the names of the columns to drop, from a sequence or one text with commas."""
    if drop is None:
        return ()
    names = drop.split(",") if isinstance(drop, str) else drop
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise DatasetError(f"{option('drop')} must be a list of column names, not {drop!r}")
    return tuple(name.strip() for name in names if name.strip())


def positions_left(names: Sequence[str], drop: Sequence[str], path: PathLike) -> list[int]:
    """Return the positions of the columns that are neither dropped nor an index of pandas.

    Raises
    ------
    DatasetError
        A name to drop is no column.
    """
    known = set(names)
    for name in drop:
        if name not in known:
            hint = did_you_mean(name, known)
            raise DatasetError(f"drop: '{name[:60]}' is not a column{hint[:200]}", path)
    left_out = set(drop)
    return [j for j, name in enumerate(names) if name not in left_out and not INDEX_NAME.fullmatch(name)]


def dropped_note(drop: Sequence[str], names: Sequence[str] = ()) -> list[str]:
    """Return the notes about dropped columns, and about those among ``names`` that are an index of pandas, if any."""
    index = [name for name in names if INDEX_NAME.fullmatch(name) and name not in drop]
    notes = [f"read as an index and left out: {', '.join(index)}"] if index else []
    return notes + ([f"left out as requested: {first_few((repr(name[:60]) for name in drop), 10)}"] if drop else [])
