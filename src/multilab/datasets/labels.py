"""Labels of a table: columns, tags in one column, a row per item and tag; yes and no, a blank for no."""

from __future__ import annotations

import fnmatch
import math
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import pandas as pd

from multilab.core.files import PathLike
from multilab.core.messages import did_you_mean, option
from multilab.core.tags import MISSING_CELLS, separator_of, several_tags, split_tags
from multilab.core.text import comma_separated, excerpt, first_few, listed
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import MAX_NAMES_BYTES, Limits, decode, read_bytes, require_cells
from multilab.datasets.frames import codes_of, is_text, texts_of_column
from multilab.datasets.options import LABELS, Reading
from multilab.datasets.table_cells import number_in

__all__ = ["choose_labels", "label_values", "read_label_names", "separator_option", "tags_of"]

_SHOWN = 8  # rare tags that a note lists
_TRUTHS = frozenset({"0", "1", "0.0", "1.0", "true", "false"})
_YES = frozenset({"1", "1.0", "true", "yes", "y", "t", "on", "positive", "present"})
_NO = frozenset({"0", "0.0", "false", "no", "n", "f", "off", "negative", "absent"})
_PAIRS = ((_YES, _NO), (frozenset({"1", "1.0", "+1"}), frozenset({"-1", "-1.0"})))
_LABEL_VALUES = 3  # of numbers: yes, no, missing


# ---------------------------------------------------------------- which columns


def choose_labels(reading: Reading, names: Sequence[str], path: PathLike) -> np.ndarray:
    """Return the positions of the label columns in the order of the file.

    Raises
    ------
    DatasetError
        If no option or several options are set, a name is not a column, or no feature or no label is left.
    """
    options = list(reading.given(LABELS))
    if len(options) != 1:
        shown = " and ".join(map(option, options)) if options else "no option"
        others = ", ".join(option(name) for name in LABELS if name != "label_names")
        raise DatasetError(f"{shown} given to choose the label columns; give one of {others}", path)
    chosen = _mask(reading, names, path)
    if not chosen.any():
        raise DatasetError(f"no column is a label by {option(options[0])}{_shown_names(names)}", path)
    if chosen.all():
        raise DatasetError(f"every column is a label by {option(options[0])}; no feature is left", path)
    return np.flatnonzero(chosen)


def _mask(reading: Reading, names: Sequence[str], path: PathLike) -> np.ndarray:
    m = len(names)
    if reading.label_prefix is not None:
        return np.array([name.startswith(reading.label_prefix) for name in names])
    count = reading.labels_first if reading.labels_first is not None else reading.labels_last
    if count is not None:
        if not 0 < count < m:
            name, first = ("labels_first", m - 1) if reading.labels_first is not None else ("labels_last", 0)
            advice = f"; {option(name, m - 1)} leaves {excerpt(names[first])!r} as a feature" if m > 1 else ""
            raise DatasetError(
                f"{count} label columns requested, the file has {m} columns besides those left out{advice}", path
            )
        position = np.arange(m)
        return position < count if reading.labels_first is not None else position >= m - count
    source, wanted = _wanted(reading, path)
    known = set(names)
    for name, line in list(wanted.items()):
        if name not in known:
            if name.strip() in known:  # as a data frame of pandas has it
                wanted[name.strip()] = line
                continue
            if matched := fnmatch.filter(sorted(known), name) if _is_pattern(name) else []:
                wanted |= dict.fromkeys(matched, line)
                continue
            is_list_file = line is not None and reading.labels_xml is None  # it may be any file: not quoted
            shown = "the name on this line" if is_list_file else f"label '{excerpt(name)}'"
            if _is_pattern(name) and not is_list_file:
                raise DatasetError(f"no column matches '{excerpt(name)}'{_shown_names(known)}", source, line)
            hint = did_you_mean(name, known) if line is None else ""
            raise DatasetError(f"{shown} is not a column of {Path(path).name}{hint[:200]}", source, line)
    return np.array([name in wanted for name in names])


def _wanted(reading: Reading, path: PathLike) -> tuple[PathLike, dict[str, int | None]]:
    """Return the file of the label names, and the names with their lines."""
    if reading.labels_xml is not None:
        return reading.labels_xml, dict(read_label_names(reading.labels_xml))
    return read_names(reading.label_columns if reading.label_columns is not None else reading.label_names, path)


def read_names(names: Any, path: PathLike) -> tuple[PathLike, dict[str, int | None]]:
    """Return the file that names columns, and the names with their lines in it.

    Names are a sequence, a text with commas, or a file with one name per line; all but the last are given for ``path``.
    """
    if isinstance(names, str) and ("," in names or not os.path.isfile(names)):
        return path, dict.fromkeys(comma_separated(names))
    if isinstance(names, str | os.PathLike):
        lines = decode(read_bytes(names, Limits(max_bytes=MAX_NAMES_BYTES)), names).split("\n")
        return names, {text.strip(): i for i, text in enumerate(lines, 1) if text.strip()}
    return path, dict.fromkeys(map(str, names))


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _shown_names(names: Collection[str]) -> str:
    """Return some column names for a message."""
    first = sorted(names)[:5]
    more = ", ..." if len(names) > len(first) else ""
    return f"; columns are {', '.join(excerpt(repr(name), 40) for name in first)}{more}" if first else ""


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
        If the file is not XML, has an unknown encoding, is larger than 16 MiB, has a document type or entity
        declaration (refused unread, so that entities cannot be expanded), has another root than ``labels``, has a label
        without a name or with a repeated one, or has no label.
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


# ---------------------------------------------------------------- their cells


def label_values(column: pd.Series, name: str, missing_labels: bool) -> tuple[np.ndarray, str, tuple[int, str] | None]:
    """Return the labels in a column: 0, 1, or NaN where one was not observed.

    Parameters
    ----------
    column : Series of shape (n,)
        Of a tidy frame.
    name : str
        For messages.
    missing_labels : bool
        Whether a label may be missing.

    Returns
    -------
    values : ndarray of shape (n,)
    note : str
        How they were read if that is not evident.
    fault : (row, reason) or None
        The first cell that is no label.
    """
    if not is_text(column):
        return _from_numbers(column.to_numpy(dtype=np.float64, copy=True), name, missing_labels)
    texts, codes = texts_of_column(column)
    shown = [*texts, *([""] if (codes < 0).any() else [])]
    if (known := label_meaning(shown)) is not None:
        return _checked(np.array(known[0])[codes], name, known[1], missing_labels)
    numbers = [number_in(text) for text in texts]
    if None not in numbers:  # 00 and 01
        return _from_numbers(np.array([*numbers, np.nan])[codes], name, missing_labels)
    wrong = np.array([text.lower() not in _YES | _NO for text in texts] + [False])
    row = int(np.argmax(wrong[codes]))
    reason = f"non-binary label: '{name[:60]}' is {texts[codes[row]][:40]}, expected 0 or 1, true or false, yes or no"
    return np.full(len(codes), np.nan), "", (row, reason + _label_advice(name[:60], texts))


def _from_numbers(
    values: np.ndarray, name: str, missing_labels: bool
) -> tuple[np.ndarray, str, tuple[int, str] | None]:
    return _checked(values, name, read_label_numbers(values), missing_labels)


def _checked(values: np.ndarray, name: str, note: str, missing_labels: bool) -> tuple[np.ndarray, str, Any]:
    valid = are_labels(values, missing_labels)
    if valid.all():
        return values, note, None
    row = int(np.argmin(valid))
    reason = (
        f"label '{name[:60]}' is missing{missing_label_hint()}"
        if math.isnan(values[row])
        else f"non-binary label: '{name[:60]}' is {values[row]:g}, expected 0 or 1"
    )
    return values, note, (row, reason)


def missing_label_hint() -> str:
    """Return what to do about labels that are missing."""
    return f"; labels that were not observed: {option('missing_labels', 'keep')}"


def are_labels(values: np.ndarray, missing_labels: bool) -> np.ndarray:
    """Return which values are allowed in a label column."""
    valid = np.isin(values, (0.0, 1.0))
    return valid | np.isnan(values) if missing_labels else valid


def label_meaning(texts: Sequence[str]) -> tuple[list[float], str] | None:
    """Return the meaning of the distinct texts in a label column, and a note unless it is evident.

    Parameters
    ----------
    texts : sequence of str
        The different cells, without blanks around them.

    Returns
    -------
    values : list of float
        1, 0 or NaN (not observed) for each text.
    note : str
        Empty if the column holds 0 and 1 or true and false only.

    None if the column is no label: it holds a third value.
    """
    lower = [text.lower() for text in texts]
    present = {text for text in lower if text not in MISSING_CELLS}
    for pair in _PAIRS:
        yes, no = pair
        if present <= yes | no:
            has_no, has_yes = bool(present & no), bool(present & yes)
            blank = math.nan if has_no or not has_yes else 0.0
            values = [1.0 if text in yes else 0.0 if text in no else blank for text in lower]
            shown = [*sorted(present & yes), *sorted(present & no)]
            note = (
                "" if present <= _TRUTHS else f"{' and '.join(map(repr, shown))} read as {'1 and 0' if has_no else '1'}"
            )
            if len(present) < len(set(lower)) and blank == 0.0:
                note = f"{note + ', a' if note else 'a'} blank means no"
            return values, note
    if len(present) == 1 and len(set(lower)) > len(present):  # 'x' or nothing
        values = [0.0 if text not in present else 1.0 for text in lower]
        return values, f"{next(iter(present))[:20]!r} read as 1, a blank means no"
    return None


def read_label_numbers(values: np.ndarray) -> str:
    """Convert the numbers of a label column (NaN if missing) to label values in place; return the note."""
    if ((values == 0.0) | (values == 1.0)).all():
        return ""
    different, codes = np.unique(values, return_inverse=True)
    if len(different) > _LABEL_VALUES:
        return ""
    known = label_meaning(["" if math.isnan(value) else f"{value:g}" for value in different.tolist()])
    if known is None:
        return ""
    values[:] = np.array(known[0])[codes]
    return known[1]


def meaning_notes(meanings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note for each way in which labels are written, with their names."""
    return [f"labels {listed(repr(name[:60]) for name in names)}: {note}" for note, names in meanings.items()]


def _label_advice(name: str, texts: Sequence[str]) -> str:
    """Return the option that reads a column of tags, where it is one."""
    return f"; if it holds tags: {option('tags', name)}" if any(map(several_tags, texts)) else ""


# ---------------------------------------------------------------- tags


def tags_of(
    frame: pd.DataFrame, reading: Reading, path: PathLike, limits: Limits, train_rows: int | None = None
) -> tuple[pd.DataFrame, np.ndarray, list[str], int | None, list[str]]:
    """Return the features and the labels of a table of tags.

    Parameters
    ----------
    frame : DataFrame
        Tidy; the columns of the options are texts.
    reading : Reading
        With a column of tags, or an item and a tag.
    path, limits
        For messages.
    train_rows : int, optional
        Number of the first rows that are training rows.

    Returns
    -------
    features : DataFrame
        Without the columns of the options; of several rows of an item the first.
    Y : ndarray of shape (n, q)
        0 and 1.
    names : list of str
        The tags, sorted.
    train_rows : int or None
        Among the rows of ``features``.
    notes : list of str

    Raises
    ------
    DatasetError
        If a column of the options is absent, there is no tag, no feature is left, a tag has the name of a feature, two
        rows of one item differ, or the separator is neither given nor evident.
    """
    names, own = list(frame.columns), [name for name in (reading.tags, reading.item, reading.tag) if name is not None]
    for name in own:
        if name not in names:
            raise DatasetError(f"'{excerpt(name)}' is not a column{did_you_mean(name, names)}", path)
    if any(isinstance(kind, pd.SparseDtype) for kind in frame.dtypes):
        raise DatasetError("the rows are sparse; their labels must be columns, not tags", path)
    column, separator = str(reading.tags or reading.tag), reading.separator
    cells, codes = _cells_of(frame[column])
    if separator is None and reading.tags is not None:
        rows_of = dict(zip(cells, np.bincount(codes, minlength=len(cells)).tolist(), strict=True))
        try:
            separator = separator_of(rows_of, f"tags of '{excerpt(column)}'", separator_option)
        except ValueError as error:
            raise DatasetError(str(error), path) from None
    tags = [split_tags(cell, separator) for cell in cells]
    kept = [name for name in names if name not in own]
    if not kept:
        raise DatasetError("no feature is left besides the tags", path)
    rows = np.arange(len(frame))
    firsts = rows
    if reading.item is not None:
        items, item_codes = _cells_of(frame[reading.item])
        if blank := np.flatnonzero(np.array([not item for item in items])[item_codes]).size:
            raise DatasetError(f"'{excerpt(reading.item)}' is missing in {blank} rows", path)
        firsts, rows = _items(frame[kept], item_codes, items, reading.item, path)
    every, counts = _counted(tags, codes, rows, len(firsts))
    left_out = [tag for tag in every if counts[tag] < (reading.min_count or 1)]
    wanted = [tag for tag in every if tag not in set(left_out)]
    if not wanted:
        what = f"no tag has {reading.min_count} rows or more" if left_out else "no row has a tag"
        raise DatasetError(f"{what} in column '{excerpt(column)}'", path)
    if both := [name for name in kept if name in set(wanted)]:
        raise DatasetError(f"'{excerpt(both[0])}' is both a tag and a column; rename the column, or drop it", path)
    try:
        require_cells(len(firsts), len(wanted), "the label matrix", path, limits)
    except DatasetError as error:
        raise DatasetError(error.reason + _count_that_fits(counts, len(firsts), path, limits), path) from None
    position = {tag: k for k, tag in enumerate(wanted)}
    by_text = [[position[tag] for tag in one if tag in position] for one in tags]
    Y = np.zeros((len(firsts), len(wanted)))
    for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
        Y[row, by_text[code]] = 1.0
    if train_rows is not None and reading.item is not None:
        of_training, later = int((firsts < train_rows).sum()), np.arange(len(rows)) >= train_rows
        if (later & (rows < of_training)).any():
            item = items[item_codes[int(np.flatnonzero(later & (rows < of_training))[0])]]
            raise DatasetError(f"the item {excerpt(item)!r} is in the training and in the test file", path)
        train_rows = of_training
    features = frame[kept] if reading.item is None else frame[kept].iloc[firsts].reset_index(drop=True)
    return features, Y, wanted, train_rows, _notes(column, reading.min_count, left_out, counts, Y)


def separator_option(separator: str | None) -> str:
    """Return the option that names a separator of tags; for None, one with which every cell is one tag."""
    return option("separator", repr(separator or "|"))


def _cells_of(column: pd.Series) -> tuple[list[str], np.ndarray]:
    """Return the different texts of a column, the first empty for missing cells, and the position of each row's."""
    texts, codes = texts_of_column(column)
    return ["", *texts], codes + 1


def _items(
    features: pd.DataFrame, codes: np.ndarray, items: Sequence[str], item: str, path: PathLike
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each item, in the order of the file, and the item of each row."""
    _, firsts, of_rows = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(firsts, kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    firsts, of_rows = firsts[order], place[of_rows]
    values = codes_of(features)
    same = (values == values[firsts[of_rows]]) | (np.isnan(values) & np.isnan(values[firsts[of_rows]]))
    if not same.all():
        row, j = (int(k) for k in np.argwhere(~same)[0])
        raise DatasetError(
            f"rows {firsts[of_rows[row]] + 1} and {row + 1} belong to one item, {item}={items[codes[row]]!r}, but "
            f"differ in '{excerpt(features.columns[j])}'; leave that column out ({option('drop')})",
            path,
        )
    return firsts, of_rows


def _count_that_fits(counts: Counter[str], rows: int, path: PathLike, limits: Limits) -> str:
    """Return the smallest round ``min_count`` with which the label matrix is within the limits, as advice."""
    for least in (2, 5, 10, 20, 50, 100, 200, 500, 1000):
        number = sum(count >= least for count in counts.values())
        try:
            require_cells(rows, number, "the label matrix", path, limits)
        except DatasetError:
            continue
        return f"; {option('min_count', least)} leaves {number} of the {len(counts)} tags" if number else ""
    return ""


def _counted(
    tags: Sequence[Sequence[str]], codes: np.ndarray, rows: np.ndarray, n: int
) -> tuple[list[str], Counter[str]]:
    """Return all tags, sorted, and the number of items of each."""
    counts: Counter[str] = Counter()
    pairs = np.unique(np.column_stack([rows, codes]), axis=0)  # an item may name a tag twice
    seen = [set[str]() for _ in range(n)] if len(pairs) > n else None
    for row, code in pairs.tolist():
        new = tags[code] if seen is None else [tag for tag in tags[code] if tag not in seen[row]]
        counts.update(new)
        if seen is not None:
            seen[row].update(new)
    return sorted(counts), counts


def _notes(
    column: str, min_count: int | None, left_out: Sequence[str], counts: Counter[str], Y: np.ndarray
) -> list[str]:
    without = int((~Y.any(axis=1)).sum())
    notes = [f"labels are the {Y.shape[1]} tags of '{excerpt(column)}'; {without} rows have none"]
    if left_out:
        rarest = sorted(left_out, key=lambda tag: (-counts[tag], tag))
        shown = first_few((f"{excerpt(tag, 30)} ({counts[tag]})" for tag in rarest), _SHOWN)
        notes.append(f"tags with fewer than {min_count} rows, left out: {shown}")
    return notes
